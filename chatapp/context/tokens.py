"""Ruler tokens of whole messages, counted once, when they are stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    return CachingCounter(counter).count(json.dumps(list(definitions), ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class CachingCounter:
    """A ruler that counts no text twice, for texts that come with each request and each screen."""

    counter: TokenCounter

    @property
    def estimated(self) -> bool:
        """Whether there is no table to count with."""
        return self.counter.estimated

    def count(self, text: str) -> int:
        """Ruler tokens of a text."""
        return _cached_count(self.counter.count, text)


@lru_cache(maxsize=512)
def _cached_count(count: Callable[[str], int], text: str) -> int:
    return count(text)
