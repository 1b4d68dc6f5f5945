"""What a turn's first request is made of, read as its message is accepted.

The conversation's row is locked then, so that nothing needs to be read a second time.
"""

from __future__ import annotations

from dataclasses import replace

from chatapp.context.request import ConversationSnapshot, StoredMessage
from chatapp.conversations.messages.kept import messages_of
from chatapp.conversations.messages.reading import snapshot_of
from chatapp.conversations.turns.standing import Standing
from chatapp.models import Conversation, MessageStatus, TurnStatus
from compression.store import compression_state


def snapshot_for(row: Conversation, stands: Standing) -> ConversationSnapshot:
    """The next request's data before its message is stored."""
    found = snapshot_of(row, messages_of(row), instructions=stands.instructions or "")
    return replace(found, tool_servers=stands.tool_servers)


def with_begun(
    row: Conversation,
    found: ConversationSnapshot,
    *,
    turn: int,
    model: str,
    text: str,
    tokens: int,
) -> ConversationSnapshot | None:
    """The same with the message and the empty reply that were just stored as the last two.

    None while a compression locks the conversation: what it leaves is read when it has ended.
    """
    if compression_state(row).locks_input:
        return None
    question = StoredMessage(
        seq=row.next_seq - 2,
        role="user",
        text=text,
        token_count=tokens,
        turn=turn,
        turn_status=TurnStatus.WAITING.value,
        turn_open=True,
        model=model,
    )
    reply = replace(
        question,
        seq=row.next_seq - 1,
        role="assistant",
        text="",
        token_count=0,
        status=MessageStatus.STREAMING.value,
    )
    return replace(found, event_no=row.event_no, tail=(*found.tail, question, reply))
