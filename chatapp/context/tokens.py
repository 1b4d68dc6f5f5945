"""Ruler tokens of whole messages, counted once, when they are stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from compression.ports import TokenCounter

# Role and separators. OpenAI's own counting recipe has 3 tokens per message and 1 for a name.
MESSAGE_OVERHEAD = 4
# Characters above which counting goes to a thread: the ruler does about 3 MB a second.
INLINE_CHARACTERS = 4_000


def message_tokens(
    counter: TokenCounter, text: str, tool_calls: Sequence[Mapping[str, Any]] = ()
) -> int:
    """Ruler tokens of one message as it is sent: text, tool calls, overhead."""
    tokens = counter.count(text) + MESSAGE_OVERHEAD
    if tool_calls:
        tokens += counter.count(json.dumps(list(tool_calls), ensure_ascii=False))
    return tokens


def definition_tokens(counter: TokenCounter, definitions: Sequence[Mapping[str, Any]]) -> int:
    """Ruler tokens of the definitions of tools, as they are sent; 0 if there are none."""
    if not definitions:
        return 0
    return _counted(counter.count, json.dumps(list(definitions), ensure_ascii=False))


@lru_cache(maxsize=32)
def _counted(count: Callable[[str], int], text: str) -> int:
    """The count of a text that comes with each request, and may be long."""
    return count(text)
