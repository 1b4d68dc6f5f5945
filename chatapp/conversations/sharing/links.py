"""A person's shared links: made, listed, revoked. The token is known only when one is made."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from chatapp.conversations.ownership import owned
from chatapp.conversations.turns.standing import locked
from chatapp.errors import InvalidInput, NotFound
from chatapp.live.share_views import ShareView
from chatapp.models import Conversation, Share
from compression.database import in_database_thread

#: Links of one conversation that work at the same time.
MOST_WORKING = 20
#: Links that no longer work and are still listed, for each conversation.
MOST_ENDED = 20
#: Links of a person that a page lists.
MOST_LISTED = 500
#: Random bytes of a token.
TOKEN_BYTES = 24


def digest(token: str) -> str:
    """The form in which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


@transaction.atomic
def share(
    user_id: int, code: str, *, summaries: bool, tools: bool, days: int | None
) -> tuple[ShareView, str]:
    """Make a link to the conversation as it is now, for so many days. Returns it and its token.

    A reply that is being written, and its question, are left out. Raises NotFound, and InvalidInput
    when there is nothing to show or there are too many links.
    """
    row = locked(user_id, code)
    through = _through(row)
    if not through:
        raise InvalidInput("There is nothing to share yet: this conversation has no messages.")
    if Share.objects.filter(Share.working(), conversation=row).count() >= MOST_WORKING:
        raise InvalidInput(
            f"This conversation has {MOST_WORKING} links that work. Revoke one of them first."
        )
    _forget_old(row)
    token, now = secrets.token_urlsafe(TOKEN_BYTES), timezone.now()
    made = Share.objects.create(
        conversation=row,
        token_sha256=digest(token),
        title=row.title,
        through_seq=through,
        event_no=row.event_no,
        summary_version=row.compression_version if summaries and row.compressed_context else 0,
        with_tools=tools,
        created_at=now,
        expires_at=now + timedelta(days=days) if days else None,
    )
    return _views([made])[0], token


def _through(row: Conversation) -> int:
    """The last message before those of the open turn; 0 if there is none."""
    messages = row.messages.filter(superseded_at__isnull=True)
    opened = row.turns.filter(finished_at__isnull=True).first()
    if opened is not None:
        first = row.messages.filter(turn=opened).order_by("seq").values_list("seq", flat=True)
        messages = messages.filter(seq__lt=first.first() or row.next_seq)
    return messages.order_by("-seq").values_list("seq", flat=True).first() or 0


def _forget_old(row: Conversation) -> None:
    """Delete the oldest of the conversation's links that no longer work."""
    ended = Share.objects.filter(conversation=row).exclude(Share.working()).order_by("-pk")
    old = list(ended.values_list("pk", flat=True)[MOST_ENDED:])
    Share.objects.filter(pk__in=old).delete()


def shares_of(user_id: int, code: str) -> list[ShareView]:
    """The links to one of the person's conversations, newest first. Raises NotFound."""
    return _views(_listed(Q(conversation=owned(user_id, code))))


def shares(user_id: int) -> list[ShareView]:
    """The links to all of the person's conversations, newest first."""
    mine = Q(conversation__owner=user_id, conversation__deleted_at__isnull=True)
    return _views(_listed(mine))


def _listed(which: Q) -> QuerySet[Share]:
    return Share.objects.filter(which).select_related("conversation").order_by("-pk")[:MOST_LISTED]


def _views(rows: Iterable[Share]) -> list[ShareView]:
    found = list(rows)
    keys = [one.pk for one in found]
    working = set(Share.objects.filter(Share.working(), pk__in=keys).values_list("pk", flat=True))
    return [
        ShareView(
            share=one.pk,
            code=str(one.conversation.code),
            title=one.title,
            through_seq=one.through_seq,
            summaries=bool(one.summary_version),
            tools=one.with_tools,
            created_at=one.created_at,
            expires_at=one.expires_at,
            revoked_at=one.revoked_at,
            working=one.pk in working,
        )
        for one in found
    ]


def revoke(user_id: int, code: str, share_id: int) -> None:
    """End a link for good; one that has ended stays as it is. Raises NotFound."""
    mine = Share.objects.filter(conversation=owned(user_id, code), pk=share_id)
    if not mine.exists():
        raise NotFound
    end(mine)


def end(links: QuerySet[Share]) -> int:
    """Revoke links. Returns how many of them were not revoked yet."""
    return links.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())


ashare = in_database_thread(share)
ashares = in_database_thread(shares)
ashares_of = in_database_thread(shares_of)
arevoke = in_database_thread(revoke)
