"""The chat's messages as compression reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatapp.context.request import visible_messages
from chatapp.conversations.messages.reading import stored_messages
from compression.types import Item


class StoredTranscript:
    """A :class:`compression.ports.Transcript` of the stored messages."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        """Live messages with ``after_seq`` < seq <= ``through_seq``; replies not begun left out."""
        found = stored_messages(conversation_id, after_seq=after_seq, through_seq=through_seq)
        # What was looked up was said before, and is no word of the message it came with.
        return [replace(one, added_context="").as_item() for one in visible_messages(found)]
