"""The reads for screens and requests: pages, changes, and the snapshot for a request.

Each function reads in one unit of work; summary and boundary always come from one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac

from chatapp.context.request import ConversationSnapshot, StoredMessage
from chatapp.context.tokens import MESSAGE_OVERHEAD
from chatapp.conversations.listing import origin
from chatapp.conversations.messages.measures import last_requests
from chatapp.conversations.messages.paging import FIRST_MESSAGES, for_screen, message_page
from chatapp.conversations.messages.stored import as_values, live
from chatapp.conversations.ownership import owned
from chatapp.conversations.summaries.compressions import compression_view
from chatapp.conversations.summaries.versions import carried_lines
from chatapp.errors import NotFound
from chatapp.live.view_models import (
    ApprovalView,
    CompressionView,
    ContextView,
    ConversationView,
    MessageView,
    PageView,
    TurnView,
)
from chatapp.models import (
    ApprovalState,
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    Turn,
    TurnStatus,
)
from compression.database import in_database_thread, snapshot
from compression.store import compression_state

# Most changed messages sent after a reconnect; a page shows fewer.
STATE_MESSAGES = 200
QUIET_ENDS = (TurnStatus.COMPLETE,)
# Makes the context view from a conversation, in the same unit of work. Passed in, because this
# package knows neither windows nor calibrations.
ContextBuilder = Callable[[Conversation], ContextView]


def message_view(row: Message) -> MessageView:
    """A stored message in the form that is shown; needs a row from ``paging.for_screen``."""
    turn = row.turn if row.role == MessageRole.ASSISTANT else None
    ended = turn is not None and turn.finished_at is not None and not row.tool_calls
    return MessageView(
        seq=row.seq,
        role=row.role,
        text=row.text,
        status=row.status,
        event_no=row.event_no,
        created_at=row.created_at,
        turn=row.turn_id,
        reasoning=row.reasoning,
        added_context=row.added_context,
        tool_calls=row.tool_calls,
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        seconds=row.seconds,
        approvals=_approval_views(row) if row.tool_calls else [],
        token_count=row.token_count,
        pinned=row.pinned_at is not None,
        masked=row.masked_at is not None,
        superseded=row.superseded_at is not None,
        replaces=getattr(row, "replaced_at", None) is not None and row.superseded_at is None,
        client_msg_id=str(row.client_msg_id) if row.client_msg_id else None,
        model=turn.model if turn else "",
        usage=usage_view(turn) if turn and ended else {},
    )


def _approval_views(row: Message) -> list[ApprovalView]:
    """The questions about a message's calls. One that waits for nobody any more is over."""
    ended = row.turn is None or row.turn.finished_at is not None
    return [
        ApprovalView(
            call_id=one.call_id,
            tool=one.tool,
            state=ApprovalState.WITHDRAWN
            if ended and one.state == ApprovalState.WAITING
            else one.state,
            arguments=one.arguments,
            fingerprint=one.arguments_sha256,
            expires_at=one.expires_at,
        )
        for one in row.tool_approvals.order_by("pk")
    ]


def usage_view(turn: Turn) -> dict[str, Any]:
    """The tokens and the cost of a turn; None for figures that were not reported."""
    return {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "cached_tokens": turn.cached_tokens,
        "cost": float(turn.cost) if turn.cost is not None else None,
    }


def turn_views(turns: QuerySet[Turn]) -> list[TurnView]:
    """Turns with the first and the last assistant message of each, in at most three queries."""
    rows = list(turns.select_related("user_message").defer("manifest"))
    if not rows:
        return []
    replies: dict[int | None, list[tuple[int, int]]] = {row.pk: [] for row in rows}
    found = Message.objects.filter(turn__in=list(replies), role=MessageRole.ASSISTANT)
    for turn, *reply in found.order_by("seq").values_list("turn_id", "seq", "token_count"):
        replies[turn].append((reply[0], reply[1]))
    return [_turn_view(row, replies[row.pk]) for row in rows]


def _turn_view(row: Turn, replies: list[tuple[int, int]]) -> TurnView:
    """``replies``: seq and ruler tokens of each of the turn's assistant messages, oldest first."""
    first, last = (replies[0][0], replies[-1][0]) if replies else (None, None)
    text, reasoning = "", ""
    if row.finished_at is None and last is not None:
        written = Message.objects.filter(turn=row, seq=last).values_list("text", "reasoning")
        text, reasoning = written.get()
    return TurnView(
        turn=row.pk,
        status=row.status,
        event_no=row.event_no,
        model=row.model,
        message_seq=row.user_message.seq if row.user_message else None,
        reply_seq=first,
        seq=last,
        text=text,
        reasoning=reasoning,
        started_at=row.started_at,
        first_token_at=row.first_token_at,
        finished_at=row.finished_at,
        error=row.error,
        retry_notice=row.retry_notice,
        finish_reason=row.finish_reason,
        usage=usage_view(row),
        ruler_tokens=sum(count - MESSAGE_OVERHEAD for _, count in replies if count > 0),
    )


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
        pinned=row.pinned_at is not None,
        archived=row.archived_at is not None,
        threshold=row.threshold,
        keep_turns=row.keep_turns,
        compression_off=bool(row.compression_off),
    )


def stored_messages(
    conversation_id: int, *, after_seq: int, through_seq: int | None = None
) -> list[StoredMessage]:
    """Live messages with ``after_seq`` < seq <= ``through_seq``, in order, in one query."""
    rows = live(conversation_id).filter(seq__gt=after_seq)
    if through_seq is not None:
        rows = rows.filter(seq__lte=through_seq)
    return as_values(rows)


def snapshot_without_tail(row: Conversation) -> ConversationSnapshot:
    """The snapshot for a request without its tail. Expects ``row`` freshly read."""
    pinned: tuple[StoredMessage, ...] = ()
    if row.compressed_through:
        rows = live(row.pk).filter(seq__lte=row.compressed_through, pinned_at__isnull=False)
        pinned = tuple(as_values(rows))
    last = last_requests(row)
    digest = salted_hmac(
        "summary", f"{row.code}:{row.compression_version}", algorithm="sha256"
    ).hexdigest()
    return ConversationSnapshot(
        conversation_id=row.pk,
        owner_id=row.owner_id,
        code=str(row.code),
        model=row.model,
        system_prompt=row.system_prompt,
        summary=row.compressed_context,
        carried=carried_lines(row.pk) if row.compressed_context else frozenset(),
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
    row = Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=True).first()
    if row is None:
        raise NotFound
    return row


def _with_tail(row: Conversation) -> ConversationSnapshot:
    tail = stored_messages(row.pk, after_seq=row.compressed_through)
    return replace(snapshot_without_tail(row), tail=tuple(tail))


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
    turns = turn_views(row.turns.filter(Q(finished_at__isnull=True) | loud))
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
    )


@snapshot()
def changes(conversation_id: int, after: int, context: ContextBuilder) -> PageView:
    """The changes since ``after`` (an ``event_no``); all that a page shows when it is 0.

    The reply being written is always among the messages, since its text grows without changing a
    number. Raises NotFound for a deleted conversation.
    """
    row = _present(conversation_id)
    rows = for_screen(row.messages.all()).order_by("-seq")
    count = FIRST_MESSAGES
    if after:
        rows, count = rows.filter(event_no__gt=after), STATE_MESSAGES
    ended = row.turns.filter(finished_at__isnull=False, event_no__gt=after)
    if not after:
        ended = ended.exclude(status__in=QUIET_ENDS)
    opened = turn_views(row.turns.filter(finished_at__isnull=True))
    shown = {one.seq: one for one in rows[:count]}
    written = opened[0].seq if opened else None
    if written is not None and written not in shown:
        shown |= {one.seq: one for one in for_screen(row.messages.filter(seq=written))}
    return PageView(
        conversation=conversation_view(row),
        messages=[message_view(shown[seq]) for seq in sorted(shown)],
        turn=opened[0] if opened else None,
        turns=turn_views(ended.order_by("-pk")[:count]),
        compression=compression_view(row),
        context=context(row),
    )


@snapshot()
def overview(
    conversation_id: int, context: ContextBuilder
) -> tuple[int, CompressionView, ContextView]:
    """``event_no``, compression and context of a conversation. Raises NotFound."""
    row = Conversation.objects.filter(pk=conversation_id).first()
    if row is None:
        raise NotFound
    return row.event_no, compression_view(row), context(row)


@snapshot()
def context_of(conversation_id: int, context: ContextBuilder) -> ContextView:
    """The usage of a conversation's next request. Raises NotFound."""
    row = Conversation.objects.filter(pk=conversation_id).first()
    if row is None:
        raise NotFound
    return context(row)


def last_reply_has_text(conversation_id: int) -> bool:
    """Whether the last reply has text or calls of tools, or is being written."""
    replies = live(conversation_id).filter(role=MessageRole.ASSISTANT).order_by("-seq")
    found = replies.values_list("text", "tool_calls", "status").first()
    text, calls, status = found or ("", [], "")
    return bool(text.strip() or calls) or status == MessageStatus.STREAMING


def turn(user_id: int, code: str, turn_id: int) -> dict[str, Any]:
    """One turn with its manifest, as JSON. Raises NotFound."""
    found = owned(user_id, code).turns.filter(pk=turn_id)
    views = turn_views(found)
    if not views:
        raise NotFound
    return {**views[0].as_json(), "manifest": found.values_list("manifest", flat=True).get()}


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
amessage = in_database_thread(message)
