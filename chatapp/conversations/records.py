"""Who looked at whose conversation."""

from __future__ import annotations

from chatapp.models import AccessRecord


def record_access(*, viewer_id: int, owner_id: int, conversation_id: int, what: str) -> None:
    """Remember a look at another person's conversation; one's own leaves no record.

    ``what`` is the page: ``conversation``, ``summary`` or ``messages``.
    """
    if viewer_id != owner_id:
        AccessRecord.objects.create(viewer_id=viewer_id, conversation_id=conversation_id, what=what)
