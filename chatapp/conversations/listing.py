"""The list of a person's conversations, with marks on those that have news."""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, QuerySet

from chatapp.conversations.ownership import owned
from chatapp.live.view_models import ConversationLink, Origin, PartView
from chatapp.models import Conversation, Turn
from compression.database import in_database_thread

# Most conversations in the list; others are found by searching.
LINKS = 200
# Parts after one that its page names; a conversation can be continued more than once.
MOST_PARTS = 20


def newest(user_id: int) -> str | None:
    """The code of the conversation that changed last; None if there is none."""
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
    """The relation to the earlier conversation: ``branch``, ``continuation``, or empty."""
    # A branch of a continuation has both fields set.
    if row.branched_from_id is not None:
        return "branch"
    return "continuation" if row.continued_from_id is not None else ""


def origin(row: Conversation) -> Origin | None:
    """The conversation that this one was made from, unless it was deleted or is another's."""
    earlier = row.branched_from or row.continued_from
    if earlier is None or earlier.owner_id != row.owner_id or earlier.deleted_at is not None:
        return None
    return Origin(begun_as=begun_as(row), code=str(earlier.code), title=earlier.title)


def parts(row: Conversation) -> PartView:
    """The place of a conversation among the parts of a longer one, and the parts that follow it."""
    mine = Conversation.objects.filter(owner_id=row.owner_id, deleted_at__isnull=True)
    first = mine.filter(later_parts=row.pk).values_list("title", flat=True).first()
    later = mine.filter(continued_from=row.pk, branched_from__isnull=True).order_by("pk")
    return PartView(
        part=row.part or 1,
        of=first or row.title,
        continued_in=[str(code) for code in later.values_list("code", flat=True)[:MOST_PARTS]],
    )


def links(user_id: int, *, archived: bool = False, project: str = "") -> list[ConversationLink]:
    """The person's conversations in one query: pinned ones first, then by their latest change.

    ``project``: only those of the project with this slug.
    """
    rows: QuerySet[Conversation] = (
        Conversation.objects.filter(
            owner_id=user_id, deleted_at__isnull=True, archived_at__isnull=not archived
        )
        .filter(**({"project__slug": project} if project else {}))
        .annotate(
            project_slug=F("project__slug"),
            project_name=F("project__name"),
            project_colour=F("project__colour"),
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
            project=row.project_slug or "",  # type: ignore[attr-defined]
            project_name=row.project_name or "",  # type: ignore[attr-defined]
            colour=row.project_colour or "",  # type: ignore[attr-defined]
            part=row.part or 1,
        )
        for row in rows
    ]


def mark_seen(user_id: int, code: str, event_no: int) -> None:
    """Note that the owner's screen has shown the events up to ``event_no``. Raises NotFound."""
    row = owned(user_id, code)
    seen = min(event_no, row.event_no)
    Conversation.objects.filter(pk=row.pk, seen_event_no__lt=seen).update(seen_event_no=seen)


anewest = in_database_thread(newest)
alinks = in_database_thread(links)
amark_seen = in_database_thread(mark_seen)
