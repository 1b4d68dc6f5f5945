"""A history of messages that are all in memory, for a host without a full-text index. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from re import findall

from compression.recall.ports import Heading, Original
from compression.recall.terms import Terms, stem
from compression.types import Item


class ItemsHistory:
    """A :class:`compression.recall.ports.History` of items, of which the first are out of sight.

    ``items`` are a conversation's live messages, in order; ``through`` is its boundary. A search
    looks at every word of them, so it takes as long as they are.
    """

    def __init__(self, items: Sequence[Item], *, through: int) -> None:
        self.through = through
        self._items = {
            item.seq: item for item in items if item.text and (item.seq <= through or item.masked)
        }

    @cached_property
    def _stems(self) -> Mapping[int, frozenset[str]]:
        """Seq → the stems of the message's words."""
        return {
            seq: frozenset(stem(word) for word in findall(r"\w+", item.text.lower()))
            for seq, item in self._items.items()
        }

    def headings(self) -> Sequence[Heading]:
        """The messages without their texts."""
        return [
            Heading(seq=one.seq, role=one.role, tokens=one.tokens, quoted=one.pinned)
            for one in self._items.values()
        ]

    def having(self, terms: Terms) -> Mapping[str, Collection[int]]:
        """Term → seqs of the messages that contain it."""
        found: dict[str, Collection[int]] = {}
        for word in terms.words:
            form = stem(word)
            found[word] = [seq for seq, stems in self._stems.items() if form in stems]
        for run in terms.runs:
            found[run] = [
                seq for seq, one in self._items.items() if run.lower() in one.text.lower()
            ]
        return found

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """The messages with these seqs, in order of seq."""
        return [
            Original(seq=one.seq, role=one.role, text=one.text, tool_name=one.tool_name)
            for one in (self._items[seq] for seq in sorted(set(seqs)) if seq in self._items)
        ]
