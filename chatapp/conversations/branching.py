"""A new conversation that branches off another at a message; and the copies that this takes."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from chatapp.conversations.ownership import owned
from chatapp.conversations.tools.servers import copy_choices
from chatapp.errors import NotFound
from chatapp.models import Conversation, Message, MessageStatus, Turn
from compression import store
from compression.database import in_database_thread

BATCH = 500


def like(row: Conversation, *, title: str) -> Conversation:
    """A new conversation with the settings of ``row``, unsaved."""
    return Conversation(
        owner_id=row.owner_id,
        project_id=row.project_id,
        title=title,
        title_source=row.title_source,
        model=row.model,
        system_prompt=row.system_prompt,
        threshold=row.threshold,
        keep_turns=row.keep_turns,
        compression_off=row.compression_off,
        temperature=row.temperature,
        reasoning_effort=row.reasoning_effort,
        answer_tokens=row.answer_tokens,
        preview_first=row.preview_first,
    )


def copy(source: list[Message], target: Conversation, *, renumber: bool) -> None:
    """Copy ended messages and their turns; ``renumber`` gives them the seqs 1, 2, 3 …"""
    turns: dict[int, Turn] = {}
    old_turns = Turn.objects.in_bulk({one.turn_id for one in source if one.turn_id})
    users: dict[int, int] = {}
    for old_id, old in old_turns.items():
        users[old_id] = old.user_message_id or 0
        old.pk, old.conversation, old.user_message_id = None, target, None
        old.lease_token, old.lease_expires_at = "", None
        old.event_no = 0
        old.finished_at = old.finished_at or timezone.now()
        old._state.adding = True
        old.save()
        turns[old_id] = old
    copies = []
    old_ids = []
    for number, one in enumerate(source, start=1):
        old_ids.append(one.pk)
        turn = turns.get(one.turn_id or 0)
        one.pk, one.conversation, one.turn = None, target, turn
        one.client_msg_id = None
        one.event_no = 0
        one.seq = number if renumber else one.seq
        if one.status == MessageStatus.STREAMING:
            one.status = MessageStatus.PARTIAL
        copies.append(one)
    Message.objects.bulk_create(copies, batch_size=BATCH)
    new_ids = dict(zip(old_ids, copies, strict=True))
    for old_id, turn in turns.items():
        question = new_ids.get(users[old_id])
        if question is not None:
            Turn.objects.filter(pk=turn.pk).update(user_message=question)


@transaction.atomic
def branch(user_id: int, code: str, seq: int) -> str:
    """A new conversation with messages 1 to ``seq`` under the same seqs. Returns its code.

    Superseded messages are copied too, and so are the versions of the summary whose span lies
    within; the newest becomes active. Messages of an open turn are not copied. With ``seq`` 0, only
    the settings are copied. Raises NotFound when there is no such message.
    """
    row = owned(user_id, code)
    messages = row.messages.filter(seq__lte=seq).order_by("seq")
    opened = row.turns.filter(finished_at__isnull=True).first()
    if opened is not None:
        first_open = row.messages.filter(turn=opened).order_by("seq").first()
        if first_open is not None:
            messages = messages.filter(seq__lt=first_open.seq)
    source = list(messages)
    if seq and not (source and row.messages.filter(seq=seq).exists()):
        raise NotFound
    last = source[-1].seq if source else 0
    target = like(row, title=row.title)
    target.branched_from = row
    # Its summary may cite messages of the conversation that the source continues.
    target.continued_from_id = row.continued_from_id
    target.part, target.first_part_id = row.part, row.first_part_id
    target.next_seq = last + 1
    target.save()
    copy(source, target, renumber=False)
    store.copy_versions(row.pk, target.pk, through_seq=last)
    copy_choices(row, target)
    return str(target.code)


abranch = in_database_thread(branch)
