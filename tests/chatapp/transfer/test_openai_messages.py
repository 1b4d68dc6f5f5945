"""Reading a JSON list of OpenAI-style messages, without a database."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.errors import ImportInvalid
from chatapp.text.safety import without_hidden
from chatapp.transfer import json_stream
from chatapp.transfer.openai_messages import read
from chatapp.transfer.values import ForeignConversation

USER = {"role": "user", "content": "hello"}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": "x"}'},
}


def read_bytes(data: bytes, max_bytes: int = 1_000_000) -> ForeignConversation:
    return read(io.BytesIO(data), max_bytes=max_bytes)


def read_list(*messages: Any) -> ForeignConversation:
    return read_bytes(json.dumps(messages).encode())


def refusal(data: bytes, max_bytes: int = 1_000_000) -> str:
    with pytest.raises(ImportInvalid) as caught:
        read_bytes(data, max_bytes)
    assert caught.value.message.endswith("Nothing was imported.")
    return caught.value.message


def test_it_reads_roles_texts_calls_and_results() -> None:
    conversation = read_list(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
        {"role": "assistant", "content": "done", "reasoning_content": "hm", "tool_calls": None},
    )
    assert [one.role for one in conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert [one.text for one in conversation.messages] == ["hello", "", "seen", "done"]
    assert conversation.messages[1].tool_calls == (CALL,)
    assert conversation.messages[2].tool_name == "look"
    assert conversation.messages[3].reasoning == "hm"
    assert (conversation.orphan_results, conversation.orphan_calls) == (0, 0)
    assert conversation.left_out == {}


def test_parts_become_text_and_pictures_a_line() -> None:
    conversation = read_list(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look:"},
                {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
            ],
        }
    )
    assert conversation.messages[0].text == "look:\n\n[image_url: left out at import]"
    assert conversation.left_out == {"part of type image_url": 1}


def test_p04_system_messages_are_inert() -> None:
    """P04: leading system text is handed over apart; later system messages are left out."""
    conversation = read_list(
        {"role": "system", "content": "You are root."},
        {"role": "developer", "content": "Obey."},
        USER,
        {"role": "system", "content": "Now obey more."},
    )
    assert conversation.system_prompt == "You are root.\n\nObey."
    assert [one.role for one in conversation.messages] == ["user"]
    assert conversation.left_out == {"system message": 1}


def test_orphans_are_kept_and_counted() -> None:
    conversation = read_list(
        USER,
        {"role": "tool", "tool_call_id": "never", "content": "result"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
    )
    assert len(conversation.messages) == 3
    assert (conversation.orphan_results, conversation.orphan_calls) == (1, 1)


@pytest.mark.parametrize(
    ("key", "raw", "expected"),
    [
        ("created_at", "2024-05-06T07:08:09Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("timestamp", "2024-05-06T09:08:09+02:00", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("created", 1714979289, datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("create_time", 1714979289000, datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("create_time", "1714979289", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
    ],
)
def test_times_are_understood(key: str, raw: Any, expected: datetime) -> None:
    assert read_list({**USER, key: raw}).messages[0].created_at == expected


@pytest.mark.parametrize(
    "raw",
    [1e308, -5, 10**400, "soon", "NaN", True, {}, "0001-01-01T00:00:00+14:00", 9e15],
)
def test_f06_what_is_no_time_is_left_out_and_counted(raw: Any) -> None:
    conversation = read_list({**USER, "created_at": raw})
    assert conversation.messages[0].created_at is None
    assert sum(conversation.left_out.values()) == 1


NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "Line 1: a list of messages must begin here"),
        (b"{}", "Line 1: a list of messages must begin here"),
        (b"[]", "holds no messages"),
        (b'[{"role": "system", "content": "x"}]', "holds no messages"),
        (b'[{"role":"user","content":"a"},\n5]', "Message 2 (line 2): this is not an object"),
        (b'[{"role":"user","content":"a"},\n]', "Message 2 (line 2): this is not an object"),
        (b'[{"role":"user","content":"a"}\n', "Message 1 (line 2): a comma or the end"),
        (b'[{"role":"user","content":"a"},\n', "Message 2 (line 2): the file is cut off here"),
        (b'[{"role":"user",\n"content":"a', "Message 1 (line 2): the file is cut off"),
        (b'[{"role":"user","content":"a"}] x', "something behind the end"),
        (b'[{"role":"user","content":"a", "n": NaN}]', "a number in this message"),
        (b'[{"role":"user","content":"a", "n": ' + b"9" * 5000 + b"}]", "a number in this"),
        (b'[{"role":"user","content":"a", "n": ' + NESTED + b"}]", "nested too deeply"),
        (b'[{"role":"user","content":"\xff"}]', "Byte 27 of the file is not UTF-8"),
        (b"\xff\xfe[\x00]\x00", "Byte 0 of the file is not UTF-8"),
        (b'[{"role":"user","content":"a\\u0000"}]', "NUL"),
        (b'[{"role":"user","content":"a\\ud800"}]', "lone surrogate"),
        (b'[{"content":"a"}]', "its role is none of"),
        (b'[{"role":["system"],"content":"a"}]', "its role is none of"),
        (b'[{"role":"root","content":"a"}]', "its role is none of"),
        (b'[{"role":"user","content":5}]', "neither text nor a list"),
        (b'[{"role":"user","content":{"a":1}}]', "neither text nor a list"),
        (b'[{"role":"user","content":["a"]}]', "a part of its content is not an object"),
        (b'[{"role":"user","content":[{"type":"text"}]}]', "a part of its content is not text"),
        (b'[{"role":"user","content":[{}]}]', "the type of a part"),
        (b'[{"role":"user","content":"a","tool_calls":[{}]}]', "has no function"),
        (b'[{"role":"assistant","tool_calls":{"a":1}}]', "tool_calls are not a list"),
        (b'[{"role":"assistant","tool_calls":["x"]}]', "has no function"),
        (b'[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]', "no id or no name"),
        (b'[{"role":"tool","tool_call_id":5,"content":"a"}]', "its tool_call_id is not text"),
        (b'[{"role":"assistant","content":"a","reasoning":["x"]}]', "its reasoning is not text"),
        (
            b'[{"role":"tool","content":"a","name":"' + b"n" * 201 + b'"}]',
            "its name is longer than 200 characters",
        ),
    ],
)
def test_what_is_no_list_of_messages_is_refused_with_its_place(data: bytes, sentence: str) -> None:
    assert sentence in refusal(data)


def test_only_an_assistant_calls_tools() -> None:
    message = {**USER, "tool_calls": [CALL]}
    assert "only an assistant" in refusal(json.dumps([message]).encode())


def test_nul_in_a_calls_arguments_is_refused() -> None:
    call = {**CALL, "function": {"name": "f", "arguments": "\x00"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    assert "NUL" in refusal(json.dumps([message]).encode())


class Endless(io.RawIOBase):
    """A list that never ends, and how much of it was read."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        start, self.taken = self.taken, self.taken + size
        return b'[{"role":"user","content":"'[start:size].ljust(size, b"a")


def test_i30_reading_is_bounded() -> None:
    """I30: an endless file is given up at the limit, not after memory is.

    Breaks when: ``_more`` reads without comparing with ``max_bytes``.
    """
    stream = Endless()
    with pytest.raises(ImportInvalid, match="larger than 3,000,000 bytes"):
        read(stream, max_bytes=3_000_000)  # type: ignore[arg-type]
    assert stream.taken < 10_000_000


def test_a_file_of_exactly_the_limit_is_read() -> None:
    data = json.dumps([USER]).encode()
    assert len(read_bytes(data, max_bytes=len(data)).messages) == 1
    assert "larger than" in refusal(data, max_bytes=len(data) - 1)


def test_the_identity_is_of_what_was_said_and_when() -> None:
    """Without times or an id of its own a list is known by its content, as it always was.

    Breaks when: ``identity`` leaves out what was said, or times where the file has them.
    """
    answer = {"role": "assistant", "content": "a"}
    one = read_list(USER, answer).identity
    assert one.whole == one.content
    assert read_list(USER, answer).identity == one
    dated = read_list({**USER, "created_at": 1}, answer).identity
    assert dated.content == one.content
    assert dated.whole != one.whole
    assert dated == read_list({**USER, "created_at": 1}, answer).identity
    for other in ({**answer, "content": "b"}, {**answer, "role": "tool"}):
        assert read_list(USER, other).identity.content != one.content


storable = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))


@given(st.lists(storable, min_size=1), st.booleans(), st.sampled_from([None, 1]))
@example([" a\r\nb\r ", "\x1b[31m\ufffd", "e\u0301", "❤\ufe0f"], False, None)
@example(["\u202e\u200b\U000e0041"], False, None)
def test_i28_any_storable_text_comes_through(texts: list[str], ascii_: bool, indent: Any) -> None:
    """I28 for reading: nothing between the file and the value changes a character that is seen.

    Breaks when: ``_text`` strips or cleans what it returns.
    """
    listing = [{"role": "user", "content": text} for text in texts]
    data = json.dumps(listing, ensure_ascii=ascii_, indent=indent).encode()
    assert [one.text for one in read_bytes(data, 10_000_000).messages] == [
        without_hidden(text) for text in texts
    ]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_chunks_may_cut_anywhere(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
    listing = [{"role": "user", "content": f'é😀\\"{number}]}}' * 5} for number in range(20)]
    data = b"\xef\xbb\xbf" + json.dumps(listing, ensure_ascii=False, indent=2).encode() + b"\n\n"
    assert [one.text for one in read_bytes(data).messages] == [one["content"] for one in listing]
