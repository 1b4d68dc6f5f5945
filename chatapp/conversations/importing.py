"""Storing a conversation that was read from a foreign file: whole or not at all, and once.

A long conversation is stored in portions, so that nobody waits for one long transaction. Until the
last of them it is marked ``importing`` and counts as deleted, so that no query of its owner finds
it; what an import that broke off has left is taken away in portions too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import IntegrityError, transaction
from django.db.models import F, OuterRef, Subquery

from chatapp.models import (
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    TitleSource,
    Turn,
    TurnStatus,
)
from chatapp.transfer.values import ForeignConversation, ForeignMessage, Identity
from compression import store
from compression.database import across

BATCH = 500
# An import is one stored change: every row of it carries this number.
FIRST_EVENT = 1
_TERMINAL = frozenset(TurnStatus.values) - {
    TurnStatus.WAITING,
    TurnStatus.COMPRESSING,
    TurnStatus.STREAMING,
    TurnStatus.TOOLS,
}


@dataclass(frozen=True, kw_only=True)
class ImportedConversation:
    """Where an import is to be found."""

    code: str
    created: bool
    #: False: the same conversation had been imported before, and nothing was changed.
    deleted: bool = False
    #: The one imported before lies in the bin.
    earlier: str = ""
    #: The code of a shorter or longer state of the same conversation that is here as well.


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A message to be stored, and its ruler tokens."""

    message: ForeignMessage
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A conversation of which a part is stored."""

    conversation_id: int
    code: str
    owner_id: int
    identity: Identity
    moment: datetime
    #: Of the last message; of the next one too, when that does not say its own.
    created_at: datetime
    seq: int = 0
    turn_id: int | None = None
    turn: int | None = None
    #: The last turn, and its number in the file where that gives one.
    question_id: int | None = None
    #: The last user message.


def find_imported(owner_id: int, identity: Identity) -> ImportedConversation | None:
    """The person's conversation that was made from the same one, if there is one.

    What an older release imported was known by its content alone: the first conversation with that
    content is taken for it, and known by its whole identity from then on.
    """
    mine = Conversation.objects.filter(owner_id=owner_id)
    row = _known(mine.filter(source_fingerprint=identity.whole))
    if row is None and identity.content != identity.whole:
        row = _known(mine.filter(source_fingerprint=identity.content))
        if row is not None:
            Conversation.objects.filter(pk=row.pk, source_fingerprint=identity.content).update(
                source_fingerprint=identity.whole, source_key=identity.source
            )
    if row is None:
        return None
    return ImportedConversation(
        code=str(row.code), created=False, deleted=row.deleted_at is not None
    )


def _known(rows: Iterable[Conversation]) -> Conversation | None:
    return next(iter(rows), None)


def begin_import(
    owner_id: int,
    foreign: ForeignConversation,
    identity: Identity,
    *,
    title: str,
    title_source: TitleSource,
    keep_system_prompt: bool = False,
    job_id: int | None = None,
) -> Unfinished:
    """Store a conversation without its messages, which nobody sees before :func:`finish_import`."""
    now = datetime.now(UTC)
    known = (one.created_at for one in foreign.messages if one.created_at)
    first = foreign.created_at or next(known, None) or foreign.updated_at or now
    row = Conversation(
        owner_id=owner_id,
        title=title,
        title_source=title_source,
        system_prompt=foreign.system_prompt if keep_system_prompt else "",
        event_no=FIRST_EVENT,
        seen_event_no=FIRST_EVENT,
        import_job_id=job_id,
        importing=True,
        deleted_at=now,
    )
    if (own := foreign.own) is not None:
        row.system_prompt = own.system_prompt
        row.model = own.model
        row.threshold, row.keep_turns = own.threshold, own.keep_turns
        row.compression_off = own.compression_off
        row.pinned_at = now if own.pinned else None
        row.archived_at = now if own.archived else None
        row.truncated_through = own.truncated_through
    row.save(force_insert=True)
    return Unfinished(
        conversation_id=row.pk,
        code=str(row.code),
        owner_id=owner_id,
        identity=identity,
        moment=min(first, now),
        created_at=min(first, now),
    )


@transaction.atomic
def add_portion(unfinished: Unfinished, portion: Sequence[Counted]) -> Unfinished:
    """Store the next messages, in one transaction; where the conversation stands then.

    Each user message begins a turn, which is complete, unless the file has turns of its own.
    Raises IntegrityError when the conversation is gone.
    """
    placed = _placed(unfinished, portion)
    turns = list({id(one.turn): one.turn for one in placed if one.turn is not None}.values())
    new = [one for one in turns if one.pk is None]
    Turn.objects.bulk_create(new, BATCH)
    rows = [_message(unfinished, one) for one in placed]
    Message.objects.bulk_create(rows, BATCH)
    for old in turns[: len(turns) - len(new)]:
        Turn.objects.filter(pk=old.pk).update(finished_at=old.finished_at)
    last = placed[-1]
    question = _link(unfinished, rows, new)
    return replace(
        unfinished,
        moment=last.moment,
        seq=last.seq,
        turn_id=last.turn.pk if last.turn else unfinished.turn_id,
        turn=last.number,
        question_id=question,
    )


@dataclass(slots=True, kw_only=True)
class _Placed:
    """A message with its place: when, which number, and in which turn."""

    counted: Counted
    moment: datetime
    seq: int
    turn: Turn | None
    number: int | None


def _placed(unfinished: Unfinished, portion: Sequence[Counted]) -> list[_Placed]:
    """The messages of a portion and the turns that they belong to, of which the first may exist."""
    placed: list[_Placed] = []
    now = datetime.now(UTC)
    moment, number = unfinished.moment, unfinished.turn
    turn = Turn(pk=unfinished.turn_id) if unfinished.turn_id is not None else None
    for seq, counted in enumerate(portion, start=unfinished.seq + 1):
        one = counted.message
        moment = min(one.created_at or moment, now)
        begins = one.role == "user" if one.turn is None else one.turn != number
        if begins:
            turn = Turn(
                conversation_id=unfinished.conversation_id,
                status=TurnStatus.COMPLETE,
                event_no=FIRST_EVENT,
            )
        number = one.turn
        if turn is not None:
            turn.finished_at = moment
            turn.model = one.model or turn.model
            if one.turn_status:
                known = one.turn_status in _TERMINAL
                turn.status = TurnStatus(one.turn_status) if known else TurnStatus.INTERRUPTED
        placed.append(_Placed(counted=counted, moment=moment, seq=seq, turn=turn, number=number))
    return placed


def _message(unfinished: Unfinished, placed: _Placed) -> Message:
    one, moment = placed.counted.message, placed.moment
    return Message(
        conversation_id=unfinished.conversation_id,
        seq=placed.seq,
        turn_id=placed.turn.pk if placed.turn else None,
        role=one.role,
        text=one.text,
        reasoning=one.reasoning,
        tool_calls=list(one.tool_calls),
        tool_call_id=one.tool_call_id,
        tool_name=one.tool_name,
        added_context=one.added_context,
        status=MessageStatus.PARTIAL if one.partial else MessageStatus.COMPLETE,
        superseded_at=moment if one.superseded else None,
        pinned_at=moment if one.pinned else None,
        masked_at=moment if one.masked else None,
        token_count=placed.counted.tokens,
        event_no=FIRST_EVENT,
        created_at=moment,
    )


def _link(unfinished: Unfinished, rows: Sequence[Message], new: Sequence[Turn]) -> int | None:
    """Say of each new turn which message it answers; the last user message there is."""
    question = unfinished.question_id
    asking: set[int | None] = set()
    before: dict[int | None, int | None] = {}
    for row in rows:
        if row.role == MessageRole.USER:
            question = row.pk
            asking.add(row.turn_id)
        before.setdefault(row.turn_id, question)
    if new:
        first = Message.objects.filter(turn=OuterRef("pk"), role=MessageRole.USER).order_by("seq")
        Turn.objects.filter(
            conversation_id=unfinished.conversation_id, pk__gte=new[0].pk, pk__lte=new[-1].pk
        ).update(user_message=Subquery(first.values("pk")[:1]), started_at=F("finished_at"))
    for turn in new:
        if turn.pk not in asking:
            # Another answer to a question that was asked before.
            Turn.objects.filter(pk=turn.pk).update(user_message=before[turn.pk])
    return question


def finish_import(unfinished: Unfinished, foreign: ForeignConversation) -> ImportedConversation:
    """Let the conversation be seen, in one transaction.

    When the same one was imported meanwhile, that is the answer, and this one stays hidden.
    """
    own = foreign.own
    now = datetime.now(UTC)
    updated = min(foreign.updated_at or unfinished.moment, now)
    try:
        with transaction.atomic():
            if own is not None and own.versions:
                store.bring_versions(
                    unfinished.conversation_id,
                    own.versions,
                    active=own.active,
                    author_id=unfinished.owner_id,
                )
            Conversation.objects.filter(pk=unfinished.conversation_id).update(
                importing=False,
                deleted_at=None,
                source_fingerprint=unfinished.identity.whole,
                source_key=unfinished.identity.source,
                next_seq=unfinished.seq + 1,
                event_no=FIRST_EVENT,
                truncated_through=own.truncated_through if own else 0,
                created_at=unfinished.created_at,
                updated_at=max(updated, unfinished.created_at),
            )
    except IntegrityError:
        found = find_imported(unfinished.owner_id, unfinished.identity)
        if found is None:
            raise
        return found
    return ImportedConversation(code=unfinished.code, created=True, earlier=_earlier(unfinished))


def _earlier(unfinished: Unfinished) -> str:
    """The code of another state of the same conversation; empty when there is none."""
    if not unfinished.identity.source:
        return ""
    others = Conversation.objects.filter(
        owner_id=unfinished.owner_id,
        source_key=unfinished.identity.source,
        importing=False,
        deleted_at=None,
    ).exclude(pk=unfinished.conversation_id)
    code = others.order_by("-pk").values_list("code", flat=True).first()
    return str(code) if code else ""


def store_import(
    owner_id: int,
    foreign: ForeignConversation,
    *,
    tokens: Sequence[int],
    title: str,
    title_source: TitleSource,
    keep_system_prompt: bool = False,
    identity: Identity | None = None,
    job_id: int | None = None,
) -> ImportedConversation:
    """Store a short conversation at once: one transaction, in which others wait.

    ``tokens`` holds the ruler tokens of each message, in their order. What was imported before is
    found again, also when two imports of it run at the same moment.
    """
    identity = identity or foreign.identity
    found = find_imported(owner_id, identity)
    if found is not None:
        return found
    counted = [
        Counted(message=one, tokens=count)
        for one, count in zip(foreign.messages, tokens, strict=True)
    ]
    with transaction.atomic():
        unfinished = begin_import(
            owner_id,
            foreign,
            identity,
            title=title,
            title_source=title_source,
            keep_system_prompt=keep_system_prompt,
            job_id=job_id,
        )
        stored = finish_import(add_portion(unfinished, counted), foreign)
        if not stored.created:
            transaction.set_rollback(True)
    return stored


afind_imported = across(find_imported, bulk=True)
abegin_import = across(begin_import, bulk=True)
aadd_portion = across(add_portion, bulk=True)
afinish_import = across(finish_import, bulk=True)
astore_import = across(store_import, bulk=True)
