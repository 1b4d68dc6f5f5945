"""The messages of one conversation that words stand in, in the order of the conversation.

The words are found as the search finds them; here a reader goes from one message to the next, so
the messages are not ranked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from chatapp.conversations.messages.originals import StoredHistory
from chatapp.conversations.ownership import owned
from chatapp.errors import SearchTooSlow
from chatapp.live.view_models import View
from compression.database import TookTooLong, in_database_thread, snapshot, time_limit
from compression.recall.terms import Terms, in_pairs, stem, terms_of

#: Messages that are told; nobody steps through more.
MOST_FOUND: Final = 1_000
# Seconds: as long as a search may take.
LONGEST: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class FoundInside(View):
    """Where words stand in a conversation."""

    query: str
    seqs: list[int]
    """The newest ``MOST_FOUND`` messages, in order."""
    count: int
    """All of them."""
    every_word: bool
    """Whether each message has all of the words; else each has at least one."""
    beginnings: list[str]
    """What the words to be marked begin with, lower case."""
    runs: list[str]
    """What is marked anywhere, in scripts without spaces."""


def with_every_word(terms: Terms, having: Mapping[str, Collection[int]]) -> tuple[list[int], bool]:
    """The messages that have all terms, or else those that have any; and whether they have all.

    ``having``: term → seqs of the messages with it. Forms of a word are one term. Pure.
    """
    forms: dict[str, set[int]] = {}
    for term, seqs in having.items():
        form = stem(term) if term in terms.words else term
        forms.setdefault(form, set()).update(seqs)
    if not forms:
        return [], True
    every = set.intersection(*forms.values())
    found = every or set[int]().union(*forms.values())
    return sorted(found), bool(every) or not found


@snapshot()
def find_inside(user_id: int, code: str, query: str) -> FoundInside:
    """The messages of a conversation that have the words of ``query``; the last may be unfinished.

    Superseded messages and replies being written are not searched. Raises NotFound, and
    SearchTooSlow after ``LONGEST`` seconds.
    """
    row = owned(user_id, code)
    terms = in_pairs(terms_of(query))
    found: list[int] = []
    every = True
    if terms.all:
        try:
            with time_limit(LONGEST):
                history = StoredHistory(row, everything=True, unfinished=True)
                found, every = with_every_word(terms, history.having(terms))
        except TookTooLong as error:
            raise SearchTooSlow from error
    return FoundInside(
        query=query,
        seqs=found[-MOST_FOUND:],
        count=len(found),
        every_word=every,
        beginnings=list(dict.fromkeys(stem(word) for word in terms.words)),
        runs=list(terms.runs),
    )


afind_inside = in_database_thread(find_inside, lane="slow")
