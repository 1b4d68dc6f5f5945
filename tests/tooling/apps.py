"""Two tools for tests of whole servers: one that answers at once, one that hangs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.apps import AppConfig


class Tooling(AppConfig):
    """Adds a source of tools, as any app may.

    The one that hangs writes a line about each of its calls to the file ``TESTS_TOOL_RUNS``.
    """

    name = "tests.tooling"

    def ready(self) -> None:
        """Register the source."""
        from chatapp.tools import registry

        registry.SOURCES.append(_source)


async def _source(conversation: Any, sizes: Any) -> tuple[Any, ...]:
    from tests.compression.tools.making import tool

    async def hangs(arguments: Mapping[str, Any]) -> str:
        _note(str(arguments["city"]))
        await asyncio.Event().wait()
        return ""

    return tool(read_only=True), tool("hang", run=hangs, read_only=True)


def _note(run: str) -> None:
    if runs := os.environ.get("TESTS_TOOL_RUNS"):
        with Path(runs).open("a", encoding="utf-8") as file:
            file.write(f"{run}\n")
