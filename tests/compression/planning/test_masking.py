"""What stands for a masked tool result and for long arguments, and which messages are masked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.planning.masking import (
    LONG,
    REST,
    SHORT,
    as_sent,
    batch,
    cut_calls,
    placeholder,
    tokens_masked,
)
from compression.tokens import CharacterCounter
from compression.types import Item, Sizes
from tests.growth import cost

SIZES = Sizes(window=8192, reserve=2048)
COUNT = CharacterCounter().count
FILE = "import os\n" * 300


def result(text: str, *, seq: int = 1, name: str = "shell") -> Item:
    return Item(
        seq=seq, role="tool", text=text, tokens=len(text) // 3 + 8, tool_call_id="c", tool_name=name
    )


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "call_1",
        "type": "function",
        "function": {"name": "write", "arguments": arguments},
        **more,
    }


def writing(seq: int, text: str = FILE) -> Item:
    """An assistant's message that writes a file."""
    calls = (call(json.dumps({"path": "src/app.py", "content": text})),)
    tokens = COUNT(json.dumps(list(calls))) + 4
    return Item(seq=seq, role="assistant", text="", tokens=tokens, tool_calls=calls)


def arguments_of(calls: Any) -> Any:
    return json.loads(calls[0]["function"]["arguments"])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (result("ok\n" * 213, name="read"), "[read result masked: 214 lines, starts with: ok]"),
        (result('{"exit": 0}' + "x" * 1193), "[shell result masked: exit code 0, 1,204 bytes]"),
        (result("é" * 100, name="search"), "[search result masked: 200 bytes]"),
        (result("x", name=""), "[tool result masked: 1 bytes]"),
        (result("x", name="a]\nb"), "[a_b result masked: 1 bytes]"),
    ],
)  # fmt: skip
def test_it_says_what_was_there(item: Item, expected: str) -> None:
    assert placeholder(item) == expected


def test_a_long_result_keeps_its_beginning() -> None:
    text = "".join(str(n % 10) for n in range(3000))
    assert placeholder(result(text)).endswith("3,000 bytes]\n" + text[:200])


def test_a_written_file_is_described_and_its_path_kept() -> None:
    arguments = {"path": "src/" + "deep/" * 60 + "app.py", "content": FILE, "mode": "w", "n": 3}
    (cut,) = cut_calls([call(json.dumps(arguments), signature="abc")])
    assert arguments_of([cut]) == {
        **arguments,
        "content": "[masked: 301 lines, starts with: import os]",
    }
    assert (cut["id"], cut["type"], cut["signature"]) == ("call_1", "function", "abc")
    assert cut["function"]["name"] == "write"


@pytest.mark.parametrize(
    "arguments",
    [
        "{" + "x" * 900,
        "[" * 5000,
        json.dumps(["x" * 900]),
        '{"n": ' + "9" * 5000 + "}",
        '{"n": 1e999, "x": "' + "x" * 900 + '"}',
        '{"n": NaN, "x": "' + "x" * 900 + '"}',
        '{"x": "\\ud800' + "x" * 100 + '", "y": "' + "y" * 900 + '"}',
    ],
)
def test_arguments_that_no_strict_reader_takes_are_described_as_a_whole(arguments: str) -> None:
    """Breaks when: what is no object, no JSON or no text goes into the cut arguments."""
    found = arguments_of(cut_calls([call(arguments)]))
    assert list(found) == [REST]
    assert found[REST].startswith("[arguments masked: ")


def test_very_many_arguments_are_left_out_with_their_number() -> None:
    values = {f"a{n}": n for n in range(1000)}
    found = arguments_of(cut_calls([call(json.dumps(values))]))
    left_out = int(found.pop(REST).split()[0].strip("["))
    assert left_out == len(values) - len(found)
    assert found.items() <= values.items()
    long_name = arguments_of(cut_calls([call(json.dumps({"x" * 5000: 1}))]))
    assert long_name == {REST: "[1 more arguments masked]"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=300), _JSON, max_size=40) | st.text(max_size=3000))
def test_cut_arguments_are_short_and_strict_json(values: Any) -> None:
    """Breaks when: ``_cut_arguments`` cuts the text of the JSON, or keeps what is not finite."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    written = values if isinstance(values, str) else json.dumps(values)
    arguments = cut_calls([call(written)])[0]["function"]["arguments"]
    if len(written) <= SHORT:
        assert arguments == written
        return
    assert isinstance(json.loads(arguments, parse_constant=refuse), dict)
    assert len(arguments.encode()) <= 4 * LONG


@pytest.mark.parametrize("odd", [{}, {"function": None}, {"function": {"arguments": {"a": 1}}}])
def test_calls_of_another_shape_stay_as_they_are(odd: dict[str, Any]) -> None:
    assert cut_calls([odd]) == (odd,)


def transcript() -> list[Item]:
    return [result("line of output\n" * 40, seq=n) for n in range(1, 11)]


def chosen(items: list[Item], sizes: Sizes = SIZES, **more: bool) -> tuple[int, ...]:
    found = batch(items, sizes, **more)
    return found.seqs if found else ()


def test_a_batch_leaves_the_last_six_alone() -> None:
    assert chosen(transcript()) == (1, 2, 3, 4)
    found = batch(transcript(), SIZES)
    assert found is not None
    assert found.frees >= 0.05


def test_too_small_a_batch_waits() -> None:
    assert chosen(transcript()[:7]) == ()
    assert chosen(transcript()[:3]) == ()


def test_at_a_compression_a_smaller_batch_is_worth_it() -> None:
    assert chosen(transcript()[:7], at_compression=True) == (1,)
    short = [replace(one, text="ok", tokens=9) for one in transcript()]
    assert chosen(short, at_compression=True) == ()


def test_nothing_is_masked_twice() -> None:
    items = transcript()
    items[0] = replace(items[0], masked=True)
    items[1] = replace(items[1], text=placeholder(items[1]), tokens=500)
    items[2] = replace(items[2], pinned=True)
    large = replace(items[3], text="row\n" * 900, tokens=1200)
    items[3] = large
    assert chosen(items) == (4,)


def test_what_a_person_unmasked_is_left_alone_until_there_is_hardly_any_room() -> None:
    """Breaks when: a batch that was undone is masked again with the next request."""
    items = [replace(one, unmasked=one.seq < 4) for one in transcript()]
    large = replace(items[3], text="row\n" * 900, tokens=1200)
    items[3] = large
    assert chosen(items) == (4,)
    assert chosen(items, replace(SIZES, fixed=3000)) == (1, 2, 3, 4)


def test_long_arguments_of_old_calls_are_masked_too() -> None:
    """Breaks when: only results are masked, or a short call is."""
    short = replace(
        writing(2), tool_calls=(call('{"path": "a.py"}'),), tokens=40, text="Now I look."
    )
    said = Item(seq=3, role="assistant", text=FILE, tokens=1000)
    assert chosen([writing(1), short, said, *(writing(n) for n in range(4, 12))]) == (1, 4, 5)


def test_a_batch_pays_when_little_is_read_again() -> None:
    """Breaks when: what lies behind the first masked message is not counted as lost."""
    items = transcript()
    cheap = batch(items, SIZES)
    assert cheap is not None
    assert cheap.pays
    items[9] = replace(items[9], tokens=9000)
    dear = batch(items, replace(SIZES, window=14_000))
    assert dear is not None
    assert not dear.pays


@pytest.mark.parametrize("item", [result(FILE), writing(1)])
def test_a_masked_message_counts_as_what_is_sent_of_it(item: Item) -> None:
    """Breaks when: ``tokens_masked`` forgets the calls, or counts the originals."""
    item = replace(item, tokens=COUNT(item.text) + (item.tokens if item.tool_calls else 4))
    sent = as_sent(replace(item, masked=True))
    calls = COUNT(json.dumps(list(sent.tool_calls))) if sent.tool_calls else 0
    assert tokens_masked(item, COUNT) == COUNT(sent.text) + calls + 4
    assert as_sent(item) == item
    # Reasoning goes with the message, and is not in the tokens that are stored with it.
    assert tokens_masked(replace(item, reasoning=500), COUNT) == tokens_masked(item, COUNT)


def test_n02_the_time_is_linear_in_a_result_of_spaces() -> None:
    """N02. Breaks when: spaces after "exit" are gone through once for each of them."""
    beginning = "exit" + " " * 1_990
    assert cost(lambda: [placeholder(result(beginning)) for _ in range(100)]) < 0.1
    assert "exit code 3" in placeholder(result("exit code:  3"))


@pytest.mark.parametrize(
    "files",
    [
        [{"path": f"src/part{number}.py", "content": FILE} for number in range(3)],
        {"files": [f"src/part{number}.py" for number in range(3)], "content": FILE},
    ],
    ids=["objects", "list"],
)
def test_paths_within_lists_are_kept(files: Any) -> None:
    """Breaks when: only an argument that is a path itself is kept, so that nobody knows any more
    which files a call with several of them has written."""
    (cut,) = cut_calls([call(json.dumps({"edits": files}))])
    said = arguments_of([cut])["edits"]
    assert said.startswith("[masked: ")
    assert said.endswith("; src/part0.py; src/part1.py; src/part2.py]")


def test_a_list_of_paths_stays_as_it_is() -> None:
    """Breaks when: its description, which names them, is longer than the list."""
    arguments = {"paths": [f"src/part{number}.py" for number in range(30)], "content": FILE}
    said = arguments_of(cut_calls([call(json.dumps(arguments))]))
    assert said["paths"] == arguments["paths"]


def test_of_very_many_paths_the_first_are_kept() -> None:
    arguments = {"edits": [{"path": f"src/part{number}.py", "text": FILE} for number in range(500)]}
    (cut,) = cut_calls([call(json.dumps(arguments))])
    assert len(json.dumps(cut)) < 2 * LONG
    assert "src/part9.py" in arguments_of([cut])["edits"]
