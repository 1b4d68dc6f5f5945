"""Conversations as a whole: creating, changing settings, pinning, archiving, deleting."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from chatapp.conversations.ownership import owned
from chatapp.conversations.projects.rows import owned_project
from chatapp.conversations.sharing.links import end
from chatapp.models import Conversation, TitleSource
from compression.database import in_database_thread


def create(
    user_id: int,
    *,
    title: str = "",
    model: str = "",
    system_prompt: str = "",
    project: str = "",
) -> str:
    """Create an empty conversation. Returns its code. Raises NotFound for a foreign project."""
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


def change(user_id: int, code: str, changes: dict[str, Any]) -> int:
    """Change the given settings. Returns the new ``event_no``. Raises NotFound."""
    row = owned(user_id, code)
    # Moved to another project, it keeps its place among the others.
    if changes.keys() != {"project_id"}:
        changes = {**changes, "updated_at": Now()}
    Conversation.objects.filter(pk=row.pk).update(**changes, event_no=F("event_no") + 1)
    row.refresh_from_db(fields=["event_no"])
    return row.event_no


@transaction.atomic
def set_flag(user_id: int, code: str, field: str, *, on: bool) -> int:
    """Set or clear ``archived_at``, ``pinned_at`` or ``deleted_at``. Returns the conversation's id.

    Raises NotFound.
    """
    row = owned(user_id, code, deleted=field == "deleted_at" and not on)
    Conversation.objects.filter(pk=row.pk).update(
        **{field: Now() if on else None}, event_no=F("event_no") + 1
    )
    if field == "deleted_at" and on:
        # They do not come back with it.
        end(row.shares.all())
    return row.pk


def project_id(user_id: int, slug: str) -> int | None:
    """The id of the person's project; None for an empty slug. Raises NotFound."""
    return owned_project(user_id, slug).pk if slug else None


acreate = in_database_thread(create)
achange = in_database_thread(change)
aset_flag = in_database_thread(set_flag)
aproject_id = in_database_thread(project_id)
