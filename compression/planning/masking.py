"""Old tool results, replaced by a line that says what was there. Pure.

Masking removes no message and no call id. It comes in batches, since each one changes the request
from there on and loses the provider's cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compression.types import Item, Sizes

#: The least share of the budget that a batch must free.
BATCH = 0.05
#: Messages at the end whose results stay.
RECENT = 6
LONG = 2000
#: Characters: a result longer than the first keeps so many beside its description.
KEPT = 200
#: From here on the number of lines says more than the number of bytes.
MANY_LINES = 10
#: Ruler tokens of a message besides its text, about.
OVERHEAD = 8

_EXIT_CODE = re.compile(
    r"\bexit(?:ed with)?[ _-]?(?:code|status)?[\"']?\s*[:=]?\s*(-?\d{1,5})\b", re.I
)
_MASKED = re.compile(r"\[[^\n\[\]]{1,100} result masked: ")


def placeholder(item: Item) -> str:
    """The stand-in for a tool item's result, such as ``[shell result masked: exit code 0, …]``."""
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
    """Seqs of the results to mask now, oldest first; empty when they would not free 0.05 B.

    Those of the last six messages stay, and none is masked twice. The turn may still be open.
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
    """Ruler tokens that masking the item saves, about: its placeholder has a token per 3 bytes."""
    kept = len(placeholder(item).encode("utf-8", "surrogatepass")) // 3
    return item.tokens - kept - OVERHEAD
