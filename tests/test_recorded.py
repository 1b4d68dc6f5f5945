"""The replay of recorded streams, with one that is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatapp.llm.client import ToolCall
from tests.recorded import looped, replay

EXPECTED: dict[str, Any] = {
    "file": "calls.sse",
    "content": "I will look.",
    "reasoning": None,
    "finish_reason": "tool_calls",
    "done": True,
    "usage": {"prompt_tokens": 9, "completion_tokens": 7},
    "tool_calls": [
        {"id": "a", "name": "weather", "arguments": '{"city": "Malmö"}'},
        {"id": "b", "name": "weather", "arguments": "{}"},
    ],
}


def recorded(folder: Path, expected: dict[str, Any]) -> None:
    """A folder with one stream: text, and two calls of which the first comes in pieces."""

    def piece(index: int, arguments: str, **named: str) -> dict[str, Any]:
        identity = {"id": named["id"]} if named else {}
        function = {"arguments": arguments, **({"name": "weather"} if named else {})}
        return {"tool_calls": [{"index": index, **identity, "function": function}]}

    deltas = [
        {"content": "I will look."},
        piece(0, '{"city": ', id="a"),
        piece(0, '"Malmö"}'),
        piece(1, "{}", id="b"),
    ]
    events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": one}]} for one in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    events.append({"choices": [], "usage": EXPECTED["usage"]})
    lines = [f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in events]
    (folder / "calls.sse").write_text("".join([*lines, "data: [DONE]\n\n"]), "utf-8")
    (folder / "expected.jsonl").write_text(json.dumps(expected) + "\n", "utf-8")
    (folder / "http_errors.json").write_text("[]", "utf-8")


async def test_it_works(tmp_path: Path) -> None:
    recorded(tmp_path, EXPECTED)
    assert list(await replay(tmp_path, 2, 1)) == []


async def test_what_differs_is_said(tmp_path: Path) -> None:
    """Breaks when: a call that is lost, or one too many, passes."""
    recorded(tmp_path, {**EXPECTED, "tool_calls": EXPECTED["tool_calls"][:1]})
    found = list(await replay(tmp_path, 1, 1))
    assert [one.partition(": ")[0] for one in found][:2] == [
        "calls.sse, whole",
        "calls.sse, split 0",
    ]
    assert "tool calls" in found[0]


@pytest.mark.parametrize(
    "arguments", ["{}", '{"x": [1, {"y": "\\ud83d\\ude00"}]}', "", "null", '{"x": 1', '{"x": NaN}']
)
async def test_every_call_can_be_stored_and_sent_back(arguments: str) -> None:
    """Breaks when: arguments that are no JSON object are run, or go back as they came."""
    calls = [ToolCall(id="same", name=name, arguments=arguments) for name in ("f", "odd name!", "")]
    assert await looped(calls) == []
