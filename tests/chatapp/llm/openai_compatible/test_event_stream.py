"""The framing of server-sent events, without a word about what the objects say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.errors import MalformedReply
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.event_stream import EventReader, ServerSaid


def reader(max_event_bytes: int = 1000) -> EventReader:
    return EventReader(Bounds(max_characters=1000, max_event_bytes=max_event_bytes))


def read(*pieces: bytes) -> list[tuple[dict[str, Any], bool]]:
    events = reader()
    return [event for piece in pieces for event in events.feed(piece)]


STREAM = (
    b'\xef\xbb\xbf: hello\ndata: {"n": 1}\n\n'
    b'event: message\ndata: {"n":\ndata: 2}\nid: 7\n\n'
    b'event: error\ndata: {"n": 3}\n\n'
    b"event: ping\ndata: none\n\n"
    b'event: ping\ndata:{"n": 4}\n\ndata\n\n'
)
OBJECTS = [({"n": 1}, False), ({"n": 2}, False), ({"n": 3}, True), ({"n": 4}, False)]


@given(st.sampled_from([b"\n", b"\r", b"\r\n"]), st.lists(st.integers(0, len(STREAM) * 2)))
def test_lines_end_in_three_ways_and_bytes_may_be_cut_anywhere(end: bytes, at: list[int]) -> None:
    """Breaks when: a CR LF that is cut in two counts as two line ends, or a line's first part
    is forgotten.
    """
    stream = STREAM.replace(b"\n", end)
    cuts = [0, *sorted(min(one, len(stream)) for one in at), len(stream)]
    assert read(*(stream[a:b] for a, b in pairwise(cuts))) == OBJECTS


def test_what_follows_done_is_ignored() -> None:
    events = reader()
    assert list(events.feed(b"data: [DONE]\n\ndata: {}\n\n")) == []
    assert events.done
    assert list(events.feed(b"data: {bad\n\n")) == []
    assert (events.count, events.unfinished) == (0, False)


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        (b"<html>\n", ""),
        (b' {"error": 1}\n', ""),
        (b"data: {\n\n", "not JSON"),
        (b"data: \xff\n\n", "not JSON"),
        (b"data: [1]\n\n", "not an object"),
    ],
)
def test_what_is_no_stream_of_objects_is_refused(stream: bytes, fault: str) -> None:
    with pytest.raises(MalformedReply) as refused:
        read(stream)
    assert fault in str(vars(refused.value))


def test_a_page_is_one_only_at_the_beginning() -> None:
    assert read(b'data: {"n": 1}\n\n<html>\n') == OBJECTS[:1]


def test_an_error_in_plain_words_is_told() -> None:
    with pytest.raises(ServerSaid) as said:
        read(b"event: error\ndata: overloaded\n\n")
    assert said.value.error == "overloaded"


@pytest.mark.parametrize(
    "pieces",
    [(b"data: " + b"x" * 2000,), (b"x" * 600, b"x" * 600), (b"data: x\n" * 900,)],
)
def test_i26_an_event_is_bounded_before_it_is_whole(pieces: tuple[bytes, ...]) -> None:
    """I26: as one line, as a line in pieces, or as many lines.

    Breaks when: one of the three is not measured.
    """
    with pytest.raises(MalformedReply, match="single piece"):
        read(*pieces)


@pytest.mark.parametrize(
    ("left", "unfinished", "inside_event"),
    [
        (b"", False, False),
        (b": comm", True, False),
        (b"data: {", True, True),
        (b"data: {}\n", True, True),
        (b"data: {}\nid", True, True),
    ],
)
def test_where_the_stream_broke_off(left: bytes, unfinished: bool, inside_event: bool) -> None:
    events = reader()
    assert list(events.feed(b'data: {"n": 1}\n\n' + left)) == OBJECTS[:1]
    assert (events.unfinished, events.inside_event) == (unfinished, inside_event)
