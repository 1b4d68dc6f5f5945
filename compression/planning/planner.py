"""The choice of the span to compress and of the boundary. Pure, and linear in the messages.

A cut is only made where a user turn starts, so that tool calls and results stay together, and
never after an open turn. All shares are of the budget (window minus reserve).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NoReturn

from compression.exceptions import NothingToCompress
from compression.planning import defaults
from compression.types import Item, Sizes, Span, Trigger, Usage

#: Share of the budget that stays verbatim: in tokens, because a limit in messages led to a
#: compression every 1.8 calls at a window of 8k. Decision 15 has the figures of other shares.
TAIL_SHARE = 0.20
#: Usage that a compression must reach or go below, if the threshold is not too near.
LANDING = 0.45
CAP_SHARE = 0.10
AUTOMATIC_FREES = 0.20
#: What applying a prepared draft must free, and what an automatic run must free when the parts
#: that cannot be compressed are already above the landing.
FALLBACK_FREES = 0.10
MANUAL_FREES = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """When to compress, and how much to keep."""

    threshold: float = defaults.THRESHOLD
    """Share of the budget at which compression is triggered."""
    keep_turns: int = defaults.KEEP_TURNS
    """Turns that stay verbatim if they fit into the tail's share."""
    keep_messages: int = 6
    """Messages that stay verbatim if they fit into the tail's share."""
    summary_tokens: int = defaults.SUMMARY_TOKENS
    """Ruler tokens that a summary may have at most."""
    prepare_messages: int = defaults.PREPARE_MESSAGES
    """Messages, besides those that stay verbatim, after which a summary is prepared in the
    background at any usage; 0: never because of their number."""
    tail_share: float = TAIL_SHARE
    """Share of the budget that an automatic run keeps verbatim at most."""
    landing_share: float = LANDING
    """See :attr:`landing`."""

    def frees(self, trigger: Trigger) -> float:
        """The share of the budget that a run with this trigger must free."""
        if trigger.by_hand:
            return MANUAL_FREES
        # A draft prepared because of the number of messages may be as small as one worth applying.
        return FALLBACK_FREES if self.by_number(trigger) else AUTOMATIC_FREES

    def by_number(self, trigger: Trigger) -> bool:
        """Whether the number of messages alone may start a run with this trigger."""
        return trigger is Trigger.BACKGROUND and self.prepare_messages > 0

    @property
    def landing(self) -> float:
        """Usage that a compression must reach or go below, a share of the budget."""
        return min(self.landing_share, self.threshold - 0.2)


def usage(items: Sequence[Item], sizes: Sizes) -> Usage:
    """Calibrated tokens of a request made of these items; each part is rounded up."""

    return usage_of(sum(item.sent_tokens for item in items), sizes)


def usage_of(tail: int, sizes: Sizes) -> Usage:
    """The same as :func:`usage`, given the ruler tokens of all items."""

    def calibrated(ruler_tokens: int) -> int:
        return ceil(ruler_tokens * sizes.calibration)

    return Usage(
        budget=sizes.budget,
        fixed=calibrated(sizes.fixed),
        summary=calibrated(sizes.summary),
        pinned=calibrated(sizes.pinned),
        tail=calibrated(tail),
    )


def cap_tokens(sizes: Sizes, settings: PlannerSettings) -> int:
    """Ruler tokens that the summary may have: the setting, but no more than 0.10 B."""
    return max(1, min(settings.summary_tokens, sizes.ruler(CAP_SHARE)))


def worth_applying(span_tokens: int, summary_growth_tokens: int, sizes: Sizes) -> bool:
    """Whether applying a prepared draft frees at least 0.10 B now. Sizes in ruler tokens."""
    return sizes.share(span_tokens - summary_growth_tokens) >= FALLBACK_FREES


def plan(
    items: Sequence[Item],
    sizes: Sizes,
    settings: PlannerSettings,
    *,
    trigger: Trigger,
    through_seq: int | None = None,
) -> Span:
    """The span to compress.

    ``items`` are all live items after the boundary. ``through_seq`` asks to compress up to that
    message; the span ends at the nearest cut before it. Most automatic runs keep as much verbatim
    as the tail's share holds. A manual run, and one started by the number of messages, keep the
    turns and messages of the settings. Raises :class:`NothingToCompress` with the figures when no
    span exists or none is worth a call.
    """
    outline = _Outline.of(items)
    if not outline.cuts:
        _refuse("There is nothing to compress yet: only the latest turn is left.", frees=0.0)
    cap = cap_tokens(sizes, settings)
    room = _Room(
        tail=sizes.ruler(settings.tail_share),
        landing=sizes.ruler(settings.landing)
        - (sizes.fixed + sizes.pinned + max(cap + sizes.frame, sizes.summary)),
    )
    counted = trigger.by_hand or settings.by_number(trigger)
    if through_seq is not None:
        cut = outline.cut_at_seq(items, through_seq)
    elif counted:
        cut = outline.cut_keeping(settings.keep_turns, settings.keep_messages, room)
    else:
        cut = outline.cut_within(room)
    _check_worth(outline, cut, sizes, settings, trigger)
    return Span(
        items=tuple(items[:cut]),
        through_seq=items[cut - 1].seq,
        source_tokens=sum(item.tokens for item in items[:cut]),
    )


@dataclass(frozen=True, slots=True)
class _Room:
    """The most ruler tokens that may stay verbatim."""

    tail: int
    """Limit of the tail."""
    landing: int
    """Limit of the tail and the pins before it, which are quoted again."""


@dataclass(frozen=True, slots=True)
class _Outline:
    """Running sums over the items, so that a sum over any range takes constant time."""

    before: list[int]
    """Ruler tokens that all items before each index take in a request; the last is the total."""
    pinned_before: list[int]
    """Ruler tokens of the pinned items before each index."""
    cuts: list[int]
    """Indexes at which the tail may begin, ascending; the last is the start of the last turn."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> _Outline:
        before, pinned, cuts = [0], [0], []
        closed = True
        for index, item in enumerate(items):
            if item.role == "user" and index > 0 and closed:
                cuts.append(index)
            closed = closed and not item.open
            before.append(before[-1] + item.sent_tokens)
            pinned.append(pinned[-1] + (item.tokens if item.pinned else 0))
        return cls(before, pinned, cuts)

    def tail(self, cut: int) -> int:
        """Ruler tokens in a request from ``cut`` to the end."""
        return self.before[-1] - self.before[cut]

    def cut_within(self, room: _Room) -> int:
        """The first cut whose tail fits in ``room``; the last one if none does."""
        for cut in self.cuts:
            tail = self.tail(cut)
            if tail <= room.tail and tail + self.pinned_before[cut] <= room.landing:
                return cut
        return self.cuts[-1]

    def cut_keeping(self, turns: int, messages: int, room: _Room) -> int:
        """The cut that keeps this many turns and messages, or fewer if they do not fit."""
        wanted = self.cuts[max(0, len(self.cuts) - max(1, turns))]
        enough = len(self.before) - 1 - messages
        if wanted > enough:
            wanted = next((cut for cut in reversed(self.cuts) if cut <= enough), self.cuts[0])
        return max(wanted, self.cut_within(room))

    def cut_at_seq(self, items: Sequence[Item], through_seq: int) -> int:
        """The last cut that leaves every message after ``through_seq`` in the tail."""
        for cut in reversed(self.cuts):
            if items[cut - 1].seq <= through_seq:
                return cut
        _refuse("There is no whole turn before that message to compress.", frees=0.0)


def _check_worth(
    outline: _Outline, cut: int, sizes: Sizes, settings: PlannerSettings, trigger: Trigger
) -> None:
    """Raise unless compressing up to ``cut`` is worth a call even if the summary fills its cap."""
    summary = max(cap_tokens(sizes, settings) + sizes.frame, sizes.summary)
    pins = outline.pinned_before[cut]
    frees = sizes.share(outline.before[cut] - (summary - sizes.summary) - pins)
    standing = sizes.fixed + sizes.pinned + pins + summary
    manual = trigger.by_hand
    needed = settings.frees(trigger)
    lands = sizes.share(standing + outline.tail(cut)) <= settings.landing
    if not manual:
        least = sizes.share(standing + outline.tail(outline.cuts[-1]))
        if least > settings.landing:
            needed, lands = FALLBACK_FREES, True
    if frees < needed:
        _refuse(
            f"There is nothing to compress: it would free {max(0.0, frees):.0%} of the window, "
            f"and at least {needed:.0%} is needed to be worth it.",
            frees=frees,
            needed=needed,
            span_tokens=outline.before[cut],
        )
    if not manual and not lands:
        _refuse(
            "There is nothing to compress: what must stay is too large for it to help.",
            frees=frees,
            needed=needed,
            span_tokens=outline.before[cut],
        )


def _refuse(message: str, **figures: float) -> NoReturn:
    raise NothingToCompress(message, fields=figures)
