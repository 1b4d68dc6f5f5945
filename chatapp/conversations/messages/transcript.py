"""The chat's messages as compression reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatapp.context.request import visible_messages
from chatapp.context.sent_back import NOTHING, SentBack, items_of
from chatapp.conversations.messages.reading import stored_messages
from compression.types import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTranscript:
    """A :class:`compression.ports.Transcript` of the stored messages."""

    back: SentBack = NOTHING
    """What a model gets back of its own messages, which counts as part of them."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        """Live messages with ``after_seq`` < seq <= ``through_seq``; replies not begun left out."""
        found = stored_messages(conversation_id, after_seq=after_seq, through_seq=through_seq)
        # What was looked up was said before, and is no word of the message it came with.
        said = [replace(one, added_context="") for one in visible_messages(found)]
        return items_of(said, self.back)
