"""The undoing of an import: its conversations are deleted as any others, and can come back.

What its person has changed since, by a message or in any other way, is theirs and stays. A project
that the import made goes with it, unless something else is in it or was written for it.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chatapp.conversations.imports.jobs import REMOVED_PROJECTS
from chatapp.conversations.imports.portions import FIRST_EVENT
from chatapp.conversations.ownership import parse_code
from chatapp.conversations.projects.rows import named
from chatapp.conversations.sharing.links import end
from chatapp.errors import InvalidInput, NotFound
from chatapp.models import Conversation, ImportJob, Project, Share
from compression.database import in_database_thread


def undo(owner_id: int, code: str) -> None:
    """Delete the unchanged conversations of a person's import; once undone, nothing changes.

    Raises NotFound, and InvalidInput while the import runs.
    """
    with transaction.atomic():
        row = _locked(owner_id, code)
        if row.finished_at is None:
            raise InvalidInput("This import is still running. Cancel it first.")
        if row.undone_at is None:
            row.undone_at = timezone.now()
            unchanged = Conversation.objects.filter(
                import_job=row, importing=False, deleted_at=None, event_no=FIRST_EVENT
            )
            # Shared links do not come back with their conversations.
            end(Share.objects.filter(conversation__in=unchanged))
            unchanged.update(deleted_at=row.undone_at)
            row.report = {**row.report, REMOVED_PROJECTS: _remove_projects(row)}
            row.save(update_fields=["undone_at", "report"])


def bring_back(owner_id: int, code: str) -> None:
    """Bring back what :func:`undo` deleted; nothing else changes. Raises NotFound."""
    with transaction.atomic():
        row = _locked(owner_id, code)
        if row.undone_at is not None:
            deleted = Conversation.objects.filter(import_job=row, importing=False)
            deleted.filter(deleted_at=row.undone_at).update(deleted_at=None)
            for name, keys in row.report.get(REMOVED_PROJECTS, []):
                deleted.filter(pk__in=keys, project=None).update(project=named(owner_id, name))
            row.undone_at = None
            row.save(update_fields=["undone_at"])


def _remove_projects(row: ImportJob) -> list[tuple[str, list[int]]]:
    """Delete the projects that were made with this import and have nothing else in them.

    Returns the name of each with the conversations that were in it.
    """
    inside = Conversation.objects.filter(project=OuterRef("pk"))
    made = Project.objects.filter(
        Exists(inside.filter(import_job=row)),
        ~Exists(inside.exclude(import_job=row, deleted_at__isnull=False)),
        owner_id=row.owner_id,
        created_at__gte=row.created_at,
        instructions="",
        default_model="",
        lines_version=0,
    )
    removed = []
    for project in made:
        keys = project.conversations.order_by("pk").values_list("pk", flat=True)
        removed.append((project.name, list(keys)))
        project.delete()
    return removed


def kept(owner_id: int, code: str) -> int:
    """The number of an import's conversations that are not deleted."""
    found = Conversation.objects.filter(owner_id=owner_id, deleted_at=None, importing=False)
    return found.filter(import_job__code=parse_code(code)).count()


def _locked(owner_id: int, code: str) -> ImportJob:
    found = ImportJob.objects.select_for_update()
    row = found.filter(owner_id=owner_id, code=parse_code(code)).first()
    if row is None:
        raise NotFound
    return row


aundo = in_database_thread(undo)
abring_back = in_database_thread(bring_back)
akept = in_database_thread(kept)
