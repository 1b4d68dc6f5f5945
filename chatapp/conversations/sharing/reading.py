"""What a shared link shows: the one way to a conversation without being its owner.

Everything is chosen by the link alone. No message, number or name of anything else is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Q, QuerySet

from chatapp.conversations.sharing.links import digest
from chatapp.conversations.summaries.lines import sections_of
from chatapp.errors import NotFound
from chatapp.live.share_views import SharedCall, SharedMessage, SharedPage, SharedSummary
from chatapp.models import Message, MessageRole, Share, Summary
from compression import store
from compression.database import in_database_thread, snapshot
from compression.ledger.lines import lines_of

#: Messages of a page, and characters after which a page ends.
PAGE_MESSAGES = 50
PAGE_CHARACTERS = 150_000
#: Characters of a token; a longer one is not looked for.
LONGEST_TOKEN = 64
SHOWS_NOTHING = (
    "This link shows nothing: it may have expired, or whoever made it has taken it back."
)


@dataclass(slots=True)
class _Window:
    """Consecutive messages of a shared conversation."""

    rows: list[Message] = field(default_factory=list)
    more: bool = False

    @property
    def last(self) -> int:
        """The ``seq`` of the last one; 0 if there is none."""
        return self.rows[-1].seq if self.rows else 0


@snapshot()
def shared_page(token: str, *, after: int = 0) -> SharedPage:
    """The messages after number ``after`` that the link shows. Raises NotFound.

    A wrong token, an expired or revoked link, and a deleted conversation are not told apart.
    """
    link = _link(token)
    window = _window(link, after)
    summary = _summary(link)
    page = SharedPage(
        title=link.title,
        shared_at=link.created_at,
        above=[],
        summary=None,
        below=[_message(one, link) for one in window.rows],
        following=window.last if window.more else 0,
    )
    if summary is None:
        return page
    boundary = summary.through_seq
    stands_here = (after < boundary or not after) and (boundary <= window.last or not window.more)
    count = sum(one.seq <= boundary for one in window.rows)
    return replace(
        page,
        above=page.below[:count],
        below=page.below[count:],
        summary=_shown(summary) if stands_here else None,
    )


def _link(token: str) -> Share:
    if len(token) > LONGEST_TOKEN or not token.isascii():
        raise NotFound(SHOWS_NOTHING)
    link = Share.objects.filter(Share.working(), token_sha256=digest(token)).first()
    if link is None:
        raise NotFound(SHOWS_NOTHING)
    return link


def _window(link: Share, after: int) -> _Window:
    """As many messages as one page may have; at least one, however long."""
    found = _Window()
    characters = 0
    for one in _messages(link).filter(seq__gt=after)[: PAGE_MESSAGES + 1].iterator(chunk_size=8):
        calls = len(json.dumps(one.tool_calls)) if one.tool_calls else 0
        characters += len(one.text) + calls
        if found.rows and (len(found.rows) == PAGE_MESSAGES or characters > PAGE_CHARACTERS):
            found.more = True
            break
        found.rows.append(one)
    return found


def _messages(link: Share) -> QuerySet[Message]:
    """The messages that were live when the link was made, as far as it shows them."""
    # By number and by time: a number may change later for another reason.
    then = Q(superseded_at__isnull=True) | Q(
        superseded_at__gt=link.created_at, event_no__gt=link.event_no
    )
    rows = Message.objects.filter(
        then, conversation=link.conversation_id, seq__lte=link.through_seq
    ).order_by("seq")
    if link.with_tools:
        rows = rows.exclude(text="", tool_calls=[])
    else:
        rows = rows.exclude(role=MessageRole.TOOL).exclude(text="")
    return rows.only("seq", "role", "text", "tool_calls", "tool_name")


def _message(row: Message, link: Share) -> SharedMessage:
    calls = row.tool_calls if link.with_tools else []
    return SharedMessage(
        role=row.role,
        text=row.text,
        tool_name=row.tool_name if link.with_tools else "",
        calls=[_call(one) for one in calls],
    )


def _call(stored: dict[str, Any]) -> SharedCall:
    """A stored call; an imported one may lack anything."""
    function = stored.get("function")
    words = function if isinstance(function, dict) else {}
    return SharedCall(name=str(words.get("name", "")), arguments=str(words.get("arguments", "")))


def _summary(link: Share) -> Summary | None:
    if not link.summary_version:
        return None
    return Summary.objects.filter(
        conversation=link.conversation_id, version=link.summary_version
    ).first()


def _shown(row: Summary) -> SharedSummary:
    version = store.read_version(row.conversation_id, row.version)
    stood = store.stands_for(row) if row.through_seq else store.StandsFor()
    return SharedSummary(
        message_count=stood.message_count, sections=sections_of(lines_of(version.ledger))
    )


ashared_page = in_database_thread(shared_page)
