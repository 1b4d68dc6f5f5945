"""Text and reasoning of a reply on their way out: clean, within the bounds, neighbours joined."""

from __future__ import annotations

from collections.abc import Iterator

from chatapp.llm.client import ReasoningChunk, TextChunk
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.pieces import TextCleaner

Kind = type[TextChunk] | type[ReasoningChunk]


class ChunkBuffer:
    """The pieces that were decoded and not handed over yet."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._text = TextCleaner()
        self._reasoning = TextCleaner()
        self._pieces: list[tuple[Kind, list[str]]] = []

    def add_text(self, text: object) -> None:
        """Add a piece of the text; what is no string is none. Raises ReplyTooLong."""
        if isinstance(text, str) and (clean := self._text.clean(text)):
            self._add(TextChunk, clean)

    def add_reasoning(self, text: object) -> None:
        """Add a piece of the reasoning; what is no string is none. Raises ReplyTooLong."""
        if isinstance(text, str) and (clean := self._reasoning.clean(text)):
            self._add(ReasoningChunk, clean)

    def drain(self) -> list[TextChunk | ReasoningChunk]:
        """The pieces so far, handed over; neighbours of one kind as one chunk."""
        pieces, self._pieces = self._pieces, []
        return [kind(text="".join(texts)) for kind, texts in pieces]

    def rest(self) -> Iterator[TextChunk | ReasoningChunk]:
        """The characters that were held back for a second half which did not come."""
        if text := self._text.rest():
            yield TextChunk(text=text)
        if reasoning := self._reasoning.rest():
            yield ReasoningChunk(text=reasoning)

    def _add(self, kind: Kind, text: str) -> None:
        """Keep as much as the bounds allow, and then say that it was too much."""
        if kept := text[: self._bounds.characters_left]:
            if self._pieces and self._pieces[-1][0] is kind:
                self._pieces[-1][1].append(kept)
            else:
                self._pieces.append((kind, [kept]))
        self._bounds.add_characters(len(text))
