"""The original messages of one conversation, as they are searched and looked up.

The full-text index finds the words, on both databases, within this conversation only; their weights
are worked out from its own messages, by :mod:`compression.recall.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from django.db import connection
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Coalesce

from chatapp.conversations.messages.stored import MASKABLE, live
from chatapp.models import Conversation, Message, MessageStatus
from compression.database import TookTooLong, in_database_thread, snapshot, time_limit
from compression.exceptions import ToolFailed
from compression.ledger.lines import forgotten
from compression.recall.ports import Heading, History, Original
from compression.recall.quoting import MOST_OF_ONE, with_calls
from compression.recall.terms import Terms, stem, stems_of
from compression.recall.tools import NAMES as RECALL_TOOLS
from compression.recall.tools import other_calls
from compression.store import read_version
from compression.types import Role

# Seconds of one look-up: well within what a tool may take.
LONGEST = 10.0
# Messages of which the arguments of calls are searched.
MOST_CALLING = 2_000

_TOKENS = Case(
    When(masked_at__isnull=False, then=Coalesce("unmasked_tokens", "token_count")),
    default=F("token_count"),
)


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
        self.without: Collection[int] = ()
        """Seqs of messages that are not looked up."""

    def _rows(self) -> QuerySet[Message]:
        rows = live(self.conversation_id).exclude(status=MessageStatus.STREAMING)
        if self.everything:
            return rows.exclude(text="")
        hidden = Q(seq__lte=self.through) | (MASKABLE & Q(masked_at__isnull=False))
        rows = rows.exclude(text="", tool_calls=[]).filter(hidden)
        return rows.exclude(seq__in=self.without) if self.without else rows

    @cached_property
    def _places(self) -> Mapping[int, Heading]:
        """Id → heading, in order of seq."""
        return self._headings(self._rows())

    def _headings(self, rows: QuerySet[Message]) -> dict[int, Heading]:
        found = (
            rows.annotate(tokens=_TOKENS)
            .order_by("seq")
            .values_list("pk", "seq", "role", "tokens", "pinned_at", "tool_name")
        )
        return {
            pk: Heading(
                seq=seq,
                role=cast(Role, role),
                tokens=tokens,
                quoted=not self.everything and (pinned is not None or tool in RECALL_TOOLS),
            )
            for pk, seq, role, tokens, pinned, tool in found
        }

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        """The messages without their texts, or those of them with these seqs."""
        if seqs is None:
            return list(self._places.values())
        return list(self._headings(self._rows().filter(seq__in=set(seqs))).values())

    def ids(self, seqs: Sequence[int]) -> list[int]:
        """The ids of the messages with these seqs, in the order given."""
        known = {one.seq: pk for pk, one in self._places.items()}
        return [known[seq] for seq in seqs if seq in known]

    def having(self, terms: Terms, *, most: int | None = None) -> Mapping[str, Collection[int]]:
        """Term → seqs of the messages that contain it; with ``most``, see the port.

        Arguments of calls are in no index: those of the newest ``MOST_CALLING`` messages are read,
        unless there is ``most``.
        """
        if most is not None:
            few = {term: self._few(term, most, run=term in terms.runs) for term in terms.all}
            return {term: seqs for term, seqs in few.items() if len(seqs) <= most}
        found = self._with_runs(terms.runs)
        if connection.vendor == "sqlite":
            found |= {word: self._in_sqlite(word, terms) for word in terms.words}
        elif terms.words:
            found |= self._in_postgresql(terms)
        seqs = {
            term: {self._places[pk].seq for pk in ids if pk in self._places}
            for term, ids in found.items()
        }
        for term, calling in self._in_calls(terms).items():
            seqs[term] |= calling
        return seqs

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """The messages with these seqs, in order of seq."""
        rows = self._rows().filter(seq__in=set(seqs)).order_by("seq")
        return [
            Original(
                seq=seq,
                role=cast(Role, role),
                text=text if self.everything else with_calls(text, calls),
                at=at,
                tool_name=tool,
            )
            for seq, role, text, calls, at, tool in rows.values_list(
                "seq", "role", "text", "tool_calls", "created_at", "tool_name"
            )
        ]

    def _few(self, term: str, most: int, *, run: bool) -> set[int]:
        """Seqs of messages that contain a term, tail included: of one more than ``most``."""
        condition, values = self._contains(term, run=run)
        statement = f"SELECT m.seq FROM {condition} LIMIT %s"
        with connection.cursor() as cursor:
            cursor.execute(statement, [*values, most + 1])
            return {row[0] for row in cursor.fetchall()}

    def _contains(self, term: str, *, run: bool) -> tuple[str, list[Any]]:
        """The tables and the condition for one term, with its parameters."""
        messages = "chatapp_message m WHERE m.conversation_id = %s AND "
        if run:
            return f"{messages} m.text {_like()} %s ESCAPE '\\'", [
                self.conversation_id,
                f"%{literal(term)}%",
            ]
        if connection.vendor == "sqlite":
            index = "chatapp_messagetext JOIN chatapp_message m ON m.id = chatapp_messagetext.rowid"
            return f"{index} WHERE chatapp_messagetext MATCH %s", [
                _in_index(self.conversation_id, f'"{term}"')
            ]
        matches = "m.search_vector @@ to_tsquery('english', %s)"
        return messages + matches, [self.conversation_id, f"'{term}'"]

    def _in_calls(self, terms: Terms) -> dict[str, set[int]]:
        """Term → seqs of the messages with it in the arguments of calls."""
        found: dict[str, set[int]] = {term: set() for term in terms.all}
        if self.everything:
            return found
        forms = {word: stem(word) for word in terms.words}
        calling = self._rows().exclude(tool_calls=[]).order_by("-seq")
        for seq, calls in calling.values_list("seq", "tool_calls")[:MOST_CALLING]:
            text = with_calls("", other_calls(calls))[:MOST_OF_ONE].lower()
            if any(form in text for form in forms.values()):
                stems = stems_of(text)
                for word, form in forms.items():
                    if form in stems:
                        found[word].add(seq)
            for run in terms.runs:
                if run.lower() in text:
                    found[run].add(seq)
        return found

    def _with_runs(self, runs: Sequence[str]) -> dict[str, set[int]]:
        """Run → ids; without an index, in one pass over the conversation."""
        if not runs:
            return {}
        like = _like()
        each = [f"text {like} %s ESCAPE '\\'" for _ in runs]
        values = [f"%{literal(run)}%" for run in runs]
        return self._matching(runs, each, f"({' OR '.join(each)})", values, values)

    def _in_sqlite(self, word: str, terms: Terms) -> set[int]:
        beginning = "*" if self.unfinished and word == terms.words[-1] else ""
        query = _in_index(self.conversation_id, f'"{word}"{beginning}')
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


def _in_index(conversation_id: int, phrase: str) -> str:
    """FTS5's query for a phrase in one conversation."""
    return f'conversation_id : "{conversation_id}" AND text : {phrase}'


def _like() -> str:
    """The operator that finds a string, whatever its case."""
    return "LIKE" if connection.vendor == "sqlite" else "ILIKE"


def literal(term: str) -> str:
    """The term with the wildcards of LIKE escaped."""
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _forgotten(row: Conversation) -> frozenset[int]:
    """Seqs of the messages that the person has models forget."""
    if not row.compression_version:
        return frozenset()
    return forgotten(read_version(row.pk, row.compression_version).ledger)


@snapshot()
def look_up(
    conversation_id: int, work: Callable[[History], str], *, seconds: float = LONGEST
) -> str:
    """What ``work`` makes of the messages that the conversation's next request does not hold.

    Raises ToolFailed if the conversation is gone, and after so many seconds.
    """
    row = Conversation.objects.filter(pk=conversation_id, deleted_at__isnull=True).first()
    if row is None:
        raise ToolFailed("This conversation has been deleted.")
    try:
        with time_limit(seconds):
            history = StoredHistory(row)
            history.without = _forgotten(row)
            return work(history)
    except TookTooLong as error:
        raise ToolFailed("Looking it up took too long. Ask for fewer or rarer words.") from error


alook_up = in_database_thread(look_up, lane="slow")
