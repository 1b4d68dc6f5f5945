"""The two tools by which a model looks things up in its own conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from compression.ports import TokenCounter
from compression.recall.answers import MOST_HITS, read, search
from compression.recall.ports import History
from compression.recall.quoting import in_full
from compression.tools.tool import Tool
from compression.types import Item

SEARCH: Final = "search_history"
READ: Final = "read_messages"
NAMES: Final = frozenset({SEARCH, READ})
#: Results of a search that asks for no number of them.
LIMIT: Final = 8
#: Calls of both tools together in one turn.
MOST_CALLS: Final = 4
#: What one call may cost, as a share of the budget.
SHARE: Final = 0.05


def other_calls(calls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls of other tools than these two, whose queries repeat what they look for."""
    return [
        call
        for call in calls
        if not (isinstance(made := call.get("function"), Mapping) and made.get("name") in NAMES)
    ]


def without_looked_up(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, results of these tools without text, as a summary is made of them.

    What they quote was said before, under numbers of its own. Their tokens stay.
    """
    return tuple(
        replace(one, text="") if one.role == "tool" and one.tool_name in NAMES else one
        for one in items
    )


#: JSON schemas of the arguments.
SEARCH_ARGUMENTS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "The words to look for, in the conversation's language.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_HITS,
            "default": LIMIT,
            "description": "The most passages to give.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
READ_ARGUMENTS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "first": {"type": "integer", "minimum": 1},
        "last": {"type": "integer", "minimum": 1},
    },
    "required": ["first", "last"],
    "additionalProperties": False,
}


class LookUp(Protocol):
    """The host's way to the messages."""

    def __call__(self, work: Callable[[History], str], /) -> Awaitable[str]:
        """The result of ``work`` with the conversation's history, in one unit of work.

        Raises :class:`compression.exceptions.ToolFailed` when it cannot be read.
        """


def recall_tools(
    look_up: LookUp, counter: TokenCounter, *, most_tokens: int, quoted: Iterable[str] = ()
) -> tuple[Tool, Tool]:
    """``search_history`` and ``read_messages``, whose results have at most ``most_tokens``.

    ``quoted`` are the texts of the next request that these tools or the program have looked up: a
    search passes over the messages that stand there in full.
    """
    room: dict[str, Any] = {"count": counter.count, "most_tokens": most_tokens}
    seen = frozenset[int]().union(*map(in_full, quoted))

    async def run_search(arguments: Mapping[str, Any]) -> str:
        query, limit = str(arguments["query"]), int(arguments.get("limit", LIMIT))
        return await look_up(partial(search, query=query, limit=limit, seen=seen, **room))

    async def run_read(arguments: Mapping[str, Any]) -> str:
        first, last = int(arguments["first"]), int(arguments["last"])
        return await look_up(partial(read, first=first, last=last, **room))

    shared: dict[str, Any] = {
        "read_only": True,
        "most_calls": MOST_CALLS,
        "counted_with": "recall",
        "most_tokens": most_tokens,
    }
    return (
        Tool(
            name=SEARCH,
            description=(
                "Search the older messages of this conversation, which you no longer see. Gives "
                "the passages with most of the query's words, each under its message's number."
            ),
            parameters=SEARCH_ARGUMENTS,
            run=run_search,
            **shared,
        ),
        Tool(
            name=READ,
            description=(
                "Read older messages of this conversation word for word, by their numbers: those "
                "in brackets in the summary, or those that search_history gives."
            ),
            parameters=READ_ARGUMENTS,
            run=run_read,
            **shared,
        ),
    )
