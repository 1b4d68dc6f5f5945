"""Approval of calls: what is asked before a tool runs that is not read-only. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from compression.tools.tool import Tool

Approve = Callable[[Tool, str, Mapping[str, Any]], Awaitable[bool]]
"""Asks whether a call may run: its tool, its id, and its arguments.

Returns once somebody has decided: True lets this call run once, with these arguments. Raises
ToolFailed with the reason when it may not run; False means the same without one. It may be
cancelled at any time, and the question is then over.
"""


def exact(value: Any) -> str:
    """A JSON value as the one text that stands for it, whatever the order of its keys; ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(value: Any) -> str:
    """The SHA-256 of a JSON value, in hexadecimal: the same for two values only if they are."""
    return hashlib.sha256(exact(value).encode()).hexdigest()
