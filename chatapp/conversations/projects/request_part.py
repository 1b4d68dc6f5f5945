"""The part of a project in the requests of its conversations."""

from __future__ import annotations

from chatapp.context.project import ProjectPart
from chatapp.conversations.projects.lines import read
from chatapp.conversations.projects.rows import owned_project
from chatapp.models import Conversation, Project
from compression.database import in_database_thread


def project_part(row: Conversation) -> ProjectPart | None:
    """The part of the conversation's project as it is now; None without a project."""
    if row.project_id is None:
        return None
    found = Project.objects.filter(pk=row.project_id).first()
    return part_of(found) if found is not None else None


def part_of(row: Project) -> ProjectPart:
    """The part of this project."""
    kept = read(row.lines)
    return ProjectPart(
        slug=row.slug,
        name=row.name,
        instructions=row.instructions,
        version=row.lines_version,
        lines=kept.ledger,
        tokens=kept.tokens,
    )


def owned_part(user_id: int, slug: str) -> ProjectPart:
    """The part of the person's project. Raises NotFound."""
    return part_of(owned_project(user_id, slug))


aowned_part = in_database_thread(owned_part)
