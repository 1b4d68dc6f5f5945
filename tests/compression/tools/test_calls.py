"""Calls checked before anything runs."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from compression.tools.calls import Checked, Checker, new_id, offerable
from compression.tools.schemas import misfit
from tests.compression.tools.making import CITY, tool

GOOD = '{"city": "Malmö"}'


def checked(*calls: tuple[str, str], **more: Any) -> list[Checked | str]:
    return Checker(**more).check(calls, [tool()])


def test_it_works() -> None:
    (call,) = checked(("weather", GOOD))
    assert isinstance(call, Checked)
    assert (call.tool.name, call.arguments) == ("weather", {"city": "Malmö"})


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("weather", '{"city": "Mal', "not valid JSON: Unterminated string"),
        ("weather", "", "not valid JSON"),
        ("weather", "null", "not a JSON object"),
        ("weather", "[]", "not a JSON object"),
        ("weather", "{}", "'city' is a required property"),
        ("weather", '{"city": 1}', "['city']: 1 is not of type 'string'"),
        ("weather", '{"city": "Malmö", "x": 1}', "no arguments named 'x'"),
        ("whether", GOOD, "no tool named 'whether'. The tools are: weather."),
        ("", GOOD, "no tool named 'no name'"),
        ("weather\0" * 1000, GOOD, "no tool named"),
    ],
)
def test_l17_what_does_not_fit_is_said_and_not_run(name: str, arguments: str, words: str) -> None:
    """Breaks when: arguments are passed on that the schema does not allow."""
    (answer,) = checked((name, arguments))
    assert isinstance(answer, str)
    assert answer.startswith("error: ")
    assert words in answer
    assert len(answer) < 600


def test_a_tool_that_is_none_is_answered_with_a_few_names() -> None:
    """Breaks when: a model's mistake brings the names of a hundred tools, in each of 16 calls."""
    (answer,) = Checker().check([("whether", GOOD)], [tool(f"tool_{n:03}") for n in range(100)])
    assert str(answer).endswith("tool_018, tool_019 and 80 more.")
    assert len(str(answer)) < 400


def test_too_many_in_one_message() -> None:
    answers = checked(*[("weather", GOOD)] * 5, most_calls=3)
    assert [isinstance(one, Checked) for one in answers] == [True] * 3 + [False] * 2
    assert str(answers[-1]).startswith("error: At most 3 tools")


def test_a_tool_that_may_be_called_so_often_in_a_turn() -> None:
    """Refused calls do not count, and rounds are added up.

    Breaks when: each message is counted anew, or a call that did not run.
    """
    checker, limited = Checker(), [tool(most_calls=2)]
    assert isinstance(checker.check([("weather", GOOD)], limited)[0], Checked)
    assert isinstance(checker.check([("weather", "{")], limited)[0], str)
    second = checker.check([("weather", GOOD), ("weather", GOOD)], limited)
    assert isinstance(second[0], Checked)
    assert str(second[1]).startswith("error: weather may be called 2 times")


def test_tools_that_are_counted_together() -> None:
    """Breaks when: each of two tools may be called as often as both together."""
    pair = [tool(name, most_calls=2, counted_with="pair") for name in ("weather", "sea")]
    answers = Checker().check([("weather", GOOD), ("sea", GOOD), ("sea", GOOD)], pair)
    assert [isinstance(one, Checked) for one in answers] == [True, True, False]


def test_ids_are_ours_and_new() -> None:
    """Breaks when: an id is longer than one provider takes, or is given twice."""
    ids: set[str] = set()
    for _ in range(1000):
        ids.add(new_id(ids))
    assert len(ids) == 1000
    assert all(len(one) == 9 and one.isascii() and one.isalnum() for one in ids)


SCHEMAS: dict[str, Any] = {
    "none": {"type": "object", "properties": "all of them"},
    "a type that is none": {"type": "object", "properties": {"x": {"type": "thing"}}},
    "an endless one": {"type": "object", "$ref": "#"},
    "one elsewhere": {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"},
    "one of files": {"type": "object", "$ref": "file:///etc/passwd"},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_is_none_lets_nothing_run(schema: Any) -> None:
    """And nothing is loaded from elsewhere.

    Breaks when: what cannot be checked counts as fitting.
    """
    assert misfit({"x": 1}, schema) == "its schema cannot be checked"


def test_a_pattern_without_end_does_not_hold_everybody_up() -> None:
    """Breaks when: a schema's patterns are matched without a limit of time."""
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a|aa)+$"}}}
    begun = time.monotonic()
    assert misfit({"x": "a" * 60 + "!"}, evil) is not None
    assert time.monotonic() - begun < 5
    named = {
        "type": "object",
        "patternProperties": {"^(a|aa)+$": {}},
        "additionalProperties": False,
    }
    assert misfit({"a" * 60 + "!": 1}, named) is None, (
        "names by pattern are the tool's own business"
    )
    assert misfit({"x": "aaa"}, evil) is None


#: Backtracks without end in the library's own matching.
EVIL = "^(a|aa)+$"
LONG_NAME = "a" * 60 + "!"
HOSTILE: dict[str, tuple[Any, Any]] = {
    "a pattern for each of many": (
        {"properties": {"x": {"items": {"type": "string", "pattern": EVIL}}}},
        {"x": [f"{'a' * 60}{number}" for number in range(60)]},
    ),
    "a part with a dialect of its own": (
        {
            "properties": {
                "x": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": EVIL}
            }
        },
        {"x": LONG_NAME},
    ),
    "itself, with a dialect": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"x": {"$ref": "#/$defs/y"}, "z": {"$ref": "#"}},
            "$defs": {"y": {"pattern": EVIL}},
        },
        {"z": {"x": LONG_NAME}},
    ),
    "parts applied again and again": (
        {
            "$defs": {
                "0": {"type": "string"},
                **{str(n): {"allOf": [{"$ref": f"#/$defs/{n - 1}"}] * 4} for n in range(1, 30)},
            },
            "properties": {"x": {"$ref": "#/$defs/29"}},
        },
        {"x": "y"},
    ),
}


@pytest.mark.parametrize(("schema", "arguments"), HOSTILE.values(), ids=HOSTILE)
def test_i25_all_parts_of_a_schema_share_one_time(schema: Any, arguments: Any) -> None:
    """I25. Breaks when: each pattern has a time of its own, or some part is checked without one."""
    begun = time.monotonic()
    assert misfit(arguments, {"type": "object", **schema}) is not None
    assert time.monotonic() - begun < 3


def test_i25_names_by_pattern_are_left_to_the_tool_wherever_they_count() -> None:
    """I25. Breaks when: the library looks for the names that are left, by patterns of its own."""
    schema = {
        "type": "object",
        "allOf": [{"patternProperties": {EVIL: {}}}],
        "unevaluatedProperties": False,
    }
    begun = time.monotonic()
    assert misfit({LONG_NAME: 1}, schema) is None
    assert time.monotonic() - begun < 3
    plain = {"type": "object", "properties": {"x": {}}, "unevaluatedProperties": False}
    assert misfit({"x": 1}, plain) is None
    assert misfit({"y": 1}, plain) is not None


@pytest.mark.parametrize("pattern", ["x{5000000000}", "(", 5])
def test_a_schema_that_the_library_chokes_on_is_none(pattern: Any) -> None:
    """Breaks when: one kind of error of the library reaches who prepares a request."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    assert offerable([tool(parameters=schema)]) == () or misfit({"x": "x"}, schema) is not None


def test_more_arguments_than_named() -> None:
    loose = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert misfit({"x": 1}, loose) is None
    assert misfit({"x": "1"}, loose) == "['x']: '1' is not of type 'integer'"


def test_only_tools_that_servers_take_are_offered() -> None:
    """Breaks when: one tool with an odd name or schema has the whole request refused."""
    good = tool("a__b-1")
    odd = [
        tool("a__b-1", description="another"),
        tool("with space"),
        tool("x" * 65),
        tool(""),
        tool("ä"),
        tool("schema", parameters={"type": "object", "properties": []}),
        tool("pattern", parameters={"type": "object", "pattern": "x{5000000000}"}),
        tool("address", parameters={"type": "object", "$schema": "http://["}),
        tool("text", parameters={"type": "string"}),
        tool("list", parameters=json.loads("[]")),
    ]
    assert offerable([good, *odd]) == (good,)
    assert offerable([tool("ä"), tool("b", parameters=CITY)])[0].name == "b"
