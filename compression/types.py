"""The values that compression computes with: frozen, without identity, without a database.

Sizes are in tokens. *Ruler* tokens are counted by the one ruler (o200k_base); *calibrated*
tokens are ruler tokens times the model's calibration, and only these are compared with a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]


class Section(StrEnum):
    """The sections of the ledger, in the order in which they are rendered."""

    CONSTRAINTS = "constraints"
    DECISIONS = "decisions"
    FILES = "files"
    DONE = "done"
    PENDING = "pending"
    CONTEXT = "context"


class Origin(StrEnum):
    """The author of an entry or a narrative line. The machine never changes what a person wrote."""

    MACHINE = "machine"
    PERSON = "person"


class EntryState(StrEnum):
    """The life of an entry. Only ``live`` and ``done`` entries are rendered."""

    LIVE = "live"
    DONE = "done"
    REPLACED = "replaced"
    LIFTED = "lifted"
    EVICTED = "evicted"
    FORGOTTEN = "forgotten"


class Trigger(StrEnum):
    """The cause of a new version of the summary."""

    THRESHOLD = "threshold"
    BACKGROUND = "background"
    MANUAL = "manual"
    OVERFLOW = "overflow"
    EDIT = "edit"
    RESTORE = "restore"
    CLEAR = "clear"
    PREVIEW = "preview"

    @property
    def by_hand(self) -> bool:
        """Whether a person asked for a summary, at whatever usage."""
        return self in (Trigger.MANUAL, Trigger.PREVIEW)


class SummaryStatus(StrEnum):
    """The life of a stored row; ``partial`` holds the finished parts of an incomplete summary."""

    READY = "ready"
    PREVIEW = "preview"
    PARTIAL = "partial"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DISCARDED = "discarded"
    REJECTED = "rejected"
    FAILED = "failed"


class ContextAction(StrEnum):
    """The steps that the policy names before the next request."""

    CONTINUE = "continue"
    MASK = "mask"
    PREPARE = "prepare"
    COMPRESS = "compress"
    TRUNCATE = "truncate"
    WIND_DOWN = "wind_down"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One live message as the engine sees it."""

    seq: int
    """Position in the conversation, 1 and up."""
    role: Role
    """The speaker. A ``user`` item starts a turn."""
    text: str
    """The text that the model would be sent, ``added_context`` included."""
    tokens: int
    """Ruler tokens of the whole message: text, tool calls, per-message overhead."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """OpenAI-style calls of an assistant item."""
    tool_call_id: str = ""
    """For a tool item: the call it answers."""
    tool_name: str = ""
    """For a tool item: the tool that answered."""
    open: bool = False
    """The item belongs to a turn that has not ended; never compressed."""
    masked: bool = False
    """The result, or the long arguments of the calls, are masked in what the model sees."""
    unmasked: bool = False
    """A person took the mask off again."""
    pinned: bool = False
    """The item is quoted again in the system message once it lies before the boundary."""
    reasoning: int = 0
    """Ruler tokens of the model's reasoning that is sent back with the item, besides ``tokens``."""

    @property
    def sent_tokens(self) -> int:
        """Ruler tokens that the item takes in a request: the message and its reasoning."""
        return self.tokens + self.reasoning


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a request apart from its messages, and its limit."""

    window: int
    """The model's context window, calibrated tokens."""
    reserve: int
    """Calibrated tokens kept free for the reply."""
    fixed: int = 0
    """Ruler tokens of instructions, system prompt and tools, ``unseen`` included."""
    unseen: int = 0
    """The part of ``fixed`` that the provider counts besides what it is sent."""
    tools: int = 0
    """The part of ``fixed`` that the definitions of tools take."""
    summary: int = 0
    """Ruler tokens of the active summary as rendered into the request, ``frame`` included."""
    frame: int = 0
    """Ruler tokens of what the host puts around a summary, counted even without one."""
    pinned: int = 0
    """Ruler tokens of the pinned messages that are quoted again."""
    calibration: float = 1.1
    """Calibrated tokens for one ruler token."""

    @property
    def budget(self) -> int:
        """B = window - reserve, calibrated tokens; at least 1."""
        return max(1, self.window - self.reserve)

    def share(self, ruler_tokens: float) -> float:
        """Ruler tokens as a share of the budget."""
        return ruler_tokens * self.calibration / self.budget

    def ruler(self, share: float) -> int:
        """A share of the budget in ruler tokens, rounded down."""
        return int(share * self.budget / self.calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calibrated tokens of the next request, by part, and their share of the budget."""

    budget: int
    fixed: int
    summary: int
    pinned: int
    tail: int

    @property
    def total(self) -> int:
        """Calibrated tokens of the whole request."""
        return self.fixed + self.summary + self.pinned + self.tail

    @property
    def share(self) -> float:
        """0.0 to 1.0 and above."""
        return self.total / self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    id: int
    section: Section
    text: str
    sources: tuple[int, ...] = ()
    """The ``seq`` numbers of the messages that it comes from."""
    origin: Origin = Origin.MACHINE
    state: EntryState = EntryState.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrativeLine:
    """One or two sentences about one span, which are never changed."""

    text: str
    first_seq: int
    through_seq: int
    origin: Origin = Origin.MACHINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The structured part of a summary: all entries ever made, in any state, and the narrative."""

    entries: tuple[Entry, ...] = ()
    narrative: tuple[NarrativeLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The span of one compression: the items to compress and the new boundary."""

    items: tuple[Item, ...]
    """Live items from the old boundary (exclusive) to the new one (inclusive), in order of seq."""
    through_seq: int
    """The new boundary."""
    source_tokens: int
    """Ruler tokens of the items."""

    @property
    def first_seq(self) -> int:
        """The first ``seq`` of the span."""
        return self.items[0].seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer to one summary call."""

    text: str
    finish_reason: str
    """``stop``, ``length``, ``tool_calls``, ``content_filter`` or what the provider said."""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars; None when no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The use of models, as the providers counted it."""

    calls: int = 0
    """Number of calls, including those without an answer."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars; None when no call has a known price."""

    @classmethod
    def on(cls, completion: Completion) -> Spent:
        """The use by one call."""
        return cls(
            calls=1,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            cost=completion.cost,
        )

    def __add__(self, other: Spent) -> Spent:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spent(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=sum(costs) if costs else None,
        )

    def without(self, part: Spent) -> Spent:
        """The use without that of ``part``."""
        return Spent(
            calls=self.calls - part.calls,
            prompt_tokens=self.prompt_tokens - part.prompt_tokens,
            completion_tokens=self.completion_tokens - part.completion_tokens,
            cost=None if self.cost is None else self.cost - (part.cost or 0.0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A part of a span that the deterministic extract wrote in place of a model, and why."""

    first_seq: int
    through_seq: int
    part: int
    parts: int
    reason: str

    def __str__(self) -> str:
        why = self.reason[:1].lower() + self.reason[1:].rstrip(".")
        where = f"messages {self.first_seq}–{self.through_seq}"
        part = f"part {self.part} of {self.parts} ({where})" if self.parts > 1 else where
        return f"{part} by extract: {why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A summary that is not judged yet."""

    ledger: Ledger
    model: str
    prompt_version: str
    notes: tuple[str, ...] = ()
    """Operations ignored and entries repaired or dropped, each with its reason."""
    spent: Spent = Spent()
    """All calls for the draft, including those whose answers were refused."""
    degraded: bool = False
    """Written by the deterministic extract because no model gave a fit draft."""
    extracted: tuple[Extracted, ...] = ()
    """The parts that the deterministic extract wrote in place of a model."""

    def followed_by(self, part: Draft) -> Draft:
        """This draft with ``part``, made on its ledger, as its last part."""
        return replace(
            part,
            model=self.model if part.extracted else part.model,
            prompt_version=self.prompt_version if part.extracted else part.prompt_version,
            notes=(*self.notes, *part.notes),
            spent=self.spent + part.spent,
            degraded=self.degraded and part.degraded,
            extracted=(*self.extracted, *part.extracted),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of one attempt at a summary."""

    tokens_written: int = 0
    """Tokens of all parts so far."""
    part: int = 1
    """Number of the part being written, from 1."""
    parts: int = 1
    first_seq: int = 0
    through_seq: int = 0
    """First and last message of this part."""
    seconds_left: float | None = None
    """Estimate from the parts that a model has finished; None while there is none."""
    lines: tuple[str, ...] = ()
    """The newest lines, at most three, of the part finished last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a summary kept and lost, for its reviewer."""

    salient: int = 0
    """Salient items (numbers, names, paths, URLs, identifiers, quotations, dates) in the span."""
    retained: int = 0
    """Those also found in the summary."""
    missing: tuple[str, ...] = ()
    """Those not found in the summary (the first 200)."""
    evicted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def retention(self) -> float:
        """Share of salient items that the summary still holds; 1.0 when there were none."""
        return self.retained / self.salient if self.salient else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step before a request, with the reason in one sentence."""

    action: ContextAction
    reason: str
    usage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one compression run. Sizes in calibrated tokens; usage: shares of the budget."""

    success: bool
    trigger: Trigger
    code: str = ""
    """Empty on success, else a code of the error tree."""
    reason: str = ""
    """A sentence for a person if the run did not succeed."""
    version: int = 0
    message_count: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    usage_before: float = 0.0
    usage_after: float = 0.0
    degraded: bool = False
    model: str = ""
    cost: float | None = None
    duration: float = 0.0
    """Seconds."""
    notes: tuple[str, ...] = field(default=())
    extracted: tuple[Extracted, ...] = ()
    """Parts that the extract wrote because no model could."""
