"""Who looked at whose conversation."""

from __future__ import annotations

from django.contrib.auth.models import User

from chatapp.models import AccessRecord, Conversation


def record_access(*, viewer: User, conversation: Conversation, what: str) -> None:
    """Remember a look at another person's conversation; one's own leaves no record.

    ``what`` is the page, ``conversation``, ``summary`` or ``messages``, or what was done; past
    the 64 characters that there are for it, it is cut.
    """
    if viewer.pk != conversation.owner_id:
        AccessRecord.objects.create(
            viewer=viewer,
            viewer_name=viewer.get_username(),
            conversation=conversation,
            conversation_code=conversation.code,
            owner_name=conversation.owner.get_username(),
            what=what[:64],
        )
