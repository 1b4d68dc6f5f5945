"""Redaction of JSON values: no key, token or password of anyone reaches a line of the log."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from compression.judging.redaction import REDACTED, redacted

#: Characters of a secret from which on it is looked for; a shorter one would blot out words.
SHORTEST_SECRET: Final = 8
#: Characters of a text from which on it is worth remembering.
WORTH_REMEMBERING: Final = 200
MOST_REMEMBERED: Final = 20_000


class CleanTexts:
    """Texts that were seen to hold no secret, by their digest.

    A request repeats nearly all of the former one, and looking through a whole window takes a
    second. One thread at a time.
    """

    def __init__(self) -> None:
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def redacted(self, text: str) -> str:
        """The text without secrets that can be told by their form."""
        if len(text) < WORTH_REMEMBERING:
            return "".join(redacted(text))
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._digests:
            self._digests.move_to_end(digest)
            return text
        clean = "".join(redacted(text))
        if clean == text:
            self._digests[digest] = None
            if len(self._digests) > MOST_REMEMBERED:
                self._digests.popitem(last=False)
        return clean


class Redaction:
    """A copy of JSON values in which secrets are ``[redacted]``.

    ``secrets`` are the program's own, whatever their form; ``clean`` is kept from line to line.
    """

    def __init__(self, secrets: Iterable[str] = (), clean: CleanTexts | None = None) -> None:
        self._secrets = tuple(one for one in secrets if len(one) >= SHORTEST_SECRET)
        self._clean = clean or CleanTexts()

    def __call__(self, value: Any) -> Any:
        """The copy."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, REDACTED)
            return self._clean.redacted(value)
        if isinstance(value, Mapping):
            return {str(key): self(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self(part) for part in value]
        return value
