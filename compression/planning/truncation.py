"""The last steps before refusing: leave out the oldest turns, or shorten one huge turn. Pure.

Nothing is deleted: the next compression also covers what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

from compression.planning.planner import usage
from compression.types import Item, Sizes

#: The least share of the budget that one step leaves out. Smaller steps would change the beginning
#: of the request at every turn, and lose the provider's cache.
STEP = 0.20
DEFAULT_LANDING = 0.45
#: Characters that a shortened text keeps at least.
SHORTEST = 400


def truncate(
    items: Sequence[Item],
    sizes: Sizes,
    *,
    truncated_through: int,
    target: float | None = None,
) -> int:
    """The new ``truncated_through``: the seq of the last message to leave out.

    ``items`` are all live items after the boundary, including those already left out. Whole turns
    are left out, oldest first, until at least 0.20 B is freed and usage is at most ``target`` (a
    share of the budget, by default the landing of 0.45). The last turn and an open one always
    stay. Returns the old value when nothing can be left out, or when that would free less than
    0.20 B and the request fits anyway.
    """
    sent = [item for item in items if item.seq > truncated_through]
    whole = remaining = left = usage(sent, sizes).share
    goal = min(DEFAULT_LANDING if target is None else target, whole - STEP)
    through = truncated_through
    previous: Item | None = None
    for item in sent:
        if item.role == "user" and previous is not None:
            through, left = previous.seq, remaining
            if remaining <= goal:
                break
        if item.open:
            break
        remaining -= sizes.share(item.sent_tokens)
        previous = item
    return through if whole > 1.0 or left <= whole - STEP else truncated_through


def shorten_giant(
    items: Sequence[Item],
    sizes: Sizes,
    *,
    count: Callable[[str], int] | None = None,
) -> tuple[Item, ...] | None:
    """The items of one huge last turn, shortened so that the request fits the budget.

    Texts of the assistant and of tools are cut to their head and tail with a marker between,
    oldest first. The user's text is never cut: a question that does not fit is refused.
    ``count`` gives the ruler tokens of a text (by default its bytes ÷ 3). Returns None when the
    request cannot be made to fit.
    """
    measure = count or _estimate
    over = usage(items, sizes).total - sizes.budget
    shortened = list(items)
    for index, item in enumerate(shortened):
        if over <= 0:
            break
        if item.role == "user" or len(item.text) <= SHORTEST * 2:
            continue
        shorter = _shorten(item, over / sizes.calibration, measure)
        if shorter.tokens < item.tokens:
            shortened[index] = shorter
            over = usage(shortened, sizes).total - sizes.budget
    return tuple(shortened) if over <= 0 else None


def _shorten(item: Item, excess: float, count: Callable[[str], int]) -> Item:
    """The item with the middle of its text cut out, to save about ``excess`` ruler tokens."""
    share = max(0.0, 1 - (excess * 1.2 + 40) / max(1, item.tokens))
    keep = max(SHORTEST, int(len(item.text) * share))
    left_out = len(item.text) - keep
    if left_out <= 0:
        return item
    head, tail = item.text[: keep * 2 // 3], item.text[-(keep - keep * 2 // 3) :]
    text = f"{head}\n[… {left_out:,} characters left out here to fit the window …]\n{tail}"
    overhead = max(0, item.tokens - count(item.text))
    return replace(item, text=text, tokens=overhead + count(text))


def _estimate(text: str) -> int:
    return ceil(len(text.encode("utf-8", "surrogatepass")) / 3)
