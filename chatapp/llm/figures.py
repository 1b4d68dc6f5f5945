"""The figures of models as they are stored, from their server and the price data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from chatapp.llm.client import ModelInfo
from chatapp.llm.profiles import PriceFigures, ProfileFigures, resolve_profile
from chatapp.llm.servers.names import qualified

PriceLookup = Callable[[Iterable[str]], Mapping[str, PriceFigures]]


async def resolved(
    models: Sequence[ModelInfo], prices: PriceLookup | None, *, server: str = ""
) -> dict[str, dict[str, Any]]:
    """The figures of these models of ``server`` by the names that they have here."""
    names = [one.name for one in models]
    known = await asyncio.to_thread(prices, names) if prices and names else {}
    return {
        qualified(one.name, server): _fields(
            resolve_profile(one.name, one, prices=known.get(one.name))
        )
        for one in models
    }


def _fields(figures: ProfileFigures) -> dict[str, Any]:
    return {
        "window": figures.window,
        "max_output_tokens": figures.max_output_tokens,
        "input_price": figures.input_price,
        "cached_input_price": figures.cached_input_price,
        "output_price": figures.output_price,
        "sources": dict(figures.sources),
    }
