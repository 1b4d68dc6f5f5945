"""Two tools for tests with a browser: one that answers at once, one that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.apps import AppConfig


class Tooling(AppConfig):
    """Adds a source of tools, as any app may."""

    name = "tests.tooling"

    def ready(self) -> None:
        """Register the source."""
        from chatapp.tools import registry

        registry.SOURCES.append(_source)


async def _source(conversation: Any, sizes: Any) -> tuple[Any, ...]:
    from tests.compression.tools.making import tool

    async def hangs(arguments: Mapping[str, Any]) -> str:
        await asyncio.Event().wait()
        return ""

    return tool(read_only=True), tool("hang", run=hangs, read_only=True)
