"""Tool calls put together from pieces, cut in every way that a server may cut them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.client import ToolCall
from chatapp.llm.openai_compatible.pieces import ToolCallAssembler
from compression.tools.texts import REPLACEMENT


def piece(
    arguments: object = None, *, index: object = None, id: str = "", name: str = "", **more: Any
) -> dict[str, Any]:
    """One element of ``delta.tool_calls``; what is not given is not in it."""
    function: dict[str, Any] = {}
    if name:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    made: dict[str, Any] = {"function": function, **more}
    if index is not None:
        made["index"] = index
    if id:
        made["id"] = id
    return made


def assembled(*pieces: object) -> list[tuple[str, str, str]]:
    assembler = ToolCallAssembler()
    for one in pieces:
        assembler.add(one)
    return [(call.id, call.name, call.arguments) for call in assembler.calls()]


def test_it_works() -> None:
    assert assembled(
        piece("", index=0, id="a", name="f"), piece('{"x":', index=0), piece(" 1}", index=0)
    ) == [("a", "f", '{"x": 1}')]


@pytest.mark.parametrize("index", [None, 7, "0"])
def test_a_piece_without_id_and_name_continues_the_current_call(index: object) -> None:
    """At no index, one that no call has, or one that is no number.

    Breaks when: such a piece begins a call of its own.
    """
    assert assembled(
        piece("", index=0, id="a", name="f"),
        piece("{", index=1, id="b", name="g"),
        piece("}", index=index),
    ) == [("a", "f", ""), ("b", "g", "{}")]


def test_a_known_id_comes_before_its_index() -> None:
    """Breaks when: the index is looked at first."""
    assert assembled(
        piece("", index=0, id="a", name="f"),
        piece("", index=0, id="b", name="g"),
        piece('{"of": "a"}', index=0, id="a"),
        piece('{"of": "b"}', index=0, id="b"),
    ) == [("a", "f", '{"of": "a"}'), ("b", "g", '{"of": "b"}')]


@pytest.mark.parametrize("name", ["", "f"])
@pytest.mark.parametrize("index", [None, 0])
def test_the_same_id_in_each_piece(index: object, name: str) -> None:
    """With the name again or without it.

    Breaks when: an id that is said again begins a call.
    """
    first = piece("", index=index, id="a", name="f")
    rest = [piece(part, index=index, id="a", name=name) for part in ('{"x"', ": {", "}}")]
    assert assembled(first, *rest) == [("a", "f", '{"x": {}}')]


def test_an_index_that_rises_with_each_piece_of_one_call() -> None:
    assert assembled(
        piece('{"x"', index=0, id="a", name="f"),
        piece(": 1", index=1, id="a"),
        piece("}", index=2, id="a", name="f"),
    ) == [("a", "f", '{"x": 1}')]


@pytest.mark.parametrize("name", ["f", "g"])
@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("id", ["", "same"])
def test_whole_calls_are_calls_of_their_own(index: object, id: str, name: str) -> None:
    """Under one index or none, with one id or none, of one tool or two.

    Breaks when: arguments are added to those that were whole already.
    """
    calls = assembled(
        piece('{"x": "}"}', index=index, id=id, name="f"),
        piece({"x": 2}, index=index, id=id, name=name),
    )
    assert [call[1:] for call in calls] == [("f", '{"x": "}"}'), (name, '{"x": 2}')]


@pytest.mark.parametrize("blank", ["", " \n", None])
@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("id", ["", "a"])
def test_a_name_that_is_said_again_after_a_whole_call_begins_none(
    index: object, id: str, blank: object
) -> None:
    """With its id or without. But the same at a new index is a call whose arguments follow.

    Breaks when: a call that never was is run beside the one that was.
    """
    whole = piece("{}", index=index, id=id, name="f")
    again = piece(blank, index=index, id=id, name="f")
    assert [call[1:] for call in assembled(whole, again)] in ([("f", "{}")], [("f", "{} \n")])
    beside = [piece("", index=1, id=id, name="f"), piece('{"x": 1}', index=1)]
    calls = assembled(piece("{}", index=0, id=id, name="f"), *beside)
    assert [call[1:] for call in calls] == [("f", "{}"), ("f", '{"x": 1}')]


def test_the_name_in_each_piece_without_an_id() -> None:
    assert assembled(piece("{", name="f"), piece('"x": 1}', name="f"), piece("{}", name="g")) == [
        ("call_1", "f", '{"x": 1}'),
        ("call_2", "g", "{}"),
    ]


def test_the_name_after_the_id() -> None:
    assert assembled({"id": "a"}, piece(name="f"), piece("{}")) == [("a", "f", "{}")]


def test_a_new_id_with_each_piece_is_one_call() -> None:
    """Breaks when: an unknown id alone begins a call at an index that has one."""
    assert assembled(piece('{"x"', index=0, id="a", name="f"), piece(": 1}", index=0, id="b")) == [
        ("a", "f", '{"x": 1}')
    ]


@pytest.mark.parametrize(
    "nothing", [None, 1, "x", [], {}, {"index": 3}, {"function": None}, piece("", index=1)]
)
def test_a_piece_that_says_nothing_begins_nothing(nothing: object) -> None:
    assert assembled(nothing) == []
    assert assembled(piece("{}", id="a", name="f"), nothing) == [("a", "f", "{}")]


def test_fields_of_the_servers_own_are_kept_with_their_call() -> None:
    """Breaks when: only the fields that are read reach the call."""
    signature = {"google": {"thought_signature": "c2lnbg==", "odd": "a\0\ud800", "nan": 0.0}}
    assembler = ToolCallAssembler()
    grown = assembler.add(
        piece("{}", index=0, id="a", name="f", extra_content=signature, type="function", none=None)
    )
    assembler.add(piece("", index=0, function_index=2))
    assembler.add({"index": 1, "id": "b", "function": {"name": "g", "strict": True}})
    kept = {"thought_signature": "c2lnbg==", "odd": f"a{REPLACEMENT}{REPLACEMENT}", "nan": 0.0}
    first, second = assembler.calls()
    assert first.extra == {"extra_content": {"google": kept}, "function_index": 2}
    assert second == ToolCall(id="b", name="g", arguments="", extra={"function": {"strict": True}})
    assert grown > len(json.dumps(kept)), "what is kept counts towards the bound of a reply"


def test_a_field_that_nests_without_end_is_not_kept() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assembler = ToolCallAssembler()
    assembler.add(piece("{}", id="a", name="f", extra=deep))
    assert assembler.calls()[0].extra == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)


@given(
    st.lists(OBJECTS, min_size=1, max_size=4),
    st.sampled_from(["index", "id", "both", "id and name"]),
    st.data(),
)
def test_parallel_calls_in_any_pieces_and_interleaved(
    wanted: list[dict[str, Any]], known_by: str, data: st.DataObject
) -> None:
    """Breaks when: a piece goes to another call than its index or its id says."""
    texts = [json.dumps(one, ensure_ascii=data.draw(st.booleans())) for one in wanted]
    begun = [
        piece(
            "", index=number if known_by in {"index", "both"} else None, id=f"c{number}", name="f"
        )
        for number in range(len(texts))
    ]
    cuts = [
        (number, part)
        for number, text in enumerate(texts)
        for part in _cut(text, data.draw(st.lists(st.integers(1, len(text)), max_size=6)))
    ]
    order = data.draw(st.permutations(range(len(cuts))))
    places = sorted(range(len(cuts)), key=lambda place: order[place])
    # Shuffled between the calls, in order within each of them.
    left = {number: iter([one for at, one in cuts if at == number]) for number in range(len(texts))}
    pieces = []
    for place in places:
        number = cuts[place][0]
        part = next(left[number])
        if known_by == "index":
            pieces.append(piece(part, index=number))
        elif known_by == "both":
            pieces.append(piece(part, index=number, id=f"c{number}"))
        else:
            name = "f" if known_by == "id and name" else ""
            pieces.append(piece(part, id=f"c{number}", name=name))
    assert assembled(*begun, *pieces) == [
        (f"c{number}", "f", text) for number, text in enumerate(texts)
    ]


def _cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *places})
    return [text[begin:end] for begin, end in pairwise(edges)]
