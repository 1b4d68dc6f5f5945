"""The original messages of one conversation, as they are searched and looked up.

The full-text index finds the words, on both databases, within this conversation only; their weights
are worked out from its own messages, by :mod:`compression.recall.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from django.db import connection
from django.db.models import Q

from chatapp.conversations.messages.stored import live
from chatapp.models import Conversation, MessageRole, MessageStatus
from compression.database import TookTooLong, in_database_thread, snapshot, time_limit
from compression.exceptions import ToolFailed
from compression.recall.ports import Heading, History, Original
from compression.recall.terms import Terms
from compression.types import Role

# Seconds of one look-up: well within what a tool may take.
LONGEST = 10.0


class StoredHistory:
    """A :class:`compression.recall.ports.History` of a conversation, its row freshly read.

    ``everything``: also what the next request holds, for a person's search. ``unfinished``: the
    last word may be only a beginning.
    """

    def __init__(
        self, row: Conversation, *, everything: bool = False, unfinished: bool = False
    ) -> None:
        self.conversation_id = row.pk
        self.everything = everything
        self.unfinished = unfinished
        self.through = max(row.compressed_through, row.truncated_through)

    @cached_property
    def _places(self) -> Mapping[int, Heading]:
        """Id → heading, in order of seq."""
        rows = live(self.conversation_id).exclude(status=MessageStatus.STREAMING).exclude(text="")
        if not self.everything:
            masked = Q(role=MessageRole.TOOL, masked_at__isnull=False)
            rows = rows.filter(Q(seq__lte=self.through) | masked)
        found = rows.order_by("seq").values_list("pk", "seq", "role", "token_count", "pinned_at")
        return {
            pk: Heading(
                seq=seq,
                role=cast(Role, role),
                tokens=tokens,
                quoted=pinned is not None and not self.everything,
            )
            for pk, seq, role, tokens, pinned in found
        }

    def headings(self) -> Sequence[Heading]:
        """The messages without their texts."""
        return list(self._places.values())

    def ids(self, seqs: Sequence[int]) -> list[int]:
        """The ids of the messages with these seqs, in the order given."""
        known = {one.seq: pk for pk, one in self._places.items()}
        return [known[seq] for seq in seqs if seq in known]

    def having(self, terms: Terms) -> Mapping[str, Collection[int]]:
        """Term → seqs of the messages that contain it."""
        found = self._with_runs(terms.runs)
        if connection.vendor == "sqlite":
            found |= {word: self._in_sqlite(word, terms) for word in terms.words}
        elif terms.words:
            found |= self._in_postgresql(terms)
        return {
            term: {self._places[pk].seq for pk in ids if pk in self._places}
            for term, ids in found.items()
        }

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """The messages with these seqs, of each as much as the index knows."""
        rows = live(self.conversation_id).filter(pk__in=self.ids(list(seqs))).order_by("seq")
        return [
            Original(seq=seq, role=cast(Role, role), text=text, at=at, tool_name=tool)
            for seq, role, text, at, tool in rows.values_list(
                "seq", "role", "text", "created_at", "tool_name"
            )
        ]

    def _with_runs(self, runs: Sequence[str]) -> dict[str, set[int]]:
        """Run → ids; without an index, in one pass over the conversation."""
        if not runs:
            return {}
        like = "LIKE" if connection.vendor == "sqlite" else "ILIKE"
        each = [f"text {like} %s ESCAPE '\\'" for _ in runs]
        values = [f"%{literal(run)}%" for run in runs]
        return self._matching(runs, each, f"({' OR '.join(each)})", values, values)

    def _in_sqlite(self, word: str, terms: Terms) -> set[int]:
        beginning = "*" if self.unfinished and word == terms.words[-1] else ""
        query = f'conversation_id : "{self.conversation_id}" AND text : "{word}"{beginning}'
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT rowid FROM chatapp_messagetext WHERE chatapp_messagetext MATCH %s", [query]
            )
            return {row[0] for row in cursor.fetchall()}

    def _in_postgresql(self, terms: Terms) -> dict[str, set[int]]:
        queries = [f"'{word}'" for word in terms.words]
        if self.unfinished:
            queries[-1] += ":*"
        each = ["search_vector @@ to_tsquery('english', %s)" for _ in queries]
        return self._matching(terms.words, each, each[0], queries, [" | ".join(queries)])

    def _matching(
        self,
        terms: Sequence[str],
        each: Sequence[str],
        any_of_them: str,
        values: Sequence[str],
        any_values: Sequence[str],
    ) -> dict[str, set[int]]:
        """Term → ids, by one condition for each term and one for all of them."""
        statement = (
            f"SELECT id, {', '.join(each)} FROM chatapp_message "
            f"WHERE conversation_id = %s AND {any_of_them}"
        )
        parameters: list[Any] = [*values, self.conversation_id, *any_values]
        found: dict[str, set[int]] = {term: set() for term in terms}
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            for pk, *has in cursor.fetchall():
                for term, here in zip(terms, has, strict=True):
                    if here:
                        found[term].add(pk)
        return found


def literal(term: str) -> str:
    """The term with the wildcards of LIKE escaped."""
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


@snapshot()
def look_up(conversation_id: int, work: Callable[[History], str]) -> str:
    """What ``work`` makes of the messages that the conversation's next request does not hold.

    Raises ToolFailed if the conversation is gone, and after ``LONGEST`` seconds.
    """
    row = Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=True).first()
    if row is None:
        raise ToolFailed("This conversation has been deleted.")
    try:
        with time_limit(LONGEST):
            return work(StoredHistory(row))
    except TookTooLong as error:
        raise ToolFailed("Looking it up took too long. Ask for fewer or rarer words.") from error


alook_up = in_database_thread(look_up, lane="slow")
