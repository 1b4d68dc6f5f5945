"""The beginning of a turn: the transaction that makes sure no message is lost or doubled."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils import timezone

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.reading import message_view
from chatapp.conversations.ownership import owned, parse_code
from chatapp.conversations.turns import reply_limit, spending
from chatapp.errors import MovedOn, NotFound, NothingQueued, NothingToStop, TurnOpen
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole, MessageStatus, Turn
from compression.database import in_database_thread

LEASE = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A turn that begins, or the one that the same message began before."""

    conversation_id: int
    owner_id: int
    turn: int
    message_seq: int | None
    reply_seq: int
    reply_id: int
    event_no: int
    model: str
    code: str = ""
    """Code of the conversation, if one was made for the message."""
    fresh: bool
    """False: the same ``client_msg_id`` came before, and nothing was started."""
    messages: tuple[MessageView, ...] = ()
    """The messages just stored: the user's message and the empty reply."""
    changed: tuple[MessageView, ...] = ()
    """The messages just superseded, and the question that is answered again."""


@dataclass(frozen=True, kw_only=True)
class Queued:
    """The text waits as the conversation's draft, and is sent when the open turn ends."""

    conversation_id: int
    event_no: int


def locked(user_id: int, code: str) -> Conversation:
    """The person's conversation, its row locked until the transaction ends. Raises NotFound."""
    mine = Conversation.objects.filter(owner_id=user_id, code=parse_code(code), deleted_at=None)
    row = mine.select_for_update().first()
    if row is None:
        raise NotFound
    return row


def open_turn(row: Conversation) -> int | None:
    """The id of the open turn, if there is one."""
    return row.turns.filter(finished_at__isnull=True).values_list("pk", flat=True).first()


def _allocate(row: Conversation, count: int) -> int:
    """Take ``count`` seqs and one ``event_no``; unarchives the row. Returns the first seq."""
    first = row.next_seq
    row.next_seq += count
    row.event_no += 1
    Conversation.objects.filter(pk=row.pk).update(
        next_seq=row.next_seq, event_no=row.event_no, updated_at=Now(), archived_at=None
    )
    return first


def _open(row: Conversation, question: Message | None, model: str, process_id: str) -> Turn:
    """Store the turn, leased to the process that will run it."""
    return Turn.objects.create(
        conversation=row,
        user_message=question,
        model=model,
        lease_token=process_id,
        lease_expires_at=Now() + LEASE,
        event_no=row.event_no,
    )


def _ask(
    row: Conversation,
    turn: Turn,
    seq: int,
    text: str,
    client_msg_id: uuid.UUID | None,
    tokens: int,
) -> Message:
    """Store the user's message that the turn answers."""
    question = Message.objects.create(
        conversation=row,
        seq=seq,
        turn=turn,
        role=MessageRole.USER,
        text=text,
        client_msg_id=client_msg_id,
        token_count=tokens,
        event_no=row.event_no,
        created_at=timezone.now(),
    )
    Turn.objects.filter(pk=turn.pk).update(user_message=question)
    return question


def begin(
    row: Conversation,
    *,
    text: str | None,
    client_msg_id: uuid.UUID | None,
    tokens: int,
    model: str,
    process_id: str,
    question: Message | None = None,
    changed: tuple[MessageView, ...] = (),
) -> Accepted:
    """Store the turn, the empty reply, and the user's message unless it exists (``question``).

    Raises TooManyReplies and DailyLimit.
    """
    reply_limit.require_within_limit(row.owner_id)
    first = _allocate(row, 1 if question else 2)
    turn = _open(row, question, model, process_id)
    stored = []
    if question is None:
        question = _ask(row, turn, first, text or "", client_msg_id, tokens)
        stored.append(question)
    else:
        # The question now belongs to the new turn, so that an open turn is never compressed.
        question.turn, question.event_no = turn, row.event_no
        question.save(update_fields=["turn", "event_no"])
        changed = (*changed, message_view(question))
    stored.append(reply := _empty_reply(row, turn))
    if changed:
        # Whether they replace other messages must be read from the database.
        stored = list(for_screen(row.messages.filter(seq__gte=first)).order_by("seq"))
    return Accepted(
        conversation_id=row.pk,
        owner_id=row.owner_id,
        turn=turn.pk,
        message_seq=question.seq,
        reply_seq=reply.seq,
        reply_id=reply.pk,
        event_no=row.event_no,
        model=model,
        fresh=True,
        messages=tuple(message_view(one) for one in stored),
        changed=changed,
    )


def _empty_reply(row: Conversation, turn: Turn) -> Message:
    return Message.objects.create(
        conversation=row,
        seq=row.next_seq - 1,
        turn=turn,
        role=MessageRole.ASSISTANT,
        status=MessageStatus.STREAMING,
        event_no=row.event_no,
        created_at=timezone.now(),
    )


def _repeated(row: Conversation, client_msg_id: uuid.UUID) -> Accepted | None:
    """The turn that this ``client_msg_id`` began, if it was sent before."""
    found = row.messages.filter(client_msg_id=client_msg_id).values_list("pk", "seq", "turn_id")
    pk, seq, turn_id = found.first() or (None, None, None)
    if turn_id is None:
        return None
    # The first turn that answered it: a regeneration gives the message another turn.
    turn_id = (
        row.turns.filter(user_message=pk).order_by("pk").values_list("pk", flat=True).first()
    ) or turn_id
    reply = row.messages.filter(turn_id=turn_id, role=MessageRole.ASSISTANT).order_by("seq").first()
    if reply is None:
        return None
    return Accepted(
        conversation_id=row.pk,
        owner_id=row.owner_id,
        turn=turn_id,
        message_seq=seq,
        reply_seq=reply.seq,
        reply_id=reply.pk,
        event_no=row.event_no,
        model="",
        fresh=False,
    )


@transaction.atomic
def accept(
    user_id: int,
    code: str,
    *,
    text: str,
    client_msg_id: uuid.UUID,
    tokens: int,
    model: str,
    process_id: str,
    last_seen_seq: int | None = None,
) -> Accepted | Queued:
    """Store a message and begin its turn; while a turn is open, queue the message as the draft.

    ``tokens`` are the message's ruler tokens; ``process_id`` is the process that will run the turn.
    Once this returns, the message is stored for good. Raises NotFound, TurnOpen when another
    message is queued already, TooManyReplies, DailyLimit, and MovedOn when the sender had not seen
    the conversation's last message (``last_seen_seq``).
    """
    row = locked(user_id, code)
    repeated = _repeated(row, client_msg_id)
    if repeated is not None:
        return repeated
    if row.send_when_done and row.draft_client_msg_id == client_msg_id:
        return Queued(conversation_id=row.pk, event_no=row.event_no)
    if last_seen_seq is not None and last_seen_seq < row.next_seq - 1:
        raise MovedOn(fields={"last_seq": row.next_seq - 1})
    if row.send_when_done:
        # Even with no open turn: the queued message was acknowledged and comes first.
        raise TurnOpen("A message is waiting already. Edit it or remove it, or wait for the reply.")
    if open_turn(row) is not None:
        # Otherwise it would wait until tomorrow, and nobody would be told.
        spending.require_within_limit(row.owner_id)
        Conversation.objects.filter(pk=row.pk).update(
            draft=text,
            draft_client_msg_id=client_msg_id,
            send_when_done=True,
            event_no=F("event_no") + 1,
        )
        return Queued(conversation_id=row.pk, event_no=row.event_no + 1)
    if row.draft or row.draft_client_msg_id:
        Conversation.objects.filter(pk=row.pk).update(draft="", draft_client_msg_id=None)
    return begin(
        row,
        text=text,
        client_msg_id=client_msg_id,
        tokens=tokens,
        model=model,
        process_id=process_id,
    )


def accept_queued(
    conversation_id: int, *, count: Callable[[str], int], model: str, process_id: str
) -> Accepted | None:
    """Send the queued draft, if there is one, no turn is open, and its owner may have a turn.

    ``count`` gives the ruler tokens of a message. ``model`` is used if the conversation names none.
    """
    # Usually nothing is queued: then no transaction is begun, for which all writers would wait.
    if not Conversation.objects.filter(pk=conversation_id, send_when_done=True).exists():
        return None
    return _accept_queued(conversation_id, count, model, process_id)


@transaction.atomic
def _accept_queued(
    conversation_id: int, count: Callable[[str], int], model: str, process_id: str
) -> Accepted | None:
    row = (
        Conversation.objects.select_for_update()
        .filter(pk=conversation_id, deleted_at=None, send_when_done=True)
        .first()
    )
    if row is None or open_turn(row) is not None or not reply_limit.within_limit(row.owner_id):
        return None
    text, client_msg_id = row.draft, row.draft_client_msg_id
    Conversation.objects.filter(pk=row.pk).update(
        draft="", draft_client_msg_id=None, send_when_done=False
    )
    return begin(
        row,
        text=text,
        client_msg_id=client_msg_id,
        tokens=count(text),
        model=row.model or model,
        process_id=process_id,
    )


def orphaned_queues() -> list[int]:
    """Conversations with a queued draft and no open turn, because a process died in between."""
    opened = Turn.objects.filter(conversation=OuterRef("pk"), finished_at=None)
    waiting = Conversation.objects.filter(~Exists(opened), deleted_at=None, send_when_done=True)
    return list(waiting.values_list("pk", flat=True))


@transaction.atomic
def change_queue(user_id: int, code: str, action: str, text: str = "") -> int:
    """``edit`` the queued text, or ``remove`` it from the queue, so that it is a draft again.

    Raises NotFound, and NothingQueued if it was sent meanwhile, so that no edit is lost silently.
    """
    row = locked(user_id, code)
    if not row.send_when_done:
        raise NothingQueued
    changes = {"draft": text} if action == "edit" else {"send_when_done": False}
    Conversation.objects.filter(pk=row.pk).update(**changes, event_no=F("event_no") + 1)
    return row.event_no + 1


def repeated(user_id: int, code: str, client_msg_id: uuid.UUID) -> Accepted | None:
    """The turn that this ``client_msg_id`` began, if it was sent before. Raises NotFound."""
    return _repeated(owned(user_id, code), client_msg_id)


def request_stop(user_id: int, code: str) -> tuple[int, int]:
    """Request the open turn's end. Returns (conversation id, turn id). Raises NotFound and
    NothingToStop."""
    row = owned(user_id, code)
    turn = open_turn(row)
    if turn is None:
        raise NothingToStop
    Turn.objects.filter(pk=turn, finished_at=None, stop_requested_at=None).update(
        stop_requested_at=Now()
    )
    return row.pk, turn


aaccept = in_database_thread(accept)
aaccept_queued = in_database_thread(accept_queued)
aorphaned_queues = in_database_thread(orphaned_queues, lane="background")
achange_queue = in_database_thread(change_queue)
arepeated = in_database_thread(repeated)
arequest_stop = in_database_thread(request_stop)
