"""New conversations made for a message; conversation and message are stored together."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from django.db import transaction

from chatapp.conversations.branching import branch
from chatapp.conversations.lifecycle import create
from chatapp.conversations.ownership import owned
from chatapp.conversations.turns.sending import Accepted, Admit, accept
from chatapp.models import Conversation
from compression.database import in_database_thread


@dataclass(frozen=True, kw_only=True)
class First:
    """The message that a conversation is made for."""

    text: str
    client_msg_id: uuid.UUID
    tokens: int
    """Ruler tokens of the text."""
    process_id: str
    """The process that will run the turn."""
    admit: Admit
    """Raises MessageTooLarge for a conversation that the message does not fit into."""


def _begun_with(user_id: int, client_msg_id: uuid.UUID) -> str | None:
    """The code of the person's conversation whose first message has this id, if any."""
    code = (
        Conversation.objects.filter(
            owner_id=user_id, messages__client_msg_id=client_msg_id, messages__seq=1
        )
        .values_list("code", flat=True)
        .first()
    )
    return str(code) if code else None


def _branched_with(row: Conversation, client_msg_id: uuid.UUID) -> str | None:
    """The code of the branch of ``row`` in which a message with this id was sent, if any.

    Copied messages have no such id, so it belongs to a message that was sent in the branch.
    """
    code = (
        Conversation.objects.filter(
            owner_id=row.owner_id, branched_from=row, messages__client_msg_id=client_msg_id
        )
        .values_list("code", flat=True)
        .first()
    )
    return str(code) if code else None


def _send(user_id: int, code: str, first: First) -> Accepted:
    """Send the message in its conversation, just made or made when it was first sent."""
    accepted = accept(
        user_id,
        code,
        text=first.text,
        client_msg_id=first.client_msg_id,
        tokens=first.tokens,
        admit=first.admit,
        process_id=first.process_id,
    )
    # A new conversation has no open turn, and an older one has the message already.
    assert isinstance(accepted, Accepted)
    return replace(accepted, code=code)


@transaction.atomic
def begin(user_id: int, first: First, settings: dict[str, str]) -> Accepted:
    """A new conversation that begins with the message; the same one for a repeated message.

    Raises NotFound for a foreign project, MessageTooLarge and TooManyReplies; no conversation is
    made then.
    """
    before = _begun_with(user_id, first.client_msg_id)
    return _send(user_id, before or create(user_id, **settings), first)


@transaction.atomic
def begin_branch(
    user_id: int, code: str, seq: int, first: First, *, clears_draft: bool = False
) -> Accepted:
    """A branch after message ``seq`` that continues with the message; raises as :func:`begin`.

    ``clears_draft``: the message was the draft of this conversation, which is cleared.
    """
    row = owned(user_id, code)
    before = _branched_with(row, first.client_msg_id)
    accepted = _send(user_id, before or branch(user_id, code, seq), first)
    if clears_draft:
        Conversation.objects.filter(
            pk=row.pk, send_when_done=False, draft_client_msg_id=None
        ).update(draft="")
    return accepted


abegin = in_database_thread(begin)
abegin_branch = in_database_thread(begin_branch)
