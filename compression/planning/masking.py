"""Masking: a line that describes an old tool result takes the result's place. Pure.

Masking removes no message and no call id. Results are masked in batches, because every change to
an earlier message makes the provider's cache useless from there on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compression.types import Item, Sizes

#: The least share of the budget that a batch must free.
BATCH = 0.05
#: Messages at the end of the conversation whose results are not masked.
RECENT = 6
#: Characters: of a result longer than ``LONG``, the first ``KEPT`` stay below its description.
LONG = 2000
KEPT = 200
#: From this many lines on, the description gives the number of lines instead of the bytes.
MANY_LINES = 10
#: Ruler tokens that a message takes besides its text, roughly.
OVERHEAD = 8

_EXIT_CODE = re.compile(
    r"\bexit(?:ed with)?[ _-]?(?:code|status)?[\"']?\s*[:=]?\s*(-?\d{1,5})\b", re.I
)
_MASKED = re.compile(r"\[[^\n\[\]]{1,100} result masked: ")


def placeholder(item: Item) -> str:
    """The line that replaces a tool result, such as ``[shell result masked: exit code 0, …]``."""
    name = re.sub(r"[^\w.:-]+", "_", item.tool_name)[:60] or "tool"
    size = f"{len(item.text.encode('utf-8', 'surrogatepass')):,} bytes"
    lines = item.text.count("\n") + 1
    exit_code = _EXIT_CODE.search(item.text[:2000]) or _EXIT_CODE.search(item.text[-500:])
    if exit_code is not None:
        what = f"exit code {exit_code[1]}, {size}"
    elif lines >= MANY_LINES:
        first = next((line.strip() for line in item.text.split("\n") if line.strip()), "")
        what = f"{lines:,} lines, starts with: {first[:80]}"
    else:
        what = size
    line = f"[{name} result masked: {what}]"
    return f"{line}\n{item.text[:KEPT]}" if len(item.text) > LONG else line


def maskable(items: Sequence[Item], sizes: Sizes) -> tuple[int, ...]:
    """Seqs of the results to mask now, oldest first; empty when they would free less than 0.05 B.

    The last six messages are left alone, and nothing is masked twice. The turn may still be open.
    """
    batch = _candidates(items)
    freed = sizes.share(sum(_saved(item) for item in batch))
    return tuple(item.seq for item in batch) if freed >= BATCH else ()


def maskable_share(items: Sequence[Item], sizes: Sizes) -> float:
    """The share of the budget that masking would free now; 0 when no batch is worth it."""
    freed = sizes.share(sum(_saved(item) for item in _candidates(items)))
    return freed if freed >= BATCH else 0.0


def _candidates(items: Sequence[Item]) -> list[Item]:
    return [
        item
        for item in items[: max(0, len(items) - RECENT)]
        if item.role == "tool"
        and not item.masked
        and not item.pinned
        and not _MASKED.match(item.text)
        and _saved(item) > 0
    ]


def _saved(item: Item) -> int:
    """Ruler tokens that masking the item saves, roughly: its placeholder has one per 3 bytes."""
    kept = len(placeholder(item).encode("utf-8", "surrogatepass")) // 3
    return item.tokens - kept - OVERHEAD
