"""The parts that a host provides, and the request for one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compression.conf import CompressionSettings
from compression.ports import Complete, Masks, Summarizer, TokenCounter, Transcript
from compression.types import Sizes, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts that a host provides."""

    transcript: Transcript
    counter: TokenCounter
    summarizers: tuple[Summarizer, ...] = ()
    """Models in the order in which they are tried: the summary model, then the chat model."""
    extract: Summarizer | None = None
    """The deterministic last resort; never used in the background. With no ``summarizers`` it is
    the regular method, and its summaries are not ``degraded``."""
    masks: Masks | None = None
    """Where the host records masked messages; None: nothing is masked."""
    probe: Complete | None = None
    """The model that takes the closed-book exam when ``PROBE`` is on; None: no exam."""
    prompt_price: float | None = None
    """US dollars per million prompt tokens; None when no price is known."""
    uncached_surcharge: float | None = None
    """US dollars by which a million uncached prompt tokens cost more than cached ones; None when no
    price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request for one run."""

    conversation_id: int
    engine: Engine
    sizes: Sizes
    trigger: Trigger
    settings: CompressionSettings
    focus: str = ""
    through_seq: int | None = None
    from_seq: int | None = None
    """The messages before it stay word for word beside the summary; the host pins them."""
    again: int = 0
    """The active version, to be written anew of the messages that it took in; 0: go on from it."""
    locks_input: bool = False
    extract_only: bool = False
    """Ask no model, because models have failed too often."""
    on_started: Callable[[], object] | None = None
    """Called once this run has begun."""
