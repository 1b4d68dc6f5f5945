"""A person's projects: the one way to each, creating, changing and deleting them."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q
from django.db.models.functions import Lower, Now

from chatapp.errors import InvalidInput, NotFound
from chatapp.live.project_views import ProjectLink, ProjectView
from chatapp.models import Conversation, Project
from chatapp.text.slugs import numbered, slug_of
from compression.database import in_database_thread

#: Most projects of a person.
MOST_PROJECTS = 200
# Conversations whose open pages are told of a change of their project.
_TOLD = 100


def owned_project(user_id: int, slug: str) -> Project:
    """The person's own project. Raises NotFound."""
    row = Project.objects.filter(owner_id=user_id, slug=slug).first()
    if row is None:
        raise NotFound
    return row


def links(user_id: int) -> list[ProjectLink]:
    """The person's projects by name, archived ones included, in one query."""
    shown = Q(
        conversations__deleted_at__isnull=True,
        conversations__archived_at__isnull=True,
    )
    rows = (
        Project.objects.filter(owner_id=user_id)
        .annotate(count=Count("conversations", filter=shown))
        .order_by(Lower("name"), "pk")
        .values_list("slug", "name", "colour", "archived_at", "count")
    )
    return [
        ProjectLink(slug=slug, name=name, colour=colour, archived=bool(at), conversations=count)
        for slug, name, colour, at, count in rows
    ]


def view(user_id: int, slug: str) -> ProjectView:
    """One project. Raises NotFound."""
    row = owned_project(user_id, slug)
    return ProjectView(
        slug=row.slug,
        name=row.name,
        colour=row.colour,
        instructions=row.instructions,
        model=row.default_model,
        archived=row.archived_at is not None,
        created_at=row.created_at,
        lines_version=row.lines_version,
    )


def default_model(user_id: int, slug: str) -> str:
    """The model of new conversations of the person's project; empty without one."""
    found = Project.objects.filter(owner_id=user_id, slug=slug)
    return found.values_list("default_model", flat=True).first() or ""


def create(user_id: int, name: str) -> str:
    """Create a project. Returns its slug, which no other of the person's has.

    Raises InvalidInput when there are too many.
    """
    taken = set(Project.objects.filter(owner_id=user_id).values_list("slug", flat=True))
    if len(taken) >= MOST_PROJECTS:
        raise InvalidInput.of("name", f"At most {MOST_PROJECTS} projects are possible.")
    first = slug_of(name)
    for number in range(1, 2 * MOST_PROJECTS):
        slug = numbered(first, number) if number > 1 else first
        if slug in taken:
            continue
        try:
            with transaction.atomic():
                Project.objects.create(owner_id=user_id, name=name, slug=slug)
        except IntegrityError:
            # Another request has taken it since.
            continue
        return slug
    raise InvalidInput.of("name", "There are too many projects of this name.")


def named(user_id: int, name: str) -> int | None:
    """The id of the project with this name, made if there is none; None if there are too many."""
    rows = Project.objects.filter(owner_id=user_id, name=name).order_by("pk")
    found = rows.values_list("pk", flat=True).first()
    if found is not None:
        return found
    try:
        slug = create(user_id, name)
    except InvalidInput:
        return None
    return owned_project(user_id, slug).pk


def change(user_id: int, slug: str, changes: dict[str, Any]) -> list[int]:
    """Change the given settings. Returns the conversations to tell of it. Raises NotFound."""
    row = owned_project(user_id, slug)
    if changes:
        Project.objects.filter(pk=row.pk).update(**changes)
    return conversations_of(row)


def set_archived(user_id: int, slug: str, *, on: bool) -> None:
    """Archive the project or take it out; its conversations stay where they are.

    Raises NotFound.
    """
    row = owned_project(user_id, slug)
    Project.objects.filter(pk=row.pk).update(archived_at=Now() if on else None)


@transaction.atomic
def remove(user_id: int, slug: str) -> list[int]:
    """Delete the project with its lines; its conversations stay. Returns those to tell of it.

    Raises NotFound.
    """
    row = owned_project(user_id, slug)
    told = conversations_of(row)
    Conversation.objects.filter(project=row).update(project=None, event_no=F("event_no") + 1)
    row.delete()
    return told


def conversations_of(row: Project) -> list[int]:
    """The conversations of a project whose pages may be open, newest first."""
    rows = Conversation.objects.filter(project=row, deleted_at__isnull=True)
    return list(rows.order_by("-updated_at", "-pk").values_list("pk", flat=True)[:_TOLD])


alinks = in_database_thread(links)
aview = in_database_thread(view)
acreate = in_database_thread(create)
achange = in_database_thread(change)
aset_archived = in_database_thread(set_archived)
aremove = in_database_thread(remove)
