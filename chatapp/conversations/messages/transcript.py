"""The chat's messages as compression reads them."""

from __future__ import annotations

from collections.abc import Sequence

from chatapp.conversations.messages.reading import stored_messages
from compression.types import Item


class StoredTranscript:
    """Implements :class:`compression.ports.Transcript` on the stored messages."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        """Live messages with ``after_seq`` < seq <= ``through_seq``; no reply that is not begun."""
        return [
            one.as_item()
            for one in stored_messages(
                conversation_id, after_seq=after_seq, through_seq=through_seq
            )
            if not (one.turn_open and one.role == "assistant" and not one.text)
        ]
