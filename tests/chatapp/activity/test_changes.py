"""What changed between two requests, and the figures of the plot."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatapp.activity.changes import compared, text_of
from chatapp.activity.plot import HEIGHT, WIDTH, plotted


def request(*texts: str, system: str = "Be brief.", **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"model": "m", "messages": [{"role": "system", "content": system}, *said], **more}


def kinds(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one.kind, one.count) for one in compared(before, after).steps]


def test_a_request_that_goes_on_has_new_messages_at_its_end() -> None:
    found = compared(request("a"), request("a", "b", "c"))
    assert [(one.kind, one.count, one.text) for one in found.steps] == [
        ("same", 2, ""),
        ("added", 1, "b"),
        ("added", 1, "c"),
    ]
    assert found.is_continued


def test_a_compression_changes_the_system_message_and_takes_the_oldest_out() -> None:
    """Breaks when: all that follows a change counts as changed."""
    before = request("a", "b", "c", "d", "e")
    after = request("c", "d", "e", "f", system="Be brief.\n## Summary\n- a, b")
    after["messages"][1]["role"] = "user"
    found = compared(before, after)
    assert [one.kind for one in found.steps] == ["changed", "gone", "gone", "same", "added"]
    assert [(one.kind, one.text) for one in found.steps[0].lines] == [
        ("same", "Be brief."),
        ("added", "## Summary"),
        ("added", "- a, b"),
    ]
    assert not found.is_continued


def test_other_fields_are_told_before_and_after() -> None:
    tools = [{"function": {"name": "search"}}, {"function": {"name": "clock"}}]
    found = compared(request("a", temperature=0.2), request("a", tools=tools))
    told = [(one.name, one.before, one.after) for one in found.options]
    assert told == [("temperature", "0.2", ""), ("tools", "", "search, clock")]


def test_a_request_of_ten_thousand_messages_is_compared_in_no_time() -> None:
    """Repeated messages are what a comparison of all with all is slowest at.

    Breaks when: the bound of messages compared one with another is gone.
    """
    begun = time.process_time()
    compared(request(*["ok"] * 10_000, system="x"), request(*["ok"] * 9_000, system="y"))
    compared(request("\n" * 50_000), request("x" + "\n" * 49_000))
    assert time.process_time() - begun < 5


texts = st.lists(st.sampled_from(["a", "b", "c", "d\ne"]), max_size=12)


@given(texts, texts)
def test_the_steps_tell_every_message_of_the_new_request(old: list[str], new: list[str]) -> None:
    found = compared(request(*old), request(*new))
    there = sum(one.count for one in found.steps if one.kind != "gone")
    gone = sum(one.count for one in found.steps if one.kind != "added")
    assert (there, gone) == (len(new) + 1, len(old) + 1)


def test_whatever_stands_in_a_message_has_a_text() -> None:
    """A line of the log may come from anywhere."""
    for content in (None, 3, ["parts"], {"a": "b"}, "text"):
        assert isinstance(text_of({"content": content, "tool_calls": [{"id": "1"}]}), str)
    assert compared({"messages": "none"}, {"messages": [1, {"role": "user"}]}).steps


def test_the_bars_fill_the_plot_and_days_without_calls_are_there() -> None:
    row = {"output_tokens": 0, "cost": 0.0, "calls": 1}
    rows = [
        {"day": date(2026, 3, 1), "kind": "chat", "input_tokens": 30, **row},
        {"day": date(2026, 3, 1), "kind": "summary", "input_tokens": 10, **row},
        {"day": date(2026, 3, 4), "kind": "chat", "input_tokens": 20, **row},
        {"day": date(2026, 3, 9), "kind": "chat", "input_tokens": 99, **row},
    ]
    plot = plotted(rows, first=date(2026, 3, 1), last=date(2026, 3, 4), measure="tokens")
    assert [bar.value for bar in plot.bars] == [40, 0, 0, 20]
    assert plot.kinds == ("chat", "summary")
    first = plot.bars[0].pieces
    assert sum(piece.height for piece in first) == HEIGHT
    assert first[1].y == 0
    assert all(piece.x >= 0 and piece.x + piece.width <= WIDTH for piece in first)
    calls = plotted(rows, first=date(2026, 3, 1), last=date(2026, 3, 4), measure="calls")
    assert calls.highest == 2
    long = plotted([], first=date(2000, 1, 1), last=date(2026, 3, 4), measure="cost")
    assert len(long.bars) == 92
    assert long.highest == 0
