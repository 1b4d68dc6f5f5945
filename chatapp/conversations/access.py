"""Conversations and who they belong to. Every other room gets its rows through :func:`owned`."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from chatapp.errors import NotFound
from chatapp.live.view_models import ConversationLink, Origin
from chatapp.models import Conversation, Project, TitleSource, Turn
from compression.database import across

# The list shows this many at once; the rest is found by searching.
LINKS = 200
_UNNAMED = Q(title="") & ~Q(title_source=TitleSource.PERSON)


def parse_code(code: str) -> uuid.UUID:
    """The code of an address: a UUID in its canonical form and no other.

    Raises NotFound, as for a code that nobody has.
    """
    try:
        parsed = uuid.UUID(code)
    except ValueError:
        raise NotFound from None
    if str(parsed) != code:
        raise NotFound
    return parsed


def owned(user_id: int, code: str, *, deleted: bool = False) -> Conversation:
    """The person's own conversation.

    Raises NotFound for a wrong code, a stranger's, one that is still being imported, and (unless
    ``deleted``) a deleted one alike.
    """
    rows = Conversation.objects.filter(owner_id=user_id, code=parse_code(code), importing=False)
    if not deleted:
        rows = rows.filter(deleted_at__isnull=True)
    row = rows.first()
    if row is None:
        raise NotFound
    return row


def may_follow(user_id: int, code: str) -> int | None:
    """The id of the person's conversation; None when it is not theirs or they may not sign in."""
    try:
        parsed = parse_code(code)
    except NotFound:
        return None
    return (
        Conversation.objects.filter(
            owner_id=user_id, owner__is_active=True, code=parsed, deleted_at__isnull=True
        )
        .values_list("pk", flat=True)
        .first()
    )


def create(
    user_id: int,
    *,
    title: str = "",
    model: str = "",
    system_prompt: str = "",
    project: str = "",
) -> str:
    """A new, empty conversation; its code. Raises NotFound for a project that is not theirs."""
    row = Conversation(
        owner_id=user_id,
        title=title,
        title_source=TitleSource.PERSON if title else TitleSource.NONE,
        model=model,
        system_prompt=system_prompt,
    )
    row.project_id = project_id(user_id, project)
    row.save()
    return str(row.code)


def begun_with(user_id: int, client_msg_id: uuid.UUID) -> str | None:
    """The code of the person's conversation whose first message has this id, if there is one."""
    code = (
        Conversation.objects.filter(
            owner_id=user_id, messages__client_msg_id=client_msg_id, messages__seq=1
        )
        .values_list("code", flat=True)
        .first()
    )
    return str(code) if code else None


def branched_with(row: Conversation, client_msg_id: uuid.UUID) -> str | None:
    """The code of the branch of ``row`` that a message with this id was sent in, if there is one.

    Copied messages have no such id: in a branch it is that of a message that was sent there.
    """
    code = (
        Conversation.objects.filter(
            owner_id=row.owner_id, branched_from=row, messages__client_msg_id=client_msg_id
        )
        .values_list("code", flat=True)
        .first()
    )
    return str(code) if code else None


def newest(user_id: int) -> str | None:
    """The code of the conversation that changed last; None when there is none."""
    code = (
        Conversation.objects.filter(
            owner_id=user_id, deleted_at__isnull=True, archived_at__isnull=True
        )
        .order_by("-updated_at", "-pk")
        .values_list("code", flat=True)
        .first()
    )
    return str(code) if code else None


def begun_as(row: Conversation) -> str:
    """What a conversation is of another one: ``branch``, ``continuation``, or nothing."""
    # A branch of a continuation has both.
    if row.branched_from_id is not None:
        return "branch"
    return "continuation" if row.continued_from_id is not None else ""


def origin(row: Conversation) -> Origin | None:
    """The conversation that this one began with, unless that was deleted or is another's."""
    earlier = row.branched_from or row.continued_from
    if earlier is None or earlier.owner_id != row.owner_id or earlier.deleted_at is not None:
        return None
    return Origin(begun_as=begun_as(row), code=str(earlier.code), title=earlier.title)


def links(user_id: int, *, archived: bool = False) -> list[ConversationLink]:
    """The person's conversations, pinned ones first, then the latest, in one query."""
    rows: QuerySet[Conversation] = (
        Conversation.objects.filter(
            owner_id=user_id, deleted_at__isnull=True, archived_at__isnull=not archived
        )
        .annotate(
            answering=Exists(Turn.objects.filter(conversation=OuterRef("pk"), finished_at=None)),
            unseen=Exists(
                Turn.objects.filter(
                    conversation=OuterRef("pk"),
                    finished_at__isnull=False,
                    event_no__gt=OuterRef("seen_event_no"),
                )
            ),
        )
        .order_by(F("pinned_at").desc(nulls_last=True), "-updated_at", "-pk")[:LINKS]
    )
    return [
        ConversationLink(
            code=str(row.code),
            title=row.title,
            updated_at=row.updated_at,
            pinned=row.pinned_at is not None,
            archived=row.archived_at is not None,
            answering=row.answering,  # type: ignore[attr-defined]
            unseen=row.unseen,  # type: ignore[attr-defined]
            begun_as=begun_as(row),
        )
        for row in rows
    ]


def change(user_id: int, code: str, changes: dict[str, Any]) -> int:
    """Write the given settings of a conversation; its new ``event_no``. Raises NotFound."""
    row = owned(user_id, code)
    Conversation.objects.filter(pk=row.pk).update(
        **changes, event_no=F("event_no") + 1, updated_at=Now()
    )
    row.refresh_from_db(fields=["event_no"])
    return row.event_no


def set_automatic_title(conversation_id: int, title: str) -> int | None:
    """Give a title unless a person has; the new ``event_no``, None when nothing changed."""
    changed = Conversation.objects.filter(_UNNAMED, pk=conversation_id).update(
        title=title, title_source=TitleSource.FIRST_WORDS, event_no=F("event_no") + 1
    )
    if not changed:
        return None
    return Conversation.objects.values_list("event_no", flat=True).get(pk=conversation_id)


def may_be_named(conversation_id: int) -> bool:
    """Whether the conversation has no title, and no person took it away."""
    return Conversation.objects.filter(_UNNAMED, pk=conversation_id).exists()


def replace_automatic_title(conversation_id: int, title: str) -> int | None:
    """Put the model's title in place of the first words; as :func:`set_automatic_title`."""
    changed = Conversation.objects.filter(
        pk=conversation_id, title_source=TitleSource.FIRST_WORDS, deleted_at__isnull=True
    ).update(title=title, title_source=TitleSource.MODEL, event_no=F("event_no") + 1)
    if not changed:
        return None
    return Conversation.objects.values_list("event_no", flat=True).get(pk=conversation_id)


def set_flag(user_id: int, code: str, field: str, *, on: bool) -> int:
    """Set or clear ``archived_at``, ``pinned_at`` or ``deleted_at``; the conversation's id.

    Raises NotFound.
    """
    row = owned(user_id, code, deleted=field == "deleted_at" and not on)
    Conversation.objects.filter(pk=row.pk).update(
        **{field: Now() if on else None}, event_no=F("event_no") + 1
    )
    return row.pk


def mark_seen(user_id: int, code: str, event_no: int) -> None:
    """Note that the owner has had the events up to ``event_no`` on the screen. Raises NotFound."""
    row = owned(user_id, code)
    seen = min(event_no, row.event_no)
    Conversation.objects.filter(pk=row.pk, seen_event_no__lt=seen).update(seen_event_no=seen)


def project_id(user_id: int, slug: str) -> int | None:
    """The id of the person's project; None for an empty slug. Raises NotFound."""
    if not slug:
        return None
    found = Project.objects.filter(owner_id=user_id, slug=slug).values_list("pk", flat=True).first()
    if found is None:
        raise NotFound
    return found


def save_draft(user_id: int, code: str, text: str) -> None:
    """Keep what is being written; a draft that waits to be sent is left alone. Raises NotFound."""
    row = owned(user_id, code)
    Conversation.objects.filter(pk=row.pk, send_when_done=False).update(draft=text)


aowned = across(owned)
amay_follow = across(may_follow)
acreate = across(create)
anewest = across(newest)
alinks = across(links)
achange = across(change)
aset_automatic_title = across(set_automatic_title)
amay_be_named = across(may_be_named)
aset_flag = across(set_flag)
amark_seen = across(mark_seen)
areplace_automatic_title = across(replace_automatic_title)
aproject_id = across(project_id)
asave_draft = across(save_draft)
