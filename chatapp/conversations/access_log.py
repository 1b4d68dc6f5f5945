"""The log of who looked at another person's conversation, and of changes made in the admin."""

from __future__ import annotations

from textwrap import wrap

from django.contrib.auth.models import User

from chatapp.models import AccessRecord, Conversation

#: The pages that a look is recorded under.
PAGES = ("conversation", "summary", "messages", "log")
#: Characters that a record can hold of an action, and of a name.
LONGEST = 64
LONGEST_NAME = 150


def record_access(*, viewer: User, conversation: Conversation, what: str) -> None:
    """Record a look at another person's conversation; looks at one's own are not recorded.

    ``what`` is the page, one of ``PAGES``, or an action, cut to the length of a record.
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
    """Record an action in the admin on an account, a group or a model profile.

    ``name`` is the object's name and ``kind`` its kind. An action too long for one record is
    spread over several.
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
