"""The tools of a turn: which ones its next request offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from django.conf import settings

from chatapp.context.request import ConversationSnapshot
from chatapp.tools.clock import current_time
from compression.tools.tool import Tool

#: Gives the tools that the next request of a conversation offers.
ToolSource = Callable[[ConversationSnapshot], Awaitable[tuple[Tool, ...]]]


async def no_tools(conversation: ConversationSnapshot) -> tuple[Tool, ...]:
    """No tools, for hosts and tests that offer none."""
    return ()


async def built_in(conversation: ConversationSnapshot) -> tuple[Tool, ...]:
    """The tools of the chat itself that an administrator has switched on."""
    return (current_time(),) if settings.CURRENT_TIME_TOOL else ()


#: Where tools come from, in the order in which they are offered.
SOURCES: list[ToolSource] = [built_in]


async def tools_for(conversation: ConversationSnapshot) -> tuple[Tool, ...]:
    """The tools that the next request of this conversation offers."""
    tools: list[Tool] = []
    for source in SOURCES:
        tools += await source(conversation)
    return tuple(tools)
