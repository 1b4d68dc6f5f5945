"""Results of MCP tools as text for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chatapp.text.safety import clean, without_hidden

#: Characters of a result that are passed on; the turn's own limits are below that.
MOST_CHARACTERS = 200_000
_BASE64_BYTES = 3 / 4


def as_text(result: Mapping[str, Any]) -> str:
    """The text of a raw result: its texts in order, a line for each thing that is none.

    Hidden characters are left out, as in anything from elsewhere. A result without any block is
    shown by its structured content.
    """
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_block(one) for one in blocks if isinstance(one, dict)]
    if not any(parts) and "structuredContent" in result:
        parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
    text = "\n".join(part for part in parts if part)
    left = len(text) - MOST_CHARACTERS
    if left > 0:
        text = f"{text[:MOST_CHARACTERS]}\n[{left:,} more characters were left out]"
    return clean(without_hidden(text))


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "image" | "audio" as kind:
            return f"[{kind}: {_size(block)}, not shown]"
        case "resource_link":
            return f"[resource: {block.get('uri')}]"
        case "resource":
            return _resource(block.get("resource"))
        case kind:
            return f"[a block of the unknown type {kind}, not shown]"


def _resource(resource: Any) -> str:
    if not isinstance(resource, dict):
        return "[a resource that is none]"
    if isinstance(resource.get("text"), str):
        return f"[resource: {resource.get('uri')}]\n{resource['text']}"
    return f"[resource: {resource.get('uri')}, {_size(resource, 'blob')}, not shown]"


def _size(block: Mapping[str, Any], field: str = "data") -> str:
    size = int(len(str(block.get(field) or "")) * _BASE64_BYTES)
    return f"{block.get('mimeType') or 'of an unknown kind'}, about {size:,} bytes"
