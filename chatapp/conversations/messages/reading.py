"""The reads for screens and requests: pages, changes, and the snapshot for a request.

Each function reads in one unit of work; summary and boundary always come from one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db.models import BigIntegerField, Q, QuerySet
from django.utils.crypto import salted_hmac

from chatapp.context.reply_options import ReplyOptions
from chatapp.context.request import ConversationSnapshot, StoredMessage
from chatapp.conversations.listing import origin, parts
from chatapp.conversations.messages.kept import Messages, keep, messages_of, pinned_before
from chatapp.conversations.messages.measures import LastRequests, last_requests
from chatapp.conversations.messages.paging import FIRST_MESSAGES, for_screen, message_page
from chatapp.conversations.messages.stored import as_values, live, tail
from chatapp.conversations.messages.views import message_view, turn_views, with_questions
from chatapp.conversations.own_instructions import own_instructions
from chatapp.conversations.ownership import owned
from chatapp.conversations.projects.request_part import project_part
from chatapp.conversations.summaries.compressions import compression_view
from chatapp.conversations.summaries.versions import carried_lines
from chatapp.errors import NotFound
from chatapp.live.view_models import (
    CompressionView,
    ContextView,
    ConversationView,
    MessageView,
    PageView,
)
from chatapp.models import (
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    Turn,
    TurnStatus,
)
from compression.database import in_database_thread, snapshot
from compression.store import compression_state
from compression.store.worded import worded

# Most changed messages sent after a reconnect; a page shows fewer.
STATE_MESSAGES = 200
QUIET_ENDS = (TurnStatus.COMPLETE,)
# Makes the context view from a conversation, in the same unit of work. Passed in, because this
# package knows neither windows nor calibrations.
ContextBuilder = Callable[[Conversation], ContextView]


def conversation_view(row: Conversation) -> ConversationView:
    """The conversation's own figures and settings."""
    return ConversationView(
        code=str(row.code),
        title=row.title,
        model=row.model,
        event_no=row.event_no,
        created_at=row.created_at,
        updated_at=row.updated_at,
        system_prompt=row.system_prompt,
        draft=row.draft,
        queued=row.send_when_done,
        held=row.held,
        pinned=row.pinned_at is not None,
        archived=row.archived_at is not None,
        threshold=row.threshold,
        keep_turns=row.keep_turns,
        compression_off=bool(row.compression_off),
        temperature=row.temperature,
        reasoning_effort=row.reasoning_effort or "",
        answer_tokens=row.answer_tokens,
        preview_first=bool(row.preview_first),
        project=row.project.slug if row.project else "",
    )


def stored_messages(
    conversation_id: int, *, after_seq: int, through_seq: int | None = None
) -> list[StoredMessage]:
    """Live messages with ``after_seq`` < seq <= ``through_seq``, in order, in one query."""
    if through_seq is None:
        return tail(conversation_id, after_seq=after_seq)
    return as_values(conversation_id, Q(seq__gt=after_seq, seq__lte=through_seq))


def snapshot_without_tail(row: Conversation) -> ConversationSnapshot:
    """The snapshot for a request without its tail. Expects ``row`` freshly read."""
    pinned = pinned_before(row.pk, row.compressed_through)
    return _snapshot(row, last_requests(row), pinned)


def snapshot_of(
    row: Conversation, messages: Messages, *, instructions: str | None = None
) -> ConversationSnapshot:
    """The whole snapshot for a request. ``instructions``: the owner's, if they have been read."""
    found = _snapshot(row, messages.last, messages.pinned, instructions)
    return replace(found, tail=messages.tail)


def _snapshot(
    row: Conversation,
    last: LastRequests,
    pinned: tuple[StoredMessage, ...],
    instructions: str | None = None,
) -> ConversationSnapshot:
    if instructions is None:
        instructions = own_instructions(row.owner_id)
    digest = salted_hmac(
        "summary", f"{row.code}:{row.compression_version}", algorithm="sha256"
    ).hexdigest()
    return ConversationSnapshot(
        conversation_id=row.pk,
        owner_id=row.owner_id,
        code=str(row.code),
        model=row.model,
        system_prompt=row.system_prompt,
        own_instructions=instructions,
        project=project_part(row),
        options=ReplyOptions(
            temperature=row.temperature,
            reasoning_effort=row.reasoning_effort or "",
            answer_tokens=row.answer_tokens,
        ),
        summary=row.compressed_context,
        carried=carried_lines(row) if row.compressed_context else frozenset(),
        version=row.compression_version,
        boundary=row.compressed_through,
        truncated_through=row.truncated_through,
        event_no=row.event_no,
        reports=last.reports,
        tools=last.tools,
        # Digits, because three of them are one ruler token: all versions' marks have the same size.
        mark=f"=== {int(digest, 16) % 10**18:018d} ===",
        pinned=pinned,
        threshold=row.threshold,
        keep_turns=row.keep_turns,
        compression_off=bool(row.compression_off),
        preview_first=bool(row.preview_first),
    )


@snapshot()
def owned_snapshot_without_tail(user_id: int, code: str) -> ConversationSnapshot:
    """The snapshot for the person's next request without its tail. Raises NotFound."""
    return snapshot_without_tail(owned(user_id, code))


@snapshot()
def snapshot_with_tail(conversation_id: int) -> ConversationSnapshot:
    """The snapshot for the next request. Raises NotFound for a deleted conversation."""
    return _with_tail(_present(conversation_id))


@snapshot()
def unlocked_snapshot_with_tail(conversation_id: int) -> ConversationSnapshot | None:
    """The same; None while a compression locks the conversation."""
    row = _present(conversation_id)
    return None if compression_state(row).locks_input else _with_tail(row)


def _present(conversation_id: int) -> Conversation:
    row = _there.first(conversation=conversation_id)
    if row is None:
        raise NotFound
    return row


def _with_tail(row: Conversation) -> ConversationSnapshot:
    messages = messages_of(row)
    keep(row, messages)
    return snapshot_of(row, messages)


@snapshot()
def page(user_id: int, code: str, context: ContextBuilder, **place: int | None) -> PageView:
    """The content of a page: the newest messages, or those at ``place``. Raises NotFound.

    ``place`` is ``before``, ``after`` or ``around`` a seq, as for
    :func:`chatapp.conversations.messages.paging.message_page`.
    """
    row = owned(user_id, code)
    shown = message_page(row, **place)
    theirs = {one.turn_id for one in shown.messages if one.turn_id}
    loud = Q(pk__in=theirs) & ~Q(status__in=QUIET_ENDS)
    turns = turn_views(with_questions(row.turns.filter(Q(finished_at__isnull=True) | loud)))
    return PageView(
        conversation=conversation_view(row),
        messages=[message_view(one) for one in shown.messages],
        turn=next((one for one in turns if one.finished_at is None), None),
        turns=[one for one in turns if one.finished_at is not None],
        compression=compression_view(row),
        context=context(row),
        has_older=shown.has_older,
        has_newer=shown.has_newer,
        origin=origin(row),
        part=parts(row),
    )


@snapshot()
def changes(conversation_id: int, after: int, context: ContextBuilder) -> PageView:
    """The changes since ``after`` (an ``event_no``); all that a page shows when it is 0.

    The reply being written is always among the messages, since its text grows without changing a
    number. Raises NotFound for a deleted conversation.
    """
    row = _present(conversation_id)
    if after:
        messages = _changed(conversation=row.pk, after=after)
        ended = _ended(conversation=row.pk, after=after)
    else:
        messages = _newest(conversation=row.pk)
        ended = _ended_loudly(conversation=row.pk)
    opened = turn_views(_open(conversation=row.pk))
    shown = {one.seq: one for one in messages}
    written = opened[0].seq if opened else None
    if written is not None and written not in shown:
        shown |= {one.seq: one for one in for_screen(row.messages.filter(seq=written))}
    return PageView(
        conversation=conversation_view(row),
        messages=[message_view(shown[seq]) for seq in sorted(shown)],
        turn=opened[0] if opened else None,
        turns=turn_views(ended),
        compression=compression_view(row),
        context=context(row),
    )


@snapshot()
def overview(
    conversation_id: int, context: ContextBuilder
) -> tuple[int, CompressionView, ContextView]:
    """``event_no``, compression and context of a conversation. Raises NotFound."""
    row = _conversation.first(conversation=conversation_id)
    if row is None:
        raise NotFound
    return row.event_no, compression_view(row), context(row)


@snapshot()
def context_of(conversation_id: int, context: ContextBuilder) -> ContextView:
    """The usage of a conversation's next request. Raises NotFound."""
    row = _conversation.first(conversation=conversation_id)
    if row is None:
        raise NotFound
    return context(row)


@worded(conversation=BigIntegerField)
def _conversation(conversation: int) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk=conversation)


@worded(conversation=BigIntegerField)
def _there(conversation: int) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk=conversation, deleted_at__isnull=True)


@worded(conversation=BigIntegerField)
def _newest(conversation: int) -> QuerySet[Message]:
    rows = for_screen(Message.objects.filter(conversation_id=conversation))
    return rows.order_by("-seq")[:FIRST_MESSAGES]


@worded(conversation=BigIntegerField, after=BigIntegerField)
def _changed(conversation: int, after: int) -> QuerySet[Message]:
    changed = Message.objects.filter(conversation_id=conversation, event_no__gt=after)
    return for_screen(changed).order_by("-seq")[:STATE_MESSAGES]


@worded(conversation=BigIntegerField)
def _open(conversation: int) -> QuerySet[Turn]:
    return with_questions(Turn.objects.filter(conversation_id=conversation, finished_at=None))


@worded(conversation=BigIntegerField, after=BigIntegerField)
def _ended(conversation: int, after: int) -> QuerySet[Turn]:
    ended = Turn.objects.filter(finished_at__isnull=False, event_no__gt=after)
    return with_questions(ended.filter(conversation_id=conversation)).order_by("-pk")[
        :STATE_MESSAGES
    ]


@worded(conversation=BigIntegerField)
def _ended_loudly(conversation: int) -> QuerySet[Turn]:
    ended = Turn.objects.filter(conversation_id=conversation, finished_at__isnull=False)
    loud = ended.exclude(status__in=QUIET_ENDS)
    return with_questions(loud).order_by("-pk")[:FIRST_MESSAGES]


def last_reply_has_text(conversation_id: int) -> bool:
    """Whether the last reply has text or calls of tools, or is being written."""
    replies = live(conversation_id).filter(role=MessageRole.ASSISTANT).order_by("-seq")
    found = replies.values_list("text", "tool_calls", "status").first()
    text, calls, status = found or ("", [], "")
    return bool(text.strip() or calls) or status == MessageStatus.STREAMING


def turn(user_id: int, code: str, turn_id: int) -> dict[str, Any]:
    """One turn with its manifest, as JSON. Raises NotFound."""
    found = owned(user_id, code).turns.filter(pk=turn_id)
    views = turn_views(with_questions(found))
    if not views:
        raise NotFound
    return {**views[0].as_json(), "manifest": found.values_list("manifest", flat=True).get()}


def last_turn(user_id: int, code: str) -> dict[str, Any] | None:
    """The same of the turn that ended last; None if none has. Raises NotFound."""
    ended = owned(user_id, code).turns.filter(finished_at__isnull=False).order_by("-pk")
    newest = ended.values_list("pk", flat=True).first()
    return turn(user_id, code, newest) if newest is not None else None


def message(user_id: int, code: str, seq: int) -> MessageView:
    """One message. Raises NotFound."""
    row = for_screen(Message.objects.filter(conversation=owned(user_id, code), seq=seq)).first()
    if row is None:
        raise NotFound
    return message_view(row)


asnapshot_with_tail = in_database_thread(snapshot_with_tail)
aunlocked_snapshot_with_tail = in_database_thread(unlocked_snapshot_with_tail)
aowned_snapshot_without_tail = in_database_thread(owned_snapshot_without_tail)
alast_reply_has_text = in_database_thread(last_reply_has_text)
aturn = in_database_thread(turn)
alast_turn = in_database_thread(last_turn)
amessage = in_database_thread(message)
