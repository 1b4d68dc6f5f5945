"""The log of looks at other people's conversations, and of changes made in the admin."""

from __future__ import annotations

from textwrap import wrap

from django.contrib.auth.models import User

from chatapp.models import AccessRecord, Conversation

#: What a look is recorded as.
PAGES = ("conversation", "summary", "messages")
#: Characters that a record has for what was done, and for a name.
LONGEST = 64
LONGEST_NAME = 150


def record_access(*, viewer: User, conversation: Conversation, what: str) -> None:
    """Remember a look at another person's conversation; one's own leaves no record.

    ``what`` is the page, one of ``PAGES``, or what was done to it, cut where a record ends.
    """
    if viewer.pk != conversation.owner_id:
        AccessRecord.objects.create(
            viewer=viewer,
            viewer_name=viewer.get_username(),
            conversation=conversation,
            conversation_code=conversation.code,
            owner_name=conversation.owner.get_username(),
            what=what[:LONGEST],
        )


def record_act(*, actor: User, name: str, kind: str, act: str) -> None:
    """Remember what was done in the admin to an account, a group or a model's figures.

    ``name`` is what it was called and ``kind`` what it is. A sentence that is longer than a record
    takes several, so that nothing of it is cut.
    """
    beginning = f"{kind}: "
    AccessRecord.objects.bulk_create(
        AccessRecord(
            viewer=actor,
            viewer_name=actor.get_username(),
            owner_name=name[:LONGEST_NAME],
            what=beginning + part,
        )
        for part in wrap(act, LONGEST - len(beginning))
    )
