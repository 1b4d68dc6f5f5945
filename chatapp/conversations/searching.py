"""Full-text search over a person's own messages and titles, the same on both databases.

Within one conversation it ranks as the model's own search does (:mod:`compression.recall`). Over
all of them the database ranks: the terms are joined with OR, because on 2,300 questions with known
evidence AND (the default of FTS5) found 0.1 %. Stop words are dropped. PostgreSQL ranks with
normalisation 1, because without it long answers always win.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from chatapp.conversations.messages.originals import StoredHistory, literal
from chatapp.conversations.ownership import owned
from chatapp.errors import SearchTooSlow
from chatapp.live.view_models import View
from chatapp.models import Conversation, Message
from chatapp.text.safety import visible
from chatapp.text.search_terms import MOST_CHARACTERS, Part, passage
from compression.database import TookTooLong, in_database_thread, snapshot, time_limit
from compression.recall.ranking import ranked as ranked_within
from compression.recall.terms import Terms, in_pairs, pattern_of, terms_of

HITS = 20
# Titles that are compared in Python: there are far fewer of them than messages.
MOST_TITLES = 20_000
TITLE_HITS = 10
# Seconds. Only terms that occur in most messages of a very large archive take longer, and a list
# of all of them would help nobody.
LONGEST = 10.0
# Messages of one conversation that a page of results shows; the others of that page are folded.
SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class MessageHit(View):
    """A message that was found."""

    code: str
    title: str
    seq: int
    role: str
    created_at: datetime
    parts: tuple[Part, ...]
    """The passage around the terms, on one line."""


@dataclass(frozen=True, kw_only=True)
class TitleHit(View):
    """A conversation found by its title."""

    code: str
    updated_at: datetime
    archived: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """A conversation in a page of results: by its title, by its messages, or by both."""

    code: str
    parts: tuple[Part, ...]
    """The title."""
    count: int
    """Its messages that were found, on all pages."""
    messages: tuple[MessageHit, ...]
    """Those on this page."""
    archived: bool = False
    updated_at: datetime | None = None
    """Of a conversation found by its title."""

    @property
    def first(self) -> tuple[MessageHit, ...]:
        """The messages to show at once."""
        return self.messages[:SHOWN]

    @property
    def others(self) -> tuple[MessageHit, ...]:
        """The messages to fold."""
        return self.messages[SHOWN:]

    @property
    def elsewhere(self) -> bool:
        """Whether other pages have more of them."""
        return self.count > len(self.messages)


@dataclass(frozen=True, kw_only=True)
class Found(View):
    """One page of results."""

    query: str
    page: int
    """Page number, from 1."""
    has_more: bool
    messages: list[MessageHit]
    titles: list[TitleHit]
    """On the first page only, and not when one conversation is searched."""
    counts: dict[str, int] = field(default_factory=dict)
    """Messages that were found, by the code of their conversation: of those in ``messages``, and
    not when one conversation is searched."""

    @property
    def groups(self) -> list[Group]:
        """The conversations: those found by their titles, then the others, best first."""
        titles = {hit.code: hit for hit in self.titles}
        by_code: dict[str, list[MessageHit]] = {code: [] for code in titles}
        for hit in self.messages:
            by_code.setdefault(hit.code, []).append(hit)
        return [
            _group(code, titles.get(code), hits, self.counts.get(code, len(hits)))
            for code, hits in by_code.items()
        ]


def _group(code: str, title: TitleHit | None, hits: list[MessageHit], count: int) -> Group:
    if title is None:
        parts: tuple[Part, ...] = (Part(text=visible(hits[0].title) or "New conversation"),)
        return Group(code=code, parts=parts, count=count, messages=tuple(hits))
    return Group(
        code=code,
        parts=title.parts,
        count=count,
        messages=tuple(hits),
        archived=title.archived,
        updated_at=title.updated_at,
    )


#: The owner's messages that are searched.
_LIVE = (
    "c.owner_id = %s",
    "c.deleted_at IS NULL",
    "m.superseded_at IS NULL",
    "m.status <> 'streaming'",
)


def ranked(
    terms: Terms,
    *,
    owner_id: int,
    conversation_id: int | None = None,
    newest_first: bool = False,
    limit: int = HITS,
    offset: int = 0,
) -> list[int]:
    """Ids of the owner's live messages that contain any of the terms, best first, in one query.

    Deleted conversations, superseded messages and replies being written are not searched. Empty if
    there are no terms.
    """
    if not terms.all:
        return []
    source, match, order, values = _condition(terms)
    where = [match, *_LIVE]
    parameters: list[Any] = [*values, owner_id]
    if conversation_id is not None:
        where.append("c.id = %s")
        parameters.append(conversation_id)
    if newest_first or not order:
        order = "m.created_at DESC, m.id DESC"
    else:
        order += ", m.created_at DESC, m.id DESC"
        parameters += values[:1] if "%s" in order else []
    statement = (
        f"SELECT m.id FROM {source} JOIN chatapp_conversation c ON c.id = m.conversation_id "
        f"WHERE {' AND '.join(where)} ORDER BY {order} LIMIT %s OFFSET %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, limit, offset])
        return [row[0] for row in cursor.fetchall()]


def _counts(terms: Terms, owner_id: int, conversations: Collection[int]) -> dict[int, int]:
    """How many messages :func:`ranked` has of each of these conversations."""
    if not conversations:
        return {}
    source, match, _, values = _condition(terms)
    # Else SQLite looks up each message of the conversations in the index, one by one.
    join = "CROSS JOIN" if connection.vendor == "sqlite" else "JOIN"
    source = source.replace("JOIN", join)
    places = ", ".join("%s" for _ in conversations)
    statement = (
        f"SELECT c.id, COUNT(*) FROM {source} "
        f"{join} chatapp_conversation c ON c.id = m.conversation_id "
        f"WHERE {' AND '.join((match, *_LIVE))} AND c.id IN ({places}) GROUP BY c.id"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, owner_id, *conversations])
        return dict(cursor.fetchall())


def _condition(terms: Terms) -> tuple[str, str, str, list[Any]]:
    """Tables, condition and order for the terms, and the parameters of the condition.

    Terms in scripts without spaces are searched as substrings, without an index and without a
    rank.
    """
    if terms.runs:
        source = "chatapp_message m"
        like = "LIKE" if connection.vendor == "sqlite" else "ILIKE"
        pieces = [f"m.text {like} %s ESCAPE '\\'" for _ in terms.all]
        values: list[Any] = [f"%{literal(term)}%" for term in terms.all]
        return source, f"({' OR '.join(pieces)})", "", values
    if connection.vendor == "sqlite":
        source = "chatapp_messagetext JOIN chatapp_message m ON m.id = chatapp_messagetext.rowid"
        phrases = [f'"{word}"' for word in terms.words]
        query = f"text : ({' OR '.join(phrases)}*)"
        return source, "chatapp_messagetext MATCH %s", "chatapp_messagetext.rank", [query]
    lexemes = [f"'{word}'" for word in terms.words]
    query = " | ".join([*lexemes[:-1], f"{lexemes[-1]}:*"])
    match = "m.search_vector @@ to_tsquery('english', %s)"
    order = "ts_rank(m.search_vector, to_tsquery('english', %s), 1) DESC"
    return "chatapp_message m", match, order, [query]


@snapshot()
def search(
    user_id: int, query: str, *, code: str = "", page: int = 1, newest_first: bool = False
) -> Found:
    """One page of ``HITS`` messages and the titles; within one conversation if ``code`` is given.

    The number of queries is constant. Raises NotFound for a conversation that is not theirs, and
    SearchTooSlow after ``LONGEST`` seconds.
    """
    try:
        with time_limit(LONGEST):
            return _search(user_id, query, code=code, page=page, newest_first=newest_first)
    except TookTooLong as error:
        raise SearchTooSlow from error


def _search(user_id: int, query: str, *, code: str, page: int, newest_first: bool) -> Found:
    row = owned(user_id, code) if code else None
    # Within one conversation questions are asked, whose runs stand in no message as they are.
    terms = in_pairs(terms_of(query)) if row else terms_of(query)
    ids = _page_of_ids(user_id, row, terms, page=page, newest_first=newest_first)
    rows = Message.objects.select_related("conversation").only(
        "seq", "role", "text", "created_at", "conversation__code", "conversation__title"
    )
    by_id = rows.in_bulk(ids[:HITS])
    codes = (
        {} if code else {one.conversation_id: str(one.conversation.code) for one in by_id.values()}
    )
    counts = {codes[key]: count for key, count in _counts(terms, user_id, codes).items()}
    messages = [
        MessageHit(
            code=str(row.conversation.code),
            title=row.conversation.title,
            seq=row.seq,
            role=row.role,
            created_at=row.created_at,
            parts=passage(row.text, terms),
        )
        for row in (by_id[key] for key in ids[:HITS])
    ]
    titles = [] if code or page > 1 else _titles(user_id, terms)
    return Found(
        query=query,
        page=page,
        has_more=len(ids) > HITS,
        messages=messages,
        titles=titles,
        counts=counts,
    )


def _page_of_ids(
    user_id: int, row: Conversation | None, terms: Terms, *, page: int, newest_first: bool
) -> list[int]:
    """The ids of a page of hits, and one more if another page follows."""
    first = (page - 1) * HITS
    if row is None or newest_first:
        return ranked(
            terms,
            owner_id=user_id,
            conversation_id=row.pk if row else None,
            newest_first=newest_first,
            limit=HITS + 1,
            offset=first,
        )
    history = StoredHistory(row, everything=True, unfinished=True)
    found = ranked_within(history, terms, own_words=True)
    return history.ids(found[first : first + HITS + 1])


def _titles(user_id: int, terms: Terms) -> list[TitleHit]:
    """The conversations with most terms in their titles; among equals the latest first."""
    if not terms.all:
        return []
    pattern = pattern_of(terms)
    assert pattern is not None
    rows = (
        Conversation.objects.filter(owner_id=user_id, deleted_at__isnull=True)
        .exclude(title="")
        .order_by("-updated_at", "-pk")
        .values_list("code", "title", "updated_at", "archived_at")[:MOST_TITLES]
    )
    hits = []
    for code, title, updated_at, archived_at in rows:
        if not pattern.search(visible(title)):
            continue
        parts = passage(title, terms, length=MOST_CHARACTERS)
        found = len({one.text.casefold() for one in parts if one.marked})
        if found:
            hit = TitleHit(
                code=str(code),
                updated_at=updated_at,
                archived=archived_at is not None,
                parts=parts,
            )
            hits.append((found, hit))
    hits.sort(key=lambda pair: -pair[0])
    return [hit for _, hit in hits[:TITLE_HITS]]


asearch = in_database_thread(search, lane="slow")
