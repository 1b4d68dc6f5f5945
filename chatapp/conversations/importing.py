"""Storing a conversation that was read from a foreign file: whole or not at all, and once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

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
from chatapp.transfer.values import ForeignConversation
from compression.database import across

BATCH = 500
# An import is one stored change: every row of it carries this number.
FIRST_EVENT = 1


@dataclass(frozen=True, kw_only=True)
class ImportedConversation:
    """Where an import is to be found."""

    code: str
    created: bool
    #: False: the same messages had been imported before, and nothing was changed.
    deleted: bool = False
    #: The one imported before lies in the bin.


def find_imported(owner_id: int, fingerprint: str) -> ImportedConversation | None:
    """The person's conversation that was made from the same messages, if there is one."""
    row = (
        Conversation.objects.filter(owner_id=owner_id, source_fingerprint=fingerprint)
        .only("code", "deleted_at")
        .first()
    )
    if row is None:
        return None
    return ImportedConversation(
        code=str(row.code), created=False, deleted=row.deleted_at is not None
    )


def store_import(
    owner_id: int,
    foreign: ForeignConversation,
    *,
    tokens: Sequence[int],
    title: str,
    title_source: TitleSource,
    keep_system_prompt: bool = False,
) -> ImportedConversation:
    """Store a conversation in one transaction of its own.

    ``tokens`` holds the ruler tokens of each message, in their order. Messages get seq 1, 2, 3 …;
    each user message begins a turn, which is complete. What was imported before is found again,
    also when two imports of it run at the same moment.
    """
    fingerprint = foreign.fingerprint
    found = find_imported(owner_id, fingerprint)
    if found is not None:
        return found
    try:
        with transaction.atomic():
            code = _store(
                Conversation(
                    owner_id=owner_id,
                    title=title,
                    title_source=title_source,
                    system_prompt=foreign.system_prompt if keep_system_prompt else "",
                    source_fingerprint=fingerprint,
                    next_seq=len(foreign.messages) + 1,
                    event_no=FIRST_EVENT,
                    seen_event_no=FIRST_EVENT,
                ),
                foreign,
                tokens,
            )
    except IntegrityError:
        found = find_imported(owner_id, fingerprint)
        if found is None:
            raise
        return found
    return ImportedConversation(code=code, created=True)


def _store(conversation: Conversation, foreign: ForeignConversation, tokens: Sequence[int]) -> str:
    conversation.save(force_insert=True)
    moments = list(_moments(foreign, conversation.updated_at))
    turns = _turns(conversation, foreign, moments)
    Turn.objects.bulk_create(turns, batch_size=BATCH)
    Message.objects.bulk_create(_messages(conversation, foreign, tokens, moments, turns), BATCH)
    first = Message.objects.filter(turn=OuterRef("pk"), role=MessageRole.USER)
    Turn.objects.filter(conversation=conversation).update(
        user_message=Subquery(first.values("pk")[:1]), started_at=F("finished_at")
    )
    Conversation.objects.filter(pk=conversation.pk).update(created_at=moments[0])
    return str(conversation.code)


def _moments(foreign: ForeignConversation, now: datetime) -> Iterator[datetime]:
    """When each message was written; for those that do not say, the last known time before."""
    last = next((one.created_at for one in foreign.messages if one.created_at), now)
    for one in foreign.messages:
        last = one.created_at or last
        yield last


def _turns(
    conversation: Conversation, foreign: ForeignConversation, moments: Sequence[datetime]
) -> list[Turn]:
    """One ended turn for each user message; it ends with the last message before the next."""
    turns: list[Turn] = []
    for one, moment in zip(foreign.messages, moments, strict=True):
        if one.role == "user":
            turns.append(
                Turn(
                    conversation=conversation,
                    status=TurnStatus.COMPLETE,
                    event_no=FIRST_EVENT,
                )
            )
        if turns:
            turns[-1].finished_at = moment
    return turns


def _messages(
    conversation: Conversation,
    foreign: ForeignConversation,
    tokens: Sequence[int],
    moments: Sequence[datetime],
    turns: Sequence[Turn],
) -> Iterator[Message]:
    """The rows; messages before the first user message belong to no turn."""
    rest = iter(turns)
    turn: Turn | None = None
    parts = zip(foreign.messages, tokens, moments, strict=True)
    for seq, (one, count, moment) in enumerate(parts, start=1):
        if one.role == "user":
            turn = next(rest)
        yield Message(
            conversation=conversation,
            seq=seq,
            turn=turn,
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
            token_count=count,
            event_no=FIRST_EVENT,
            created_at=moment,
        )


afind_imported = across(find_imported)
astore_import = across(store_import)
