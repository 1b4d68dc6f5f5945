"""The choice of the next step before a request, from usage, settings and state. Pure.

The steps, from cheap to costly: continue, mask, prepare, compress, truncate, wind down, block.
"""

from __future__ import annotations

from dataclasses import dataclass

from compression.planning import defaults
from compression.types import ContextAction, Decision, Usage

WIND_DOWN_AT = 0.90
#: A person who undid a compression wants the next one only when there is hardly any room left.
UNDONE_THRESHOLD = defaults.HIGHEST_THRESHOLD
#: The least share of the budget that a prepared draft must free to be applied.
WORTH_APPLYING = 0.10
#: Automatic runs pause after this many fruitless or failed ones, until the conversation has grown
#: by this share of the budget.
BREAKER_FRUITLESS = 2
BREAKER_FAILURES = 3
BREAKER_GROWTH = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """When to act. All figures are shares of the budget."""

    threshold: float = defaults.THRESHOLD
    """Compression begins at this usage; clamped to 0.5 to 0.95."""
    soft_threshold: float = defaults.SOFT_THRESHOLD
    """Masking and preparing begin at this usage."""
    ask_first: bool = False
    """A person looks at each summary before it is applied. One is made above the soft threshold
    and waits; nothing is compressed while the request fits without it."""
    off: bool = False
    """A person turned automatic compression off: nothing is done until the request overflows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", defaults.clamped(self.threshold))

    @property
    def soft(self) -> float:
        """Usage at which masking and background preparation begin."""
        return min(self.soft_threshold, self.threshold - 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """What is known of the conversation now, and what could be done."""

    ready: bool = False
    """A prepared draft exists."""
    ready_frees: float | None = None
    """Share of the budget that the prepared draft would free; None when unknown."""
    breaker_open: bool = False
    """Too many runs were fruitless or failed; automatic runs pause."""
    extractable: bool = False
    """The failed runs were background runs, which have no extract to fall back on: a run in the
    foreground may still produce one."""
    undone: bool = False
    """The last change was an Undo: no automatic compression below 0.95."""
    in_tool_loop: bool = False
    """The request continues a turn in which tools were called."""
    wound_down: bool = False
    """The model was already told in this turn to wrap up."""
    maskable: float = 0.0
    """Share of the budget that masking would free; 0 when no batch is worth it."""
    masking_pays: bool = True
    """Masking frees more than the lost cache of the provider is worth."""
    failed: bool = False
    """The last attempt to summarise gave no summary."""
    compressible: bool = False
    """The planner finds a span worth compressing."""
    due: bool = False
    """There are enough messages for a summary to be prepared, whatever the usage."""
    truncatable: bool = False
    """Whole turns could be left out of the request."""


def decide(usage: Usage, settings: PolicySettings, state: PolicyState) -> Decision:
    """The next step; the caller takes it and asks again until nothing is left to do.

    ``continue``, ``prepare`` (done in the background) and ``block`` end the loop.
    """
    share = usage.share

    def answer(action: ContextAction, reason: str) -> Decision:
        return Decision(action=action, reason=reason, usage=share)

    if settings.off:
        if share <= 1.0:
            return _wind_down_or_continue(share, state, "Automatic compression is off.")
        return _make_room(share, state, "Automatic compression is off")
    trigger = max(settings.threshold, UNDONE_THRESHOLD) if state.undone else settings.threshold
    if share < min(settings.soft, trigger):
        if state.due and _may_prepare(state):
            return answer(ContextAction.PREPARE, "So many messages are worth a summary.")
        return answer(ContextAction.CONTINUE, "There is plenty of room.")
    if share < trigger or (settings.ask_first and share <= 1.0):
        return _between(share, state)
    if _ready_is_worth_it(state):
        return answer(ContextAction.COMPRESS, "A prepared summary is ready to be applied.")
    may_compress = state.compressible and (state.extractable or not state.breaker_open)
    if state.maskable > 0 and (not may_compress or share - state.maskable < trigger):
        return answer(ContextAction.MASK, "Old tool results can be masked instead.")
    if may_compress:
        return answer(ContextAction.COMPRESS, _why_compress(state))
    return _make_room(share, state, _why_no_summary(state))


def _between(share: float, state: PolicyState) -> Decision:
    """The step for a usage from the soft threshold up to the trigger."""
    if state.maskable > 0 and state.masking_pays:
        return Decision(
            action=ContextAction.MASK, reason="Old tool results are worth masking.", usage=share
        )
    if _should_wind_down(share, state):
        return _wind_down_or_continue(share, state, "")
    if (state.compressible or state.due) and _may_prepare(state):
        return Decision(
            action=ContextAction.PREPARE,
            reason="A summary is prepared before it is needed.",
            usage=share,
        )
    return Decision(
        action=ContextAction.CONTINUE, reason="Nothing needs to be done yet.", usage=share
    )


def _why_compress(state: PolicyState) -> str:
    if state.breaker_open:
        return "Summarising failed too often, so an extract stands in."
    return "Usage has reached the threshold."


def _why_no_summary(state: PolicyState) -> str:
    if state.breaker_open:
        return "Summarising failed too often"
    if state.failed:
        # A cancelled attempt counts as failed too.
        return "No summary could be had"
    return "What must stay is too large for a summary to help"


def _make_room(share: float, state: PolicyState, cause: str) -> Decision:
    """The step above the trigger when there is no summary: leave turns out, wrap up, or refuse."""
    if state.truncatable:
        return Decision(
            action=ContextAction.TRUNCATE,
            reason=f"{cause}, so the oldest turns are left out of the request.",
            usage=share,
        )
    if share <= 1.0:
        return _wind_down_or_continue(share, state, "Nothing can be freed, and it still fits.")
    return Decision(
        action=ContextAction.BLOCK,
        reason="The request does not fit the model's window, and nothing can be left out.",
        usage=share,
    )


def _wind_down_or_continue(share: float, state: PolicyState, reason: str) -> Decision:
    if _should_wind_down(share, state):
        return Decision(
            action=ContextAction.WIND_DOWN,
            reason="The window is nearly full inside a tool loop.",
            usage=share,
        )
    return Decision(action=ContextAction.CONTINUE, reason=reason, usage=share)


def _should_wind_down(share: float, state: PolicyState) -> bool:
    return share >= WIND_DOWN_AT and state.in_tool_loop and not state.wound_down


def _may_prepare(state: PolicyState) -> bool:
    return not state.breaker_open and not state.undone and not _ready_is_worth_it(state)


def _ready_is_worth_it(state: PolicyState) -> bool:
    return state.ready and (state.ready_frees is None or state.ready_frees >= WORTH_APPLYING)


def breaker_open(fruitless: int, failures: int, grown: float) -> bool:
    """Whether automatic compression is paused.

    ``fruitless`` runs freed too little and ``failures`` gave no draft, both counted since the last
    success. ``grown`` is the share of the budget by which the conversation has grown since the
    last of them.
    """
    tripped = fruitless >= BREAKER_FRUITLESS or failures >= BREAKER_FAILURES
    return tripped and grown < BREAKER_GROWTH
