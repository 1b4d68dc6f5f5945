"""The one way to a conversation by its owner: all other modules get rows from :func:`owned`."""

from __future__ import annotations

import uuid

from chatapp.errors import NotFound
from chatapp.models import Conversation
from compression.database import in_database_thread


def parse_code(code: str) -> uuid.UUID:
    """The code in an address, which must be a UUID in its canonical form.

    Raises NotFound, as for a code that does not exist.
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

    Raises NotFound for a wrong code, a stranger's conversation, one that is still being imported,
    and a deleted one unless ``deleted``.
    """
    rows = Conversation.objects.filter(owner_id=user_id, code=parse_code(code), importing=False)
    if not deleted:
        rows = rows.filter(deleted_at__isnull=True)
    row = rows.first()
    if row is None:
        raise NotFound
    return row


def may_follow(user_id: int, code: str) -> int | None:
    """The id of the person's conversation; None if it is not theirs or they may not sign in."""
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


aowned = in_database_thread(owned)
amay_follow = in_database_thread(may_follow)
