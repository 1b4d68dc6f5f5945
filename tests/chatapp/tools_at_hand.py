"""Tools that tests offer to models, through the port that the product offers its own by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from chatapp.context.request import ConversationSnapshot
from chatapp.tools.registry import ToolSource
from compression.tools.tool import Run, Tool
from compression.types import Sizes
from tests.compression.tools.making import tool


def offering(*tools: Tool) -> ToolSource:
    """A source of these tools, whatever the conversation."""

    async def source(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
        return tools

    return source


class Waiting:
    """A tool's work that waits until the test lets it go."""

    def __init__(self, result: str = "Sunny.") -> None:
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.runs = 0
        self._result = result

    async def __call__(self, arguments: Mapping[str, Any]) -> str:
        self.runs += 1
        self.begun.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self._result


def giving(result: Any) -> Run:
    """The work of a tool that gives this at once."""

    async def work(arguments: Mapping[str, Any]) -> str:
        return result  # type: ignore[no-any-return]

    return work


__all__ = ["Waiting", "giving", "offering", "tool"]
