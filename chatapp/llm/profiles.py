"""Profiles of models: windows, prices, and the source of each figure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from chatapp.llm.client import (
    ChatRequest,
    Message,
    ModelInfo,
    without_system_role,
    without_tools,
)
from chatapp.llm.errors import LLMError
from compression.planning.projection import Report
from compression.types import Sizes

#: Tokens: the default of small local servers.
DEFAULT_WINDOW = 8192
#: Tokens; a smaller figure must be a mistake, since no instructions would fit.
SMALLEST_WINDOW = 256
#: Divides the window; the quotient is the most that is reserved for a reply.
RESERVE_SHARE = 4
#: Share of the budget for all pins together.
PINNED_SHARE = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The facts about a model that turns need."""

    name: str
    window: int = DEFAULT_WINDOW
    """Tokens, as the provider counts them."""
    max_output_tokens: int | None = None
    supports_tools: bool = True
    supports_system_role: bool = True
    supports_json_schema: bool = True
    supports_usage: bool = True
    supports_temperature: bool = True
    supports_reasoning_effort: bool = True
    reasoning_back: str = "tool_turns"
    """When its reasoning is sent back to it: ``never``, ``tool_turns`` or ``always``."""
    calibration: float = 1.1
    """Provider's tokens for one ruler token."""
    input_price: float | None = None
    cached_input_price: float | None = None
    output_price: float | None = None
    """US dollars per million tokens."""
    sources: dict[str, Any] = field(default_factory=dict)
    available: bool = field(default=True, compare=False)
    """Whether the server listed the model last time."""

    @property
    def reserve(self) -> int:
        """Tokens kept free for the reply: its limit, at most a quarter of the window."""
        quarter = self.window // RESERVE_SHARE
        return min(self.max_output_tokens or quarter, quarter)

    @property
    def sizes(self) -> Sizes:
        """The sizes of a request with nothing in it yet."""
        return Sizes(window=self.window, reserve=self.reserve, calibration=self.calibration)

    @property
    def most_pinned(self) -> int:
        """Ruler tokens that all pinned messages of a conversation may have together."""
        return self.sizes.ruler(PINNED_SHARE)

    @property
    def uncached_surcharge(self) -> float | None:
        """US dollars by which a million uncached prompt tokens cost more; None if unknown."""
        if self.input_price is None or self.cached_input_price is None:
            return None
        return self.input_price - self.cached_input_price

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages as this model takes them: with or without a system role and tools."""
        if not self.supports_tools:
            messages = without_tools(messages)
        return tuple(messages if self.supports_system_role else without_system_role(messages))

    def request(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        reasoning_effort: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        response_format: Mapping[str, Any] | None = None,
        on_retry: Callable[[LLMError, float], object] | None = None,
    ) -> ChatRequest:
        """A call of this model that asks for nothing which it is known to refuse."""
        return ChatRequest(
            model=self.name,
            messages=self.messages(messages),
            max_tokens=max_tokens,
            temperature=temperature if self.supports_temperature else None,
            reasoning_effort=reasoning_effort if self.supports_reasoning_effort else "",
            tools=tuple(tools) if self.supports_tools else (),
            response_format=response_format if self.supports_json_schema else None,
            include_usage=self.supports_usage,
            on_retry=on_retry,
        )

    def cost(self, prompt: int, completion: int, cached: int = 0) -> float | None:
        """US dollars of one call; None if the price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        cached_price = (
            self.input_price if self.cached_input_price is None else self.cached_input_price
        )
        total = (prompt - cached) * self.input_price + cached * cached_price
        return (total + completion * self.output_price) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFigures:
    """The price data's figures of a model. Prices in US dollars per million tokens."""

    window: int | None = None
    input_price: Decimal | None = None
    cached_input_price: Decimal | None = None
    output_price: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFigures:
    """The figures of a model's profile. Sizes in the provider's tokens, prices as above."""

    window: int
    max_output_tokens: int | None = None
    """None if unknown."""
    input_price: Decimal | None = None
    cached_input_price: Decimal | None = None
    output_price: Decimal | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field → ``CONTEXT_WINDOW``, ``learned``, ``server: <field>``, ``price data``, ``operator's
    table`` or ``default``."""


class ProfileStore(Protocol):
    """The store of profiles. Methods that are not awaited run where the database may be read."""

    def profile(self, name: str) -> Profile | None:
        """The stored profile of a model."""

    def profiles(self) -> list[Profile]:
        """All stored profiles, in the order in which the models were first seen."""

    async def anames(self) -> list[str]:
        """The models that the server listed last."""

    async def aprofile(self, name: str) -> Profile | None:
        """As :meth:`profile`."""

    async def aprofiles(self) -> list[Profile]:
        """As :meth:`profiles`."""

    async def astore_figures(
        self, figures: Mapping[str, Mapping[str, Any]], *, complete: bool = False
    ) -> None:
        """Store figures by model; ``complete``: the server has no other models."""

    async def alearn(self, name: str, fact: str, value: Any, *, named: bool) -> None:
        """Store what a refusal taught about a model."""

    def note_usage(self, name: str, report: Report) -> None:
        """Calibrate a model by a report, for this process at once; called in the event loop."""

    async def astore_usage(self) -> None:
        """Store what was noted, as far as it can be stored now."""


def resolve_profile(
    name: str,
    server: ModelInfo | None,
    *,
    override: int | None = None,
    learned: int | None = None,
    prices: PriceFigures | None = None,
    table: Mapping[str, int] | None = None,
) -> ProfileFigures:
    """The figures of the model ``name``, each from the most reliable source.

    The window comes from the operator's ``override`` (``CONTEXT_WINDOW``), or was ``learned`` from
    an overflow, or comes from the ``server``, the price data, the operator's ``table`` (model →
    tokens), or is 8192. Only the server knows the longest reply.
    """
    server_says = server.window if server else None
    words = (
        ("CONTEXT_WINDOW", override),
        ("learned", learned),
        (f"server: {server.source}" if server and server.source else "server", server_says),
        ("price data", prices.window if prices else None),
        ("operator's table", (table or {}).get(name)),
        ("default", DEFAULT_WINDOW),
    )
    source, window = next(
        (source, size) for source, size in words if size is not None and size >= SMALLEST_WINDOW
    )
    sources = {"window": source}
    max_output = server.max_output_tokens if server else None
    sources["max_output_tokens"] = "default" if max_output is None else "server"
    known = prices or PriceFigures()
    if known.input_price is not None or known.output_price is not None:
        sources["prices"] = "price data"
    return ProfileFigures(
        window=window,
        max_output_tokens=max_output,
        input_price=known.input_price,
        cached_input_price=known.cached_input_price,
        output_price=known.output_price,
        sources=sources,
    )
