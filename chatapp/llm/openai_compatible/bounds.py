"""The bounds of one streamed reply: what it says, and what it may be made of beside that. Pure."""

from __future__ import annotations

from chatapp.llm.errors import MalformedReply, ReplyTooLong

#: Lines and parts of lists. An event takes two or three lines and says a character or more, so that
#: this is left for what says nothing: comments that keep a connection open, and an empty event for
#: each hidden token of the longest reasoning that a model is sold with (128,000). They are decoded
#: in about a second.
EMPTY_PIECES = 300_000
PIECES_PER_CHARACTER = 4
#: The same in bytes: an event without content takes 300 to 450, and a server that repeats the whole
#: message beside each piece (Perplexity) has sent 200 MB after 40,000 characters.
EMPTY_BYTES = 256 * 1024 * 1024
BYTES_PER_CHARACTER = 1024


class Bounds:
    """What one reply may still take.

    ``max_characters`` bounds text, reasoning and tool arguments together, ``max_event_bytes`` a
    single event. Bytes and pieces are bounded by the characters that they have brought.
    """

    def __init__(self, *, max_characters: int, max_event_bytes: int) -> None:
        self.characters_left = max_characters
        """Characters that may still come."""
        self._max_characters = max_characters
        self._max_event_bytes = max_event_bytes
        self._bytes_left = EMPTY_BYTES
        self._pieces_left = EMPTY_PIECES

    @property
    def characters(self) -> int:
        """Characters of text, reasoning and tool arguments that have come so far."""
        return self._max_characters - self.characters_left

    def add_characters(self, count: int) -> None:
        """Count what the reply says. Raises ReplyTooLong once that is more than it may."""
        self.characters_left -= count
        if self.characters_left < 0:
            self.characters_left = 0
            raise ReplyTooLong
        self._bytes_left += BYTES_PER_CHARACTER * count
        self._pieces_left += PIECES_PER_CHARACTER * count

    def add_bytes(self, count: int) -> None:
        """Count what came over the line. Raises MalformedReply when it says too little for that."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise _says_nothing()

    def add_piece(self) -> None:
        """Count a line, or a part of a list. Raises MalformedReply as :meth:`add_bytes`."""
        self._pieces_left -= 1
        if self._pieces_left < 0:
            raise _says_nothing()

    def check_event(self, size: int) -> None:
        """Raise MalformedReply if an event of so many bytes is too large."""
        if size > self._max_event_bytes:
            raise MalformedReply(
                "The model server sent a single piece of more than "
                f"{self._max_event_bytes // 1024} KiB, which is no reply. Retry."
            )


def _says_nothing() -> MalformedReply:
    return MalformedReply(
        "The model server kept sending without saying anything, so its reply was ended here. "
        "Retry, or choose another model.",
        fault="empty pieces",
    )
