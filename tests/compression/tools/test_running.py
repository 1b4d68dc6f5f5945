"""Tools that do what tools do: hang, flood, fail, and go on after they were ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from compression.exceptions import ToolFailed
from compression.tokens import CharacterCounter
from compression.tools.calls import UNKNOWN_EFFECT, Checked
from compression.tools.running import Limits, Outcome, run
from compression.tools.tool import Run
from tests.compression.tools.making import tool

COUNTER = CharacterCounter()


async def ran(work: Run, limits: Limits | None = None, **more: Any) -> Outcome:
    call = Checked(tool=tool(run=work, **more), arguments={"city": "Malmö"})
    return await run(call, limits or Limits(), COUNTER)


def giving(result: Any) -> Run:
    async def work(arguments: Mapping[str, Any]) -> str:
        return result  # type: ignore[no-any-return]

    return work


async def test_it_works() -> None:
    async def work(arguments: Mapping[str, Any]) -> str:
        return f"Sunny in {arguments['city']}.\n\t<b>&</b>"

    outcome = await ran(work)
    assert outcome.text == "Sunny in Malmö.\n\t<b>&</b>"
    assert 0 <= outcome.seconds < 5


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (b"\x89PNG\r\n", "returned 6 bytes of binary data"),
        ("\x89PNG\0\0\0\x01\x02" * 50, "returned binary data"),
        (b"\xff\xfe".decode("utf-8", "replace") * 100, "returned binary data"),
        (None, "returned no text"),
        ({"a": 1}, "returned no text"),
    ],
)
async def test_t04_what_is_no_text_is_said(result: Any, words: str) -> None:
    outcome = await ran(giving(result))
    assert outcome.text.startswith("error: weather ")
    assert words in outcome.text


async def test_t04_a_few_odd_characters_are_made_harmless() -> None:
    """Breaks when: a result is stored that no database takes."""
    text = "The weather of today is fine. " * 3 + "\0 \ud800 \x1b[31m"
    found = (await ran(giving(text))).text
    assert found.endswith("\ufffd \ufffd \ufffd[31m")
    found.encode("utf-8")


async def test_an_empty_result_is_said() -> None:
    assert (await ran(giving(" \n"))).text == "(The tool returned nothing.)"


async def test_t04_ten_megabytes_are_cut() -> None:
    """Breaks when: a result is counted or stored before it is cut."""
    begun = time.monotonic()
    text = (await ran(giving("word " * 2_000_000), Limits(characters=1000))).text
    assert time.monotonic() - begun < 5
    assert text.endswith("\n[cut here: the first 1,000 of 10,000,000 characters]")


@pytest.mark.parametrize("most", [None, 20])
async def test_a_result_has_no_more_tokens_than_the_window_allows(most: int | None) -> None:
    """The tool's own limit comes first.

    Breaks when: only characters are counted.
    """
    limits = Limits.of_round(1000, calls=1)
    assert limits.tokens == 200
    text = (await ran(giving("für 猫 " * 5000), limits, most_tokens=most)).text
    kept, _, note = text.rpartition("\n")
    allowed = most or 200
    assert allowed * 0.8 <= COUNTER.count(kept) <= allowed
    assert note.startswith("[cut here: the first ")


def test_the_results_of_one_message_share_the_room() -> None:
    assert [Limits.of_round(10_000, calls=calls).tokens for calls in (1, 2, 4)] == [
        2000,
        2000,
        1000,
    ]
    assert Limits.of_round(10, calls=16).tokens == 100


async def test_whatever_a_tool_raises_is_a_sentence() -> None:
    async def refuses(arguments: Mapping[str, Any]) -> str:
        raise ToolFailed("There is no such city.")

    async def breaks(arguments: Mapping[str, Any]) -> str:
        raise KeyError("secret")

    async def cancels_itself(arguments: Mapping[str, Any]) -> str:
        raise asyncio.CancelledError

    def no_coroutine(arguments: Mapping[str, Any]) -> Any:
        raise RuntimeError

    assert (await ran(refuses)).text == "error: There is no such city."
    unknown = f"error: weather failed (KeyError). {UNKNOWN_EFFECT}"
    assert (await ran(breaks, read_only=False)).text == unknown
    assert (await ran(breaks)).text == "error: weather failed (KeyError)."
    assert (await ran(cancels_itself)).text == "error: The tool gave no result."
    assert (await ran(no_coroutine)).text == "error: weather failed (RuntimeError)."


async def test_t04_the_words_of_a_failure_are_cut_and_cleaned_like_a_result() -> None:
    """Of a tool that fails, and of an approval that is refused.

    Breaks when: only what a tool returns is bounded, and not what it raises.
    """
    flood = "The server\0 is away. \ud800" * 50_000

    async def refuses(arguments: Mapping[str, Any]) -> str:
        raise ToolFailed(flood)

    async def refuse() -> bool:
        raise ToolFailed(flood)

    limits = Limits(characters=1000, tokens=100)
    failed = await ran(refuses, limits)
    refused = await run(Checked(tool=tool(), arguments={}), limits, COUNTER, approve=refuse)
    for outcome in (failed, refused):
        kept, _, note = outcome.text.rpartition("\n")
        assert kept.startswith("error: The server\ufffd is away. \ufffdThe server")
        assert 80 <= COUNTER.count(kept) <= 100
        assert note.startswith("[cut here: the first ")
        outcome.text.encode("utf-8")


class Stubborn:
    """A tool that goes on after it was cancelled, until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.let_go = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, arguments: Mapping[str, Any]) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
        await self.let_go.wait()
        self.ended.set()
        raise RuntimeError("late")


async def test_t04_a_tool_that_hangs_is_ended() -> None:
    """Even one that does not let itself be ended.

    Breaks when: a tool that was cancelled is waited for.
    """
    stubborn = Stubborn()
    async with asyncio.timeout(10):
        outcome = await ran(stubborn, Limits(seconds=0.05), read_only=False)
        await stubborn.cancelled.wait()
    assert outcome.text == f"error: weather took longer than 0.05 s and was ended. {UNKNOWN_EFFECT}"
    assert outcome.seconds >= 0.05
    stubborn.let_go.set()
    await asyncio.wait_for(stubborn.ended.wait(), 10)


async def test_a_stop_ends_a_tool_at_once() -> None:
    """Breaks when: a cancellation waits for the tool, or is taken for the tool's failure."""
    stubborn = Stubborn()
    task = asyncio.create_task(ran(stubborn))
    await asyncio.wait_for(stubborn.begun.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    await asyncio.wait_for(stubborn.cancelled.wait(), 10)
    assert not stubborn.ended.is_set()
    stubborn.let_go.set()


async def test_an_approval_may_take_longer_than_the_tool() -> None:
    """And a refusal is the result.

    Breaks when: the time of a person counts as the tool's.
    """
    asked = asyncio.Event()

    async def approve() -> bool:
        return await asyncio.wait_for(asked.wait(), 10)

    async def refuse() -> bool:
        raise ToolFailed("The call was not approved.")

    call = Checked(tool=tool(), arguments={"city": "Malmö"})
    running = asyncio.create_task(run(call, Limits(seconds=0.001), COUNTER, approve=approve))
    await asyncio.wait({running}, timeout=0.05)
    assert not running.done()
    asked.set()
    assert (await running).text == "Sunny in Malmö."
    refused = await run(call, Limits(), COUNTER, approve=refuse)
    assert refused.text == "error: The call was not approved."

    async def says_no() -> bool:
        return False

    refused = await run(call, Limits(), COUNTER, approve=says_no)
    assert refused.text == "error: The call was not approved, so it did not run."
