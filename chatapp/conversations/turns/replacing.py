"""Replacing messages by another text or another answer; the earlier ones are superseded."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from chatapp.conversations.messages import paging
from chatapp.conversations.messages.stored import live
from chatapp.conversations.messages.views import message_view
from chatapp.conversations.ownership import owned
from chatapp.conversations.turns.sending import Accepted, begin, open_turn
from chatapp.conversations.turns.standing import locked
from chatapp.errors import NotFound, Summarised, TurnOpen
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole
from compression.database import in_database_thread


def _supersede(row: Conversation, from_seq: int) -> tuple[MessageView, ...]:
    """Mark the live messages from ``from_seq`` on as superseded. Expects the row locked."""
    rows = list(paging.with_turns(live(row.pk)).filter(seq__gte=from_seq).order_by("seq"))
    now = timezone.now()
    for one in rows:
        one.superseded_at, one.event_no = now, row.event_no + 1
    Message.objects.bulk_update(rows, ["superseded_at", "event_no"])
    return tuple(message_view(one) for one in rows)


def _must_be_free(row: Conversation, seq: int) -> None:
    if open_turn(row) is not None:
        raise TurnOpen
    if seq <= row.compressed_through:
        raise Summarised(fields={"seq": seq, "boundary": row.compressed_through})


@transaction.atomic
def regenerate(
    user_id: int, code: str, *, model: str, process_id: str, seq: int | None = None
) -> Accepted:
    """Answer a user message again: the last one, or the one that ``seq`` is or answers.

    The messages after it are superseded. Raises NotFound, TurnOpen, TooManyReplies, and Summarised
    below the boundary.
    """
    row = locked(user_id, code)
    questions = paging.for_screen(live(row.pk)).filter(role=MessageRole.USER)
    if seq is not None:
        questions = questions.filter(seq__lte=seq)
    question = questions.order_by("-seq").first()
    if question is None:
        raise NotFound
    _must_be_free(row, question.seq)
    changed = _supersede(row, question.seq + 1)
    if question.seq <= row.truncated_through:
        # The question would be left out of its own request, so truncation is decided anew.
        Conversation.objects.filter(pk=row.pk).update(truncated_through=0)
    return begin(
        row,
        text=None,
        client_msg_id=None,
        tokens=0,
        model=model,
        process_id=process_id,
        question=question,
        changed=changed,
    )


@transaction.atomic
def edit(
    user_id: int, code: str, seq: int, *, text: str, tokens: int, model: str, process_id: str
) -> Accepted:
    """Send another text in place of a user message; it and what followed are superseded.

    Raises NotFound, TurnOpen, TooManyReplies, and Summarised below the boundary.
    """
    row = locked(user_id, code)
    message = live(row.pk).filter(role=MessageRole.USER, seq=seq).first()
    if message is None:
        raise NotFound
    _must_be_free(row, seq)
    changed = _supersede(row, seq)
    return begin(
        row,
        text=text,
        client_msg_id=None,
        tokens=tokens,
        model=model,
        process_id=process_id,
        changed=changed,
    )


def replaced(
    user_id: int, code: str, seq: int, *, after: int = 0
) -> tuple[list[MessageView], bool]:
    """Messages that stood before the live message ``seq``, after ``after``; whether more follow.

    Raises NotFound.
    """
    row = owned(user_id, code)
    if not live(row.pk).filter(seq=seq).exists():
        raise NotFound
    found = paging.replaced(row, seq, after=after)
    return [message_view(one) for one in found.messages], found.has_newer


aregenerate = in_database_thread(regenerate)
aedit = in_database_thread(edit)
areplaced = in_database_thread(replaced)
