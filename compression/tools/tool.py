"""A tool that a model may call. Pure: a host, or this app, gives the function that works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Run = Callable[[Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, as it is offered to a model and run for it."""

    name: str
    """1 to 64 letters, digits, ``_`` and ``-``; no two tools of a request share a name."""
    description: str
    """What it does, in words for the model."""
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, which are one object."""
    run: Run
    """Does the work for arguments that fit the schema. Returns the result as text.

    Raises :class:`compression.exceptions.ToolFailed` with a sentence for the model. It may be
    cancelled at any time.
    """
    read_only: bool = False
    """It changes nothing anywhere, so nobody has to approve its calls."""
    most_calls: int | None = None
    """Calls in one turn; None: as many as the rounds allow."""
    counted_with: str = ""
    """Tools with the same word here share their ``most_calls``; empty: this tool alone."""
    most_tokens: int | None = None
    """Ruler tokens of one result; None: what the host allows any tool."""

    def definition(self) -> dict[str, Any]:
        """The tool in OpenAI's form."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }
