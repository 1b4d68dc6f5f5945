"""A history of messages that are all in memory, for a host without a full-text index. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from compression.recall.ports import Heading, Original
from compression.recall.quoting import with_calls
from compression.recall.terms import Terms, stem, stems_of
from compression.recall.tools import NAMES, other_calls
from compression.types import Item


class ItemsHistory:
    """A :class:`compression.recall.ports.History` of items, of which the first are out of sight.

    ``items`` are a conversation's live messages, in order; ``through`` is its boundary. A search
    looks at every word of them, so it takes as long as they are.
    """

    def __init__(self, items: Sequence[Item], *, through: int) -> None:
        self.through = through
        self._items = {
            item.seq: item
            for item in items
            if (item.text or item.tool_calls) and (item.seq <= through or item.masked)
        }

    @cached_property
    def _texts(self) -> Mapping[int, str]:
        """Seq → what is searched."""
        return {
            seq: with_calls(item.text, other_calls(item.tool_calls))
            for seq, item in self._items.items()
        }

    @cached_property
    def _stems(self) -> Mapping[int, frozenset[str]]:
        """Seq → the stems of the message's words."""
        return {seq: stems_of(text) for seq, text in self._texts.items()}

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        """The messages without their texts, or those of them with these seqs."""
        wanted = None if seqs is None else frozenset(seqs)
        return [
            Heading(
                seq=one.seq,
                role=one.role,
                # A mask has made the item's own number small.
                tokens=max(one.tokens, len(one.text) // 4) if one.masked else one.tokens,
                quoted=one.pinned or one.tool_name in NAMES,
            )
            for one in self._items.values()
            if wanted is None or one.seq in wanted
        ]

    def having(self, terms: Terms, *, most: int | None = None) -> Mapping[str, Collection[int]]:
        """Term → seqs of the messages that contain it; of at most ``most``."""
        found: dict[str, Collection[int]] = {}
        for word in terms.words:
            form = stem(word)
            found[word] = [seq for seq, stems in self._stems.items() if form in stems]
        for run in terms.runs:
            found[run] = [seq for seq, text in self._texts.items() if run.lower() in text.lower()]
        return {term: seqs for term, seqs in found.items() if most is None or len(seqs) <= most}

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """The messages with these seqs, in order of seq."""
        return [
            Original(
                seq=one.seq,
                role=one.role,
                text=with_calls(one.text, one.tool_calls),
                tool_name=one.tool_name,
            )
            for one in (self._items[seq] for seq in sorted(set(seqs)) if seq in self._items)
        ]
