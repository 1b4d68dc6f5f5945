"""The tool loop as a host without a chat uses it: a scripted model, and a list for its messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from compression.exceptions import ToolFailed
from compression.tokens import CharacterCounter
from compression.tools.calls import Checked
from compression.tools.loop import Answer, ToolLoop
from compression.tools.tool import Tool
from tests.compression.tools.making import tool

COUNTER = CharacterCounter()


@dataclass(frozen=True)
class Written:
    """A call as a model wrote it."""

    name: str = "weather"
    arguments: str = '{"city": "Malmö"}'
    extra: Mapping[str, Any] = field(default_factory=dict)


async def answered(
    loop: ToolLoop, calls: list[Written], offered: list[Tool], taken: tuple[str, ...] = ()
) -> list[Answer]:
    made = await loop.made(calls, offered, taken=taken)
    async with aclosing(loop.answers(made, 10_000)) as answers:
        return [one async for one in answers]


async def test_a_host_of_its_own_runs_a_turn() -> None:
    """With messages in a list, and no word of a chat."""
    script: list[list[Written] | str] = [[Written()], [Written(arguments="{")], "It is sunny."]
    loop, tools, messages = ToolLoop(COUNTER), [tool()], [{"role": "user", "content": "Weather?"}]
    while True:
        offered = tools if loop.offers else []
        reply = script.pop(0)
        loop.asked(offered)
        if isinstance(reply, str):
            messages.append({"role": "assistant", "content": reply})
            break
        made = await loop.made(reply, offered, taken=())
        messages.append({"role": "assistant", "tool_calls": [one.stored for one in made]})  # type: ignore[dict-item]
        async with aclosing(loop.answers(made, 10_000)) as answers:
            async for answer in answers:
                messages.append({"role": "tool", "content": answer.outcome.text})
    assert loop.begun
    contents = [one.get("content") for one in messages]
    assert contents[2] == "Sunny in Malmö."
    assert str(contents[4]).startswith("error: The arguments are not valid JSON")
    assert contents[5] == "It is sunny."


async def test_what_is_stored_is_what_servers_take() -> None:
    loop = ToolLoop(COUNTER)
    extra = {"extra_content": {"signature": "x"}, "function": {"strict": True}}
    good, bad = await loop.made(
        [Written(extra=extra), Written("wea ther?", "[")], [tool()], taken=()
    )
    assert isinstance(good.checked, Checked)
    assert good.stored == {
        "id": good.id,
        "type": "function",
        "extra_content": {"signature": "x"},
        "function": {"name": "weather", "arguments": '{"city": "Malmö"}', "strict": True},
    }
    assert bad.stored["function"]["name"] == bad.name == "wea_ther_"
    assert json.loads(bad.stored["function"]["arguments"]) == bad.arguments
    assert isinstance(bad.checked, str)
    assert good.id != bad.id


async def test_a_tools_calls_are_counted_over_the_rounds_of_a_turn() -> None:
    loop, limited = ToolLoop(COUNTER), [tool(most_calls=1)]
    first = await answered(loop, [Written()], limited)
    second = await answered(loop, [Written()], limited)
    assert first[0].outcome.text == "Sunny in Malmö."
    assert second[0].outcome.text.startswith("error: weather may be called 1 times")


async def test_what_changes_something_is_asked_for_and_what_reads_is_not() -> None:
    """With the tool, the id that is stored, and the arguments that it will be run with.

    Breaks when: a call runs before its approval, or a read waits for one.
    """
    asked: list[tuple[str, str, Mapping[str, Any]]] = []

    async def approve(one: Tool, call_id: str, arguments: Mapping[str, Any]) -> bool:
        asked.append((one.name, call_id, arguments))
        if one.name == "refused":
            raise ToolFailed("The person refused this call.")
        return True

    loop = ToolLoop(COUNTER, approve=approve)
    tools = [tool("reads"), tool("writes", read_only=False), tool("refused", read_only=False)]
    made = await loop.made([Written(one.name) for one in tools], tools, taken=())
    async with aclosing(loop.answers(made, 10_000)) as answers:
        texts = {one.call.name: one.outcome.text async for one in answers}
    assert sorted(asked, key=lambda one: one[0]) == [
        ("refused", made[2].id, {"city": "Malmö"}),
        ("writes", made[1].id, {"city": "Malmö"}),
    ]
    assert texts == {
        "reads": "Sunny in Malmö.",
        "writes": "Sunny in Malmö.",
        "refused": "error: The person refused this call.",
    }


async def test_where_nobody_can_be_asked_nothing_that_changes_something_runs() -> None:
    """Breaks when: a host without approvals runs what it should have asked about."""
    tools = [tool("reads"), tool("writes", read_only=False)]
    answers = await answered(ToolLoop(COUNTER), [Written(one.name) for one in tools], tools)
    assert {one.call.name: one.outcome.text for one in answers} == {
        "reads": "Sunny in Malmö.",
        "writes": "error: Nobody can approve calls here, so it did not run.",
    }


async def test_closing_the_answers_ends_every_tool() -> None:
    """Breaks when: who leaves the loop leaves its tools running."""
    cancelled: list[str] = []

    async def hangs(arguments: Mapping[str, Any]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(arguments["city"])
            raise
        return ""

    tools = [tool(run=hangs, read_only=True), tool("fast", read_only=True)]
    loop = ToolLoop(COUNTER)
    made = await loop.made([Written(), Written("fast")], tools, taken=())
    async with asyncio.timeout(10), aclosing(loop.answers(made, 10_000)) as answers:
        first = await anext(answers)
    assert first.call.name == "fast"
    await asyncio.sleep(0)
    assert cancelled == ["Malmö"]


async def test_long_arguments_are_checked_beside_the_loop() -> None:
    long = json.dumps({"city": "M" * 50_000})
    (answer,) = await answered(ToolLoop(COUNTER), [Written(arguments=long)], [tool()])
    assert answer.outcome.text.startswith("Sunny in MMM")


@pytest.mark.parametrize("count", [1, 40])
async def test_many_calls_of_one_message(count: int) -> None:
    """Breaks when: a flood of calls is run, or is left without answers."""
    answers = await answered(ToolLoop(COUNTER), [Written()] * count, [tool(read_only=True)])
    errors = [one for one in answers if one.outcome.text.startswith("error: At most 16")]
    assert len(answers) == count
    assert len(errors) == max(0, count - 16)
    assert len({one.call.id for one in answers}) == count


async def test_i25_a_schema_is_never_checked_in_the_loop() -> None:
    """However short the arguments are: what takes long is the schema.

    Breaks when: short arguments are checked between two pieces of everybody's replies.
    """
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|aa)+$"}}}
    checking = asyncio.create_task(
        answered(
            ToolLoop(COUNTER),
            [Written(arguments=json.dumps({"x": "a" * 80 + "!"}))],
            [tool(parameters=evil)],
        )
    )
    ticks = 0
    while not checking.done():
        ticks += 1
        await asyncio.sleep(0)
    assert (await checking)[0].outcome.text.startswith("error: The arguments do not fit")
    assert ticks > 100


async def test_calls_where_nothing_was_offered_are_answered_so_many_times() -> None:
    """Tools may vanish between two rounds, and the model is told of each.

    Breaks when: such rounds do not count, so that a turn has no end.
    """
    loop = ToolLoop(COUNTER, most_rounds=3)
    loop.asked([tool()])
    for left in (True, False):
        assert loop.offers
        loop.asked([])
        (answer,) = await answered(loop, [Written()], [])
        assert answer.outcome.text.startswith("error: There is no tool named 'weather'")
        assert loop.offers is left
