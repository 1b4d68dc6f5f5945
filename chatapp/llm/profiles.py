"""How large a model's window is, what it costs, and who says so. No network, no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from chatapp.llm.client import ModelInfo

DEFAULT_WINDOW = 8192
# Tokens: what small local servers start with when nothing is said.
SMALLEST_WINDOW = 256
# Tokens; less is a mistake of whoever said it, since no instructions would fit.


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFigures:
    """What the price data know of a model. Prices in US dollars a million tokens."""

    window: int | None = None
    input_price: Decimal | None = None
    cached_input_price: Decimal | None = None
    output_price: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFigures:
    """The figures of a model's profile. Sizes in the provider's tokens, prices as above."""

    window: int
    max_output_tokens: int | None = None
    """None when nobody said it."""
    input_price: Decimal | None = None
    cached_input_price: Decimal | None = None
    output_price: Decimal | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field -> ``CONTEXT_WINDOW``, ``learned``, ``server: <field>``, ``price data``, ``operator's
    table`` or ``default``."""


def resolve_profile(
    name: str,
    server: ModelInfo | None,
    *,
    override: int | None = None,
    learned: int | None = None,
    prices: PriceFigures | None = None,
    table: Mapping[str, int] | None = None,
) -> ProfileFigures:
    """The figures of the model ``name``, the most certain word first.

    For the window: the operator's ``override`` (``CONTEXT_WINDOW``), what was ``learned`` from
    an overflow, the ``server``'s own word, the price data, the operator's ``table`` (model ->
    tokens), 8192. The longest reply is known from the server only.
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
