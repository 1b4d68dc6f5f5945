"""Text of anyone, as it may be stored and as it may be shown.

What may be stored is decided by both databases together: PostgreSQL refuses NUL in text, and a
lone surrogate cannot be encoded as UTF-8 at all. A person's input with these is refused with the
sentences of :func:`problems`; a model's output is repaired by :func:`clean`. Characters that
deceive the reader's eye are stored as they came and lose their power in :func:`visible`, when
they are shown.
"""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# Explicit direction marks (embeddings, overrides, isolates): they can make "exe.txt" of "txt.exe".
_BIDI = "\u202a-\u202e\u2066-\u2069"
# Invisible and without use in plain text. ZWJ and ZWNJ (U+200C, U+200D) are not among them: emoji
# and several scripts need these. Tags (U+E0000-E007F) can carry a hidden sentence to a model.
_INVISIBLE = "\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_DECEIVING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_INVISIBLE}\ud800-\udfff]")
_IS_BIDI = re.compile(f"[{_BIDI}]")


def problems(text: str) -> list[str]:
    """Why ``text`` cannot be stored, one sentence for each reason; empty when it can."""
    found = []
    if "\x00" in text:
        found.append("The text contains a NUL character, which cannot be stored.")
    if _SURROGATES.search(text):
        found.append(
            "The text contains half of a character (a lone surrogate), which cannot be stored."
        )
    return found


def clean(text: str) -> str:
    """``text`` with NUL and lone surrogates replaced by U+FFFD: as long as before, storable."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def visible(text: str) -> str:
    """``text`` for the eye: nothing in it acts on the line around it or hides from the reader.

    Bidi controls become their code in brackets, control characters (ANSI escapes begin with one)
    their pictures, lone surrogates U+FFFD; zero-width and tag characters are left out. Newlines
    and tabs stay. Each character is judged alone, so a text may be passed in pieces.
    """
    return _DECEIVING.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return REPLACEMENT
    if _IS_BIDI.match(character):
        return f"\u27e6U+{code:04X}\u27e7"
    return ""
