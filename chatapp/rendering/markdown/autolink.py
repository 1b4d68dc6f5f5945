"""Links for bare web addresses, ``https://…`` and ``http://…``.

This is a rule of our own, because linkify-it-py is quadratic: 20 kB of ``://`` took it 2.7 s. This
rule reads each character once, and ignores what may not be an address (``example.com``).
"""

from __future__ import annotations

import re
from typing import Final

from markdown_it.rules_inline import StateInline

#: The scheme before the colon, with the character before it.
_scheme = re.compile(r"(?<![a-zA-Z0-9.+-])https?$", re.IGNORECASE)
_SCHEME_LENGTH: Final = len("-https")
#: Letters of any script belong to an address; brackets, quotes and other scripts' signs end it.
_rest = re.compile(r"://[^\W_][\w.~:/?#@!$&'()*+,;=%-]*")
#: Signs at the end that belong to a sentence or an emphasis, not to the address.
_END: Final = "?!.,:;*_~'"


def web_address(state: StateInline, silent: bool) -> bool:
    """The inline rule: a link if an address has its colon at ``state.pos``."""
    position = state.pos
    if state.src[position] != ":" or state.linkLevel:
        return False
    scheme = _scheme.search(state.src[max(0, position - _SCHEME_LENGTH) : position])
    rest = _rest.match(state.src, position, state.posMax) if scheme else None
    if scheme is None or rest is None:
        return False
    end = _trimmed(rest[0])
    if not silent:
        if not state.pending.endswith(scheme[0]):
            return False
        address = state.md.normalizeLink(scheme[0] + end)
        if not state.md.validateLink(address):
            return False
        state.pending = state.pending[: -len(scheme[0])]
        state.push("link_open", "a", 1).attrs = {"href": address}
        state.push("text", "", 0).content = scheme[0] + end
        state.push("link_close", "a", -1)
    state.pos += len(end)
    return True


def _trimmed(address: str) -> str:
    """``address`` without the punctuation of the sentence around it."""
    surplus = address.count(")") - address.count("(")
    end = len(address)
    while address[end - 1] in _END or (address[end - 1] == ")" and surplus > 0):
        surplus -= address[end - 1] == ")"
        end -= 1
    return address[:end]
