"""Tools for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compression.tools.tool import Run, Tool

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


async def echo(arguments: Mapping[str, Any]) -> str:
    return f"Sunny in {arguments.get('city', 'Malmö')}."


def tool(name: str = "weather", run: Run = echo, **more: Any) -> Tool:
    """A tool that answers at once, and changes nothing unless it is said to."""
    given: dict[str, Any] = {
        "description": "The weather of a city.",
        "parameters": CITY,
        "read_only": True,
        **more,
    }
    return Tool(name=name, run=run, **given)
