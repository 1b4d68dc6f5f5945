"""The tool ``current_time``, which a model has no other way to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from compression.exceptions import ToolFailed
from compression.tools.tool import Tool

_PARAMETERS = {
    "type": "object",
    "properties": {
        "time_zone": {
            "type": "string",
            "description": "An IANA time zone such as Europe/Stockholm. Without it: UTC.",
        }
    },
    "additionalProperties": False,
}


def current_time(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Tool:
    """A tool that tells the date and the time; ``now`` gives them in UTC."""

    async def run(arguments: Mapping[str, Any]) -> str:
        name = str(arguments.get("time_zone") or "UTC")
        try:
            zone = ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            raise ToolFailed(f"There is no time zone named {name[:60]!r}.") from None
        moment = now().astimezone(zone)
        return f"{moment:%A}, {moment.isoformat(timespec='seconds')} ({name})"

    return Tool(
        name="current_time",
        description="The current date and time, in a time zone or in UTC.",
        parameters=_PARAMETERS,
        run=run,
        read_only=True,
    )
