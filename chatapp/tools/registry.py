"""The tools of a turn: which ones its next request offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from django.conf import settings

from chatapp.context.request import ConversationSnapshot
from chatapp.tools.clock import current_time
from chatapp.tools.recall import recall_tools_of
from compression.ports import TokenCounter
from compression.tools.tool import Tool
from compression.types import Sizes

#: Gives the tools that the next request of a conversation offers; the sizes are those of its model.
ToolSource = Callable[[ConversationSnapshot, Sizes], Awaitable[tuple[Tool, ...]]]


async def no_tools(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
    """No tools, for hosts and tests that offer none."""
    return ()


async def built_in(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
    """The tools of the chat itself that an administrator has switched on."""
    tools = [current_time()] if settings.CURRENT_TIME_TOOL else []
    if settings.FETCH_HOSTS:
        # Imported late: what reads pages takes long, and most chats fetch none.
        from chatapp.tools.fetching import fetch_tool

        if (fetching := fetch_tool()) is not None:
            tools.append(fetching)
    return tuple(tools)


def recall(counter: TokenCounter) -> ToolSource:
    """The two tools that look up older messages, whenever some are left out or masked."""

    async def source(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
        left_out = max(conversation.boundary, conversation.truncated_through)
        if not left_out and not any(one.masked for one in conversation.tail):
            return ()
        return recall_tools_of(conversation, counter, sizes)

    return source


#: Where more tools come from, in the order in which they are offered: for apps that add some.
SOURCES: list[ToolSource] = []


def all_of(sources: Iterable[ToolSource]) -> ToolSource:
    """The tools of all these sources, and of ``SOURCES``."""
    known = tuple(sources)

    async def source(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
        found: list[Tool] = []
        for one in (*known, *SOURCES):
            found += await one(conversation, sizes)
        return tuple(found)

    return source
