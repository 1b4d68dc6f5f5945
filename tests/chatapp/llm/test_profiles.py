"""Whose word counts for a model's window, and what a call costs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chatapp.llm.client import ModelInfo
from chatapp.llm.prices import price_figures, prices_of
from chatapp.llm.profiles import (
    PriceFigures,
    resolve_profile,
)

SERVER = ModelInfo(name="m", window=32_000, max_output_tokens=2000, source="max_model_len")
PRICES = PriceFigures(window=128_000, input_price=Decimal(2), output_price=Decimal(8))


def test_it_works() -> None:
    figures = resolve_profile("m", SERVER, prices=PRICES)
    assert figures.window == 32_000
    assert figures.max_output_tokens == 2000
    assert figures.input_price == Decimal(2)
    assert figures.sources == {
        "window": "server: max_model_len",
        "max_output_tokens": "server",
        "prices": "price data",
    }


@pytest.mark.parametrize(
    ("given", "window", "source"),
    [
        ({}, 8192, "default"),
        ({"table": {"m": 5000}}, 5000, "operator's table"),
        ({"table": {"other": 5000}}, 8192, "default"),
        ({"table": {"m": 5000}, "prices": PRICES}, 128_000, "price data"),
        ({"prices": PRICES, "server": SERVER}, 32_000, "server: max_model_len"),
        ({"server": SERVER, "learned": 16_000}, 16_000, "learned"),
        ({"server": SERVER, "learned": 16_000, "override": 4096}, 4096, "CONTEXT_WINDOW"),
        ({"override": 0}, 8192, "default"),
        ({"server": ModelInfo(name="m", window=1)}, 8192, "default"),
    ],
)
def test_the_most_certain_word_counts(given: dict[str, object], window: int, source: str) -> None:
    server = given.pop("server", None)
    assert server is None or isinstance(server, ModelInfo)
    figures = resolve_profile("m", server, **given)  # type: ignore[arg-type]
    assert (figures.window, figures.sources["window"]) == (window, source)


def test_price_data_know_a_well_known_model() -> None:
    figures = price_figures("gpt-4o-mini")
    assert figures is not None
    assert figures.window == 128_000
    assert figures.input_price is not None
    assert figures.cached_input_price is not None
    assert figures.output_price is not None


def test_prices_in_steps_begin_with_the_first() -> None:
    figures = price_figures("claude-sonnet-4-5")
    assert figures is not None
    assert figures.input_price == Decimal(3)


def test_another_address_has_the_window_but_not_the_price() -> None:
    assert price_figures("gpt-4o-mini", "http://localhost:11434/v1") == PriceFigures(window=128_000)


def test_the_providers_own_address_has_the_price() -> None:
    figures = price_figures("gpt-4o-mini", "https://api.openai.com/v1")
    assert figures is not None
    assert figures.input_price is not None


def test_an_unknown_model_has_no_figures() -> None:
    assert price_figures("nobody/knows-this:1b") is None


@pytest.mark.parametrize("name", ["gpt-4o-mini", "claude-sonnet-4-5", "nobody/knows-this:1b"])
def test_a_process_of_its_own_says_the_same(name: str) -> None:
    """Breaks when: a price or a window is lost on the way, or no price at all is one."""
    assert prices_of(name, "") == price_figures(name, "")
