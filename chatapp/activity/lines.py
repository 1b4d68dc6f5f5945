"""The lines of the log: a model call as JSON, without secrets. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chatapp.activity.redaction import Redaction
from chatapp.llm.activity_log import Call

#: The folder and the ``project`` of calls without a project.
NO_PROJECT = "default"
#: A line that was taken out, padded to its length.
REMOVED = b'{"removed": true}'


def line_of(
    call: Call,
    *,
    conversation: str | None,
    project: str,
    content: bool,
    redaction: Redaction,
) -> dict[str, Any]:
    """The line of a call. ``conversation`` is a code, ``project`` a slug; empty for none.

    Without ``content`` it has nothing that a person or a model wrote.
    """
    return {
        "call": call.id,
        "timestamp": call.at.isoformat(timespec="milliseconds"),
        "project": project or NO_PROJECT,
        "conversation": conversation,
        "turn": call.turn,
        "kind": call.kind,
        "model": redaction(call.model),
        "request": redaction(call.request) if content else None,
        "response": _response(call, redaction, content=content),
        "usage": _usage(call),
        "cost": call.cost,
        "duration": round(call.duration, 3),
        "first_token": None if call.first_token is None else round(call.first_token, 3),
        "error": _error(call, redaction, content=content),
    }


def encoded(line: Mapping[str, Any]) -> bytes:
    """A line as bytes: ASCII, so that no separator or escape sequence in a text can break it."""
    return json.dumps(line, ensure_ascii=True, default=str).encode("ascii") + b"\n"


def decoded(raw: bytes) -> dict[str, Any] | None:
    """A line as it was written; None for a half-written one, a removed one, and anything else."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("call"), str) else None


def _response(call: Call, redaction: Redaction, *, content: bool) -> dict[str, Any] | None:
    """The reply, as far as it came; None if nothing did."""
    text, reasoning = "".join(call.text), "".join(call.reasoning)
    if not (text or reasoning or call.tool_calls or call.finish_reason):
        return None
    calls = [
        {"id": one.id, "name": one.name, "arguments": one.arguments} for one in call.tool_calls
    ]
    said = {"text": text, "reasoning": reasoning, "tool_calls": calls}
    return {
        **(redaction(said) if content else dict.fromkeys(said)),
        "finish_reason": redaction(call.finish_reason) or None,
    }


def _usage(call: Call) -> dict[str, int] | None:
    if call.usage is None:
        return None
    read, written = call.usage.prompt_tokens, call.usage.completion_tokens
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "cached_tokens": call.usage.cached_tokens,
    }


def _error(call: Call, redaction: Redaction, *, content: bool) -> dict[str, str] | None:
    """The error; the server's own words may quote the request, so they count as content."""
    if call.error is None:
        return None
    kept = {key: text for key, text in call.error.items() if content or key != "provider"}
    told: dict[str, str] = redaction(kept)
    return told
