"""The beginning of a turn: the transaction that makes sure no message is lost or doubled."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils import timezone

from chatapp.context.request import ConversationSnapshot
from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.views import message_view
from chatapp.conversations.ownership import owned
from chatapp.conversations.turns import reply_limit, spending, statements
from chatapp.conversations.turns.first_request import snapshot_for, with_begun
from chatapp.conversations.turns.standing import locked, standing
from chatapp.errors import MovedOn, NothingQueued, NothingToStop, TurnOpen
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole, MessageStatus, Turn
from compression.database import in_database_thread


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
    snapshot: ConversationSnapshot | None = None
    """What the turn's first request is made of; None if that is still to be read."""


@dataclass(frozen=True, kw_only=True)
class Queued:
    """The text waits as the conversation's draft, and is sent when the open turn ends."""

    conversation_id: int
    event_no: int


def open_turn(row: Conversation) -> int | None:
    """The id of the open turn, if there is one."""
    return row.turns.filter(finished_at__isnull=True).values_list("pk", flat=True).first()


#: Gives the name of the model that answers in a conversation, or refuses the message.
Admit = Callable[[ConversationSnapshot], str]


def _allocate(row: Conversation, count: int, **changes: Any) -> int:
    """Take ``count`` seqs and one ``event_no``; unarchives the row. Returns the first seq.

    ``changes`` are stored with that.
    """
    first = row.next_seq
    row.next_seq += count
    row.event_no += 1
    statements.allocate(conversation=row.pk, next_seq=row.next_seq, event_no=row.event_no)
    if changes:
        Conversation.objects.filter(pk=row.pk).update(**changes)
    return first


def _open(
    row: Conversation, question: Message | None, model: str, process_id: str, at: datetime
) -> Turn:
    """Store the turn, leased to the process that will run it."""
    values = {"model": model, "lease_token": process_id, "event_no": row.event_no, "started_at": at}
    asked = question.pk if question else None
    (pk,) = statements.open_turn(conversation=row.pk, user_message=asked, **values)
    return Turn(pk=pk, conversation=row, user_message=question, **values)


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
    running: int | None = None,
    clears_draft: bool = False,
) -> Accepted:
    """Store the turn, the empty reply, and the user's message unless it exists (``question``).

    ``running``: the owner's open turns, if counted. Raises TooManyReplies and DailyLimit.
    """
    reply_limit.require_within_limit(row.owner_id, running)
    draft = {"draft": "", "draft_client_msg_id": None} if clears_draft else {}
    first = _allocate(row, 1 if question else 2, **draft)
    at = timezone.now()
    turn = _open(row, question, model, process_id, at)
    if question is None:
        stored = _store_both(row, turn, text or "", client_msg_id, tokens, at)
        question = stored[0]
    else:
        _ask_again(row, turn, question)
        changed = (*changed, message_view(question))
        stored = [_reply(row, turn, at)]
        (stored[0].pk,) = statements.reply(**_same(stored[0]), seq=first)
    reply = stored[-1]
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


def _ask_again(row: Conversation, turn: Turn, question: Message) -> None:
    """The question now belongs to the new turn, so that an open turn is never compressed.

    The turn that it belonged to is told which message it answered.
    """
    row.turns.filter(messages=question, user_message=None).update(user_message=question)
    question.turn, question.event_no = turn, row.event_no
    question.save(update_fields=["turn", "event_no"])


def _store_both(
    row: Conversation,
    turn: Turn,
    text: str,
    client_msg_id: uuid.UUID | None,
    tokens: int,
    at: datetime,
) -> list[Message]:
    """Store the user's message and the empty reply."""
    question = _message(row, turn, row.next_seq - 2, MessageRole.USER, at)
    question.text, question.client_msg_id, question.token_count = text, client_msg_id, tokens
    reply = _reply(row, turn, at)
    asked = {"seq": question.seq, "text": text, "client_msg_id": client_msg_id}
    question.pk, reply.pk = statements.question_and_reply(
        **_same(reply), **asked, token_count=tokens, reply_seq=reply.seq
    )
    return [question, reply]


def _reply(row: Conversation, turn: Turn, at: datetime) -> Message:
    reply = _message(row, turn, row.next_seq - 1, MessageRole.ASSISTANT, at)
    reply.status = MessageStatus.STREAMING
    return reply


def _message(row: Conversation, turn: Turn, seq: int, role: MessageRole, at: datetime) -> Message:
    return Message(
        conversation=row, seq=seq, turn=turn, role=role, event_no=row.event_no, created_at=at
    )


def _same(one: Message) -> dict[str, Any]:
    """What the messages of a send have in common."""
    ids = {"conversation": one.conversation_id, "turn": one.turn_id}
    return {**ids, "event_no": one.event_no, "created_at": one.created_at}


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


def _require_no_other(row: Conversation, *, beside_held: bool) -> None:
    if row.send_when_done:
        # Even with no open turn: the queued message was acknowledged and comes first.
        raise TurnOpen("A message is waiting already. Edit it or remove it, or wait for the reply.")
    if row.held and not beside_held:
        raise TurnOpen("A message is waiting already. Send it now or keep it as a draft first.")


@transaction.atomic
def accept(
    user_id: int,
    code: str,
    *,
    text: str,
    client_msg_id: uuid.UUID,
    tokens: int,
    admit: Admit,
    process_id: str,
    last_seen_seq: int | None = None,
    beside_held: bool = False,
) -> Accepted | Queued:
    """Store a message and begin its turn; while a turn is open, queue the message as the draft.

    ``tokens`` are the message's ruler tokens; ``process_id`` is the process that will run the turn.
    ``beside_held``: a held message stays so. Once this returns, the message is stored for good.
    Raises NotFound, what ``admit`` raises, TurnOpen when another message is queued or held already,
    TooManyReplies, DailyLimit, and MovedOn when ``last_seen_seq`` is not the last message.
    """
    row = locked(user_id, code, with_owner=True)
    stands = standing(row, client_msg_id)
    repeated = _repeated(row, client_msg_id) if stands.repeated is not None else None
    if repeated is not None:
        return repeated
    snapshot = snapshot_for(row, stands)
    model = admit(snapshot)
    waits = row.send_when_done or row.held
    if waits and row.draft_client_msg_id == client_msg_id:
        return Queued(conversation_id=row.pk, event_no=row.event_no)
    if last_seen_seq is not None and last_seen_seq < row.next_seq - 1:
        raise MovedOn(fields={"last_seq": row.next_seq - 1})
    opened = stands.opened is not None
    _require_no_other(row, beside_held=beside_held and not opened)
    if opened:
        return _queue(row, text, client_msg_id)
    accepted = begin(
        row,
        text=text,
        client_msg_id=client_msg_id,
        tokens=tokens,
        model=model,
        process_id=process_id,
        running=stands.running or 0,
        clears_draft=not row.held and bool(row.draft or row.draft_client_msg_id),
    )
    begun = with_begun(row, snapshot, turn=accepted.turn, model=model, text=text, tokens=tokens)
    return replace(accepted, snapshot=begun)


def _queue(row: Conversation, text: str, client_msg_id: uuid.UUID) -> Queued:
    # Otherwise it would wait until tomorrow, and nobody would be told.
    spending.require_within_limit(row.owner_id)
    Conversation.objects.filter(pk=row.pk).update(
        draft=text,
        draft_client_msg_id=client_msg_id,
        send_when_done=True,
        event_no=F("event_no") + 1,
    )
    return Queued(conversation_id=row.pk, event_no=row.event_no + 1)


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
    """``edit`` the queued or held text, or ``remove`` it, so that it is a draft again.

    Raises NotFound, and NothingQueued if it was sent meanwhile, so that no edit is lost silently.
    """
    row = locked(user_id, code)
    if not (row.send_when_done or row.held):
        raise NothingQueued
    changes: dict[str, Any] = {"draft": text}
    if action == "remove":
        changes = {"send_when_done": False, "draft_client_msg_id": None}
    Conversation.objects.filter(pk=row.pk).update(**changes, event_no=F("event_no") + 1)
    return row.event_no + 1


@transaction.atomic
def release(user_id: int, code: str) -> int | None:
    """Queue the held message, if there is one, and request the end of the open turn before it.

    Returns that turn; None if none is open. Raises NotFound.
    """
    row = locked(user_id, code)
    if row.held:
        Conversation.objects.filter(pk=row.pk).update(
            send_when_done=True, event_no=F("event_no") + 1
        )
    turn = open_turn(row)
    if turn is not None:
        _request_end(turn)
    return turn


def repeated(user_id: int, code: str, client_msg_id: uuid.UUID) -> Accepted | None:
    """The turn that this ``client_msg_id`` began, if it was sent before. Raises NotFound."""
    return _repeated(owned(user_id, code), client_msg_id)


@transaction.atomic
def request_stop(user_id: int, code: str, *, hold: bool = False) -> tuple[int, int, bool]:
    """Request the open turn's end. Returns the ids of conversation and turn, and if it holds.

    ``hold``: a queued message is not sent then; it is held until its writer decides. Raises
    NotFound and NothingToStop.
    """
    row = locked(user_id, code) if hold else owned(user_id, code)
    turn = open_turn(row)
    if turn is None:
        raise NothingToStop
    holds = hold and row.send_when_done
    if holds:
        Conversation.objects.filter(pk=row.pk).update(
            send_when_done=False, event_no=F("event_no") + 1
        )
    _request_end(turn)
    return row.pk, turn, holds


def _request_end(turn: int) -> None:
    asked = Turn.objects.filter(pk=turn, finished_at=None, stop_requested_at=None)
    asked.update(stop_requested_at=Now())


aaccept = in_database_thread(accept)
aaccept_queued = in_database_thread(accept_queued)
aorphaned_queues = in_database_thread(orphaned_queues, lane="background")
achange_queue = in_database_thread(change_queue)
arepeated = in_database_thread(repeated)
arelease = in_database_thread(release)
arequest_stop = in_database_thread(request_stop)
