"""Whose word counts for a model's window, and what a call costs."""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from chatapp.llm.client import ModelInfo
from chatapp.llm.prices import PriceList, price_figures
from chatapp.llm.profiles import PriceFigures, Profile, resolve_profile

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


def test_a_process_of_its_own_says_the_same() -> None:
    """Of all models at once. Breaks when: a price or a window is lost on the way."""
    names = ["gpt-4o-mini", "claude-sonnet-4-5", "nobody/knows-this:1b"]
    expected = {name: figures for name in names if (figures := price_figures(name))}
    assert list(expected) == names[:2]
    prices = PriceList()
    assert prices(names) == expected
    assert prices([names[1]]) == {names[1]: expected[names[1]]}


def test_price_data_that_cannot_be_read_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when: a failure is remembered as a model without a price."""
    prices = PriceList()
    with monkeypatch.context() as broken:
        broken.setattr("chatapp.llm.prices.sys.executable", "/nowhere/python")
        assert prices(["gpt-4o-mini"]) == {}
    assert prices(["gpt-4o-mini"]) == {"gpt-4o-mini": price_figures("gpt-4o-mini")}


RULES = {"role": "system", "content": "Rules."}
QUESTION = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("messages", "taken"),
    [
        ([RULES, QUESTION], [{"role": "user", "content": "Rules.\n\nHi"}]),
        ([RULES], [{"role": "user", "content": "Rules."}]),
        ([{"role": "assistant", "content": "x"}], [{"role": "assistant", "content": "x"}]),
    ],
)
def test_without_a_system_role_its_text_heads_the_first_user_message(
    messages: list[dict[str, str]], taken: list[dict[str, str]]
) -> None:
    assert list(Profile(name="m").messages(messages)) == messages
    assert list(Profile(name="m", supports_system_role=False).messages(messages)) == taken


def test_a_request_asks_for_nothing_that_its_model_refuses() -> None:
    """Breaks when: a call of a model is put together beside its profile, or a fact is left out."""
    schema = {"type": "json_schema"}
    knows = Profile(name="m").request([RULES, QUESTION], max_tokens=5, response_format=schema)
    assert (knows.messages, knows.response_format) == ((RULES, QUESTION), schema)
    assert (knows.model, knows.max_tokens, knows.include_usage) == ("m", 5, True)
    old = Profile(
        name="m", supports_system_role=False, supports_json_schema=False, supports_usage=False
    ).request([RULES, QUESTION], max_tokens=5, response_format=schema)
    assert [one["role"] for one in old.messages] == ["user"]
    assert (old.response_format, old.include_usage) == (None, False)


def test_the_look_up_of_prices_is_in_no_session_of_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: Ctrl+C ends it too, with a traceback on the server's screen."""
    script = tmp_path / "python"
    tells = 'import json, os; print(json.dumps({"a-model": {"window": os.getsid(0)}}))'
    script.write_text(f"#!{sys.executable}\n{tells}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    assert PriceList()(["a-model"])["a-model"].window not in {None, os.getsid(0)}
