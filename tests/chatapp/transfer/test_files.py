"""Foreign exports: F01 to F11, as far as reading a file goes."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatapp.errors import ImportInvalid
from chatapp.transfer import chatgpt, files, json_stream, openai_messages, spooled
from chatapp.transfer.files import Item, Refused, conversations
from chatapp.transfer.values import ForeignConversation, ForeignMessage


def node(name: str, parent: str | None, role: str = "user", text: Any = "hi", **more: Any) -> Any:
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, **more}
    return {"id": name, "parent": parent, "message": message}


def tree(*nodes: Any, current: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "title": "A tree",
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current or (nodes[-1]["id"] if nodes else None),
        **more,
    }


def claude_chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": "c", "name": "A chat", "chat_messages": list(messages), **more}


def said(text: str, sender: str = "human", **more: Any) -> dict[str, Any]:
    return {"sender": sender, "text": text, "content": [{"type": "text", "text": text}], **more}


def read(value: Any, **options: int) -> list[Item]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return list(conversations(io.BytesIO(data), **options))


def one(value: Any) -> ForeignConversation:
    (item,) = read(value)
    assert isinstance(item, ForeignConversation), item
    return item


def spoken(found: ForeignConversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in found.messages]


def zipped(files: Iterable[tuple[str, Any]]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files:
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return data.getvalue()


CHAT = tree(node("a", None), node("b", "a", "assistant", "hello"))


def test_it_works() -> None:
    found = one([CHAT])
    assert found.title == "A tree"
    assert spoken(found) == [("user", "hi"), ("assistant", "hello")]
    assert spoken(one(claude_chat(said("q"), said("a", "assistant")))) == [
        ("user", "q"),
        ("assistant", "a"),
    ]
    assert len(read([CHAT, claude_chat(said("q"))])) == 2
    assert spoken(one(CHAT)) == spoken(found)


def test_f01_a_zip_of_many_shards() -> None:
    """F01: all shards are read; a layout that is not known is said, never "success, 0".

    Breaks when: only ``conversations.json`` by its one name is looked for.
    """
    shards = [(f"export/conversations-{number:03}.json", [CHAT]) for number in range(60)]
    assert len(read(zipped([*shards, ("chat.html", b"<html>")]))) == 60
    for odd in ([("data/part-1.json", [CHAT])], [("readme.txt", b"x")], []):
        with pytest.raises(ImportInvalid, match="unsupported layout"):
            read(zipped(odd))


@pytest.mark.parametrize(
    "message",
    [
        None,
        {},
        {"author": None},
        {"author": {"role": "user"}},
        {"author": {"role": "user"}, "content": None},
        {"author": {"role": "user"}, "content": {"parts": None}},
        {"author": {"role": 5}, "content": {"parts": ["x"]}},
        {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [None, 5, {}]}},
        "text",
        [],
    ],
)
def test_f02_gaps_in_a_message_cost_that_message_only(message: Any) -> None:
    """F02, F03: missing metadata, content, author, children, root message.

    Breaks when: a field is read without asking whether it is there.
    """
    odd = {"id": "b", "parent": "a", "message": message}
    last = node("c", "b", "assistant", "end", create_time=None)
    found = one([tree(node("a", None), odd, last)])
    assert spoken(found)[0] == ("user", "hi")
    assert spoken(found)[-1] == ("assistant", "end")
    assert 2 <= len(found.messages) <= 3


def test_f04_cycles_dangling_parents_and_long_chains_end() -> None:
    """F04: bounded, iterative.

    Breaks when: ``_path`` does not remember where it was, or recurses.
    """
    cycle = one([tree(node("a", "b"), node("b", "a", "assistant"), current="b")])
    assert cycle.left_out[chatgpt.CYCLE] == 1
    assert len(cycle.messages) == 2
    assert len(one([tree(node("a", "a"))]).messages) == 1
    assert len(one([tree(node("b", "gone"))]).messages) == 1
    assert len(one([tree(node("a", None), node("b", None, text="two"))]).messages) == 1
    chain = [node(str(n), str(n - 1) if n else None) for n in range(20_000)]
    packed = json.dumps([tree(*chain)], separators=(",", ":")).encode()
    assert len(one(packed).messages) == 20_000


def test_f05_other_branches_are_counted() -> None:
    found = one(
        [
            tree(
                node("q", None),
                node("a1", "q", "assistant", "one"),
                node("a2", "q", "assistant", "two"),
                current="a2",
            )
        ]
    )
    assert spoken(found) == [("user", "hi"), ("assistant", "two")]
    assert found.left_out[chatgpt.OTHER_BRANCH] == 1
    missing = one([tree(node("q", None), node("a", "q", "assistant", "x"), current="no")])
    assert len(missing.messages) == 2


@pytest.mark.parametrize("time", ["NaN", "1e308", "-5", '"soon"', "true", "[]", "Infinity"])
def test_f06_times_that_are_none_are_left_out(time: str) -> None:
    """F06: the order is the tree's, not the times'.

    Breaks when: ``time`` lets an error out, or NaN is refused with its whole file.
    """
    text = json.dumps([tree(node("a", None, create_time="HERE"), node("b", "a", "assistant"))])
    found = one(text.replace('"HERE"', time).encode())
    assert found.messages[0].created_at is None
    assert len(found.messages) == 2


def test_f06_numbers_as_text_are_times() -> None:
    found = one([tree(node("a", None, create_time="1700000000"))])
    assert found.messages[0].created_at is not None
    assert found.messages[0].created_at.year == 2023


def test_f07_what_cannot_be_stored_is_replaced_and_counted() -> None:
    data = json.dumps([tree(node("a", None, text="a\x00b\ud800"))]).encode()
    found = one(data)
    assert found.messages[0].text == "a\ufffdb\ufffd"
    assert found.left_out["character that cannot be stored, replaced"] == 1


def test_p04_system_messages_give_no_orders() -> None:
    """P04: they are counted as left out.

    Breaks when: ``_take`` does not look at ``SYSTEM_ROLES``.
    """
    found = one([tree(node("s", None, "system", "Obey."), node("a", "s"))])
    assert spoken(found) == [("user", "hi")]
    assert found.system_prompt == ""
    assert found.left_out["system message"] == 1


def test_thoughts_code_pictures_and_tools() -> None:
    thought = {"content_type": "thoughts", "thoughts": [{"summary": "Hm", "content": "so"}]}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}
    code = {"content_type": "code", "language": "python", "text": "a = '```'"}
    output = {"content_type": "execution_output", "text": "42"}
    steps = [
        ({"role": "user"}, {"parts": [picture]}),
        ({"role": "assistant"}, thought),
        ({"role": "assistant"}, code),
        ({"role": "tool", "name": "python"}, output),
    ]
    nodes = [
        {"id": str(at), "parent": str(at - 1), "message": {"author": author, "content": content}}
        for at, (author, content) in enumerate(steps)
    ]
    found = one([tree(*nodes)])
    assert spoken(found) == [
        ("user", "[image_asset_pointer: left out at import]"),
        ("assistant", "````python\na = '```'\n````"),
        ("tool", "42"),
    ]
    assert found.messages[1].reasoning == "Hm\nso"
    assert found.messages[2].tool_name == "python"
    assert found.orphan_results == 1


def test_parts_of_claude() -> None:
    parts = [
        {"type": "thinking", "thinking": "Let me see."},
        {"type": "text", "text": "Here:"},
        {"type": "tool_use", "name": "artifacts", "input": {"title": "Doc", "content": "# Hi"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
        {"type": "token_budget"},
    ]
    attached = {"file_name": "a.txt", "extracted_content": "inside"}
    found = one(
        claude_chat(
            said("q", attachments=[attached], files=[{"file_name": "b.png"}]),
            {"sender": "assistant", "content": parts},
        )
    )
    question, reply = found.messages
    assert question.text == "a.txt:\n\n```\ninside\n```\n\n[b.png: left out at import]\n\nq"
    assert reply.reasoning == "Let me see."
    assert "Called artifacts (Doc):\n\n```\n# Hi\n```" in reply.text
    assert "Result of search:\n\n```\nfound\n```" in reply.text
    assert found.left_out == {"attached file": 1, "part of type token_budget": 1}


def test_branches_of_claude() -> None:
    messages = [
        said("q", uuid="1", parent_message_uuid="0"),
        said("old", "assistant", uuid="2", parent_message_uuid="1"),
        said("new", "assistant", uuid="3", parent_message_uuid="1"),
    ]
    found = one(claude_chat(*messages, current_leaf_message_uuid="3"))
    assert [text for _, text in spoken(found)] == ["q", "new"]
    assert found.left_out[chatgpt.OTHER_BRANCH] == 1
    messages[0]["parent_message_uuid"] = "3"
    looped = one(claude_chat(*messages, current_leaf_message_uuid="3"))
    assert looped.left_out[chatgpt.CYCLE] == 1


def test_one_bad_conversation_does_not_cost_the_others() -> None:
    items = read([CHAT, {"mapping": {}}, {"what": 1}, CHAT])
    assert [type(item) for item in items] == [
        ForeignConversation,
        Refused,
        Refused,
        ForeignConversation,
    ]
    assert [item.number for item in items if isinstance(item, Refused)] == [2, 3]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"hello",
        b"\xff\xfe",
        b"{",
        b"[",
        b"[]",
        b"null",
        b"{}",
        b'{"conversations": 5}',
        b"[1]",
        b"PK\x03\x04 not a zip",
        b'{"a":' * 50_000,
        b'[{"mapping":' + b'{"a":' * 50_000,
    ],
)
def test_what_is_none_of_these_is_refused(data: bytes) -> None:
    with pytest.raises(ImportInvalid) as caught:
        read(data)
    assert caught.value.message.endswith(".")


def test_f08_a_bomb_is_refused_by_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """F08: neither what an archive says of itself nor what is in it makes us read more.

    Breaks when: a limit of ``_of_zip``, ``_of_object`` or ``objects`` is taken out.
    """
    for endless in (b"[" + b" " * 2_000_000, b'{"a": "' + b"x" * 2_000_000 + b'"}'):
        with pytest.raises(ImportInvalid, match="larger than 1,000,000 bytes"):
            read(endless, max_bytes=1_000_000)
    bomb = zipped([("conversations.json", b"[" + b" " * 20_000_000)])
    with pytest.raises(ImportInvalid, match="too large"):
        read(bomb, max_bytes=1_000_000)
    lying = bytearray(bomb)
    # The directory's size of the entry, made small.
    at = lying.rindex(b"PK\x01\x02")
    lying[at + 24 : at + 28] = (100).to_bytes(4, "little")
    with pytest.raises(ImportInvalid):
        read(bytes(lying), max_bytes=1_000_000)
    shards = zipped((f"conversations-{number}.json", [CHAT]) for number in range(20))
    assert len(read(shards)) == 20
    monkeypatch.setattr(files, "MAX_TOTAL_BYTES", 19 * len(json.dumps([CHAT])))
    with pytest.raises(ImportInvalid, match="too large"):
        read(shards)
    monkeypatch.setattr(files, "MAX_ENTRIES", 10)
    with pytest.raises(ImportInvalid, match="entries"):
        read(zipped((f"{number}.txt", b"") for number in range(11)))


def test_f08_names_in_an_archive_lead_nowhere() -> None:
    """F08: nothing is unpacked, so a path is a name and a nested archive is a file."""
    names = ["../../conversations.json", "/etc/conversations.json", "C:\\x/conversations.json"]
    for name in names:
        assert len(read(zipped([(name, [CHAT])]))) == 1
    nested = zipped([("conversations.json", [CHAT])])
    with pytest.raises(ImportInvalid, match="unsupported layout"):
        read(zipped([("inner.zip", nested)]))


def test_f08_broken_and_encrypted_archives_are_refused() -> None:
    whole = zipped([("conversations.json", [CHAT] * 50)])
    with pytest.raises(ImportInvalid, match="cut off or broken"):
        read(whole[: len(whole) // 2])
    broken = bytearray(whole)
    broken[60:80] = b"\xff" * 20
    with pytest.raises(ImportInvalid):
        read(bytes(broken))
    secret = bytearray(whole)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        secret[secret.index(mark) + offset] |= 1
    with pytest.raises(ImportInvalid, match="encrypted"):
        read(bytes(secret))


def test_content_of_claude_that_is_text_alone() -> None:
    """Older exports have the words themselves where newer ones have a list of parts.

    Breaks when: ``_content`` takes lists only.
    """
    found = one(claude_chat(said("q"), {"sender": "assistant", "content": "as a string"}))
    assert spoken(found)[1] == ("assistant", "as a string")
    mixed = {"sender": "assistant", "content": ["as a", {"type": "text", "text": "part"}]}
    assert spoken(one(claude_chat(mixed))) == [("assistant", "as a\n\npart")]


def test_thoughts_without_a_reply_are_kept() -> None:
    """A reply that was stopped before its first word was thought about all the same.

    Breaks when: a message without text is left out whatever else it has, or its thoughts are
    given to the reply to another question.
    """
    thought = {"type": "thinking", "thinking": "", "summaries": [{"summary": "Weighing it"}]}
    found = one(claude_chat(said("q"), {"sender": "assistant", "content": [thought]}))
    assert [(m.role, m.text, m.reasoning) for m in found.messages[1:]] == [
        ("assistant", "", "Weighing it")
    ]
    assert found.left_out == {}
    hm = {"author": {"role": "assistant"}, "content": THOUGHTS}
    nodes = [
        node("a", None),
        {"id": "b", "parent": "a", "message": hm},
        node("c", "b", text="another"),
        node("d", "c", "assistant", "answered"),
    ]
    found = one([tree(*nodes)])
    assert [(m.text, m.reasoning) for m in found.messages] == [
        ("hi", ""),
        ("", "Hm"),
        ("another", ""),
        ("answered", ""),
    ]
    assert one([tree(*nodes[:2])]).messages[-1].reasoning == "Hm"


def test_what_is_left_out_is_counted_once() -> None:
    """And named as far as the file does.

    Breaks when: a note of ChatGPT's counts as an empty message too, or a title is dropped.
    """
    recap = {"content_type": "reasoning_recap", "content": "Thought for 16s"}
    message = {"author": {"role": "assistant"}, "content": recap}
    noted = {"id": "b", "parent": "a", "message": message}
    assert one([tree(node("a", None), noted)]).left_out == {"note on how long was thought": 1}
    parts = [{"type": "text/markdown", "title": "Plan"}, {"type": "voice", "text": "Said aloud"}]
    found = one(claude_chat({"sender": "assistant", "content": parts}))
    assert found.messages[0].text == "[text/markdown (Plan): left out at import]\n\nSaid aloud"
    assert found.left_out == {"part of type text/markdown": 1}


THOUGHTS = {"content_type": "thoughts", "thoughts": [{"content": "Hm"}]}


def test_equal_messages_with_other_ids_or_times_are_other_conversations() -> None:
    """Breaks when: ``identity`` knows a conversation by its words alone."""
    chats = [
        claude_chat(said("q"), uuid="1"),
        claude_chat(said("q"), uuid="2"),
        claude_chat(said("q"), uuid="1", created_at="2024-01-01T00:00:00Z"),
        claude_chat(said("q", created_at="2024-01-01T00:00:00Z"), uuid="1"),
        {**CHAT, "conversation_id": "1"},
        {**CHAT, "conversation_id": "2"},
        {**CHAT, "conversation_id": "2", "create_time": 1_700_000_000},
    ]
    identities = [one(chat).identity for chat in chats]
    assert len({identity.whole for identity in identities}) == len(chats)
    assert len({identity.content for identity in identities}) == 2
    assert [one(chat).identity for chat in chats] == identities
    # What grows, or is given another title, has still come from the same one.
    grown = claude_chat(said("q"), said("more"), uuid="1", name="Renamed")
    assert one(grown).identity.source == identities[0].source
    assert one(claude_chat(said("q"), uuid="1", name="Renamed")).identity == identities[0]


@pytest.mark.parametrize("wrapped", ["conversations", "messages", "own"])
def test_i30_large_objects_are_read_one_part_at_a_time(
    wrapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I30: of a file that is one object no more is in memory than of a list.

    Breaks when: ``_of_object`` takes the whole object for one value.
    """
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 200)
    monkeypatch.setattr(json_stream, "WHOLE", 400)
    monkeypatch.setattr(json_stream, "LARGEST", 2_000)
    if wrapped == "conversations":
        items = read({"version": 1, "conversations": [CHAT] * 300})
        assert [spoken(item) for item in items if isinstance(item, ForeignConversation)] == [
            [("user", "hi"), ("assistant", "hello")]
        ] * 300
        return
    listed = [{"role": "user", "content": f"{n}", "text": f"{n}", "seq": n + 1} for n in range(999)]
    value: dict[str, Any] = {"model": "m", "messages": listed, "more": {"x": [1]}}
    if wrapped == "own":
        value |= {"format": "palimpsest", "version": 1, "conversation": {"title": "Mine"}}
    found = one(value)
    assert [message.text for message in found.messages] == [f"{n}" for n in range(999)]
    assert found.title == ("Mine" if wrapped == "own" else "")


def test_one_conversation_that_is_too_large_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when: ``TooLarge`` ends the reading, or the reader loses its place."""
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(json_stream, "WHOLE", 2_000)
    monkeypatch.setattr(json_stream, "LARGEST", 20_000)
    large = tree(*[node(str(n), str(n - 1) if n else None, text="x" * 100) for n in range(500)])
    items = read([CHAT, large, CHAT])
    kinds = [type(item) for item in items]
    assert kinds == [ForeignConversation, Refused, ForeignConversation]
    assert isinstance(items[1], Refused)
    assert (items[1].number, "more than can be read" in items[1].sentence) == (2, True)
    (alone,) = read(large)
    assert isinstance(alone, Refused)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_message_that_is_too_large_is_named(
    monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    """Breaks when: ``objects`` lets ``TooLarge`` out, which nobody who reads a list looks for."""
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(json_stream, "WHOLE", 2_000)
    monkeypatch.setattr(json_stream, "LARGEST", 20_000)
    parts = [{"type": "text", "text": "x" * 500}] * 50
    listed = [{"role": "user", "content": "a"}, {"role": "user", "content": parts}]
    with pytest.raises(ImportInvalid, match=r"^Message 2 \(line 1\): it has more than"):
        read({"messages": listed} if wrapped else listed)


@pytest.mark.parametrize("form", ["chatgpt", "claude", "openai", "own"])
def test_a_very_long_message_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """N03: one message is one transaction, in which others wait.

    Breaks when: a reader takes a text over whose length is not looked at, or cuts it in silence.
    """
    monkeypatch.setattr(openai_messages, "MOST_CHARACTERS", 1_000)
    exact, much = "y" * 1_000, "x" * 700
    parts = [{"type": "text", "text": much}] * 2
    values = {
        "chatgpt": [tree(node("a", None, text=exact), long_node("b", [much, much]))],
        "claude": claude_chat(said(exact), {"sender": "assistant", "content": parts}),
        "openai": [{"role": "user", "content": exact}, {"role": "assistant", "content": parts}],
        "own": {
            "format": "palimpsest",
            "version": 1,
            "messages": [
                {"role": "user", "text": exact, "seq": 1},
                {"role": "assistant", "text": much * 2, "seq": 2},
            ],
        },
    }
    found = one(values[form])
    assert found.messages[0].text == exact
    assert len(found.messages[1].text) == 1_000
    assert found.messages[1].text.endswith("x\n\n[The rest of this was left out at import.]")
    assert found.left_out == {openai_messages.SHORTENED: 1}


def long_node(name: str, parts: list[str]) -> Any:
    found = node(name, "a", "assistant")
    found["message"]["content"]["parts"] = parts
    return found


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and object in a value with each of its indices and names."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@given(data=st.data())
@settings(max_examples=500, deadline=None)
def test_whatever_stands_in_a_place_of_a_file_is_read_or_refused(data: st.DataObject) -> None:
    """F02: an export changes without notice, and a file may have been made to harm.

    Breaks when: a reader takes it for granted what kind of value it finds.
    """
    value = json.loads(json.dumps(data.draw(st.sampled_from(WHOLE_FILES))))
    holder, key = data.draw(st.sampled_from(list(places(value))))
    holder[key] = data.draw(JSON_VALUES)
    with suppress(ImportInvalid):
        for item in read(value):
            assert isinstance(item, Refused) or item.identity.content


THOUGHT = {"content_type": "thoughts", "thoughts": [{"summary": "Hm", "content": "so"}]}
CALLS = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
VERSION = {
    "version": 1,
    "parent": 0,
    "restored_from": None,
    "trigger": "manual",
    "text": "## Constraints\n- None [1]",
    "ledger": [],
    "narrative": [{"text": "They met.", "first_seq": 1, "through_seq": 1, "origin": "machine"}],
    "first_seq": 1,
    "through_seq": 1,
    "message_count": 1,
    "source_fingerprint": "f",
    "source_tokens": 4,
    "summary_tokens": 2,
    "cost": 0.5,
    "audit": {"salient": 1},
    "created_at": "2024-01-01T00:00:00Z",
}
#: One of each form, with something in every place that is looked at.
WHOLE_FILES: list[Any] = [
    [
        tree(
            node("a", None, create_time=1.5e9, metadata={"x": 1}),
            {
                "id": "t",
                "parent": "a",
                "message": {"author": {"role": "assistant"}, "content": THOUGHT},
            },
            node("b", "t", "assistant", {"content_type": "image_asset_pointer"}),
            node("c", "a", "tool"),
            current="b",
            conversation_id="1",
            update_time=1.6e9,
        )
    ],
    [
        claude_chat(
            said("q", uuid="1", attachments=[{"file_name": "a", "extracted_content": "b"}]),
            {
                "sender": "assistant",
                "uuid": "2",
                "parent_message_uuid": "1",
                "created_at": "2024-01-01T00:00:00Z",
                "content": [
                    {"type": "thinking", "thinking": "", "summaries": [{"summary": "s"}]},
                    {"type": "tool_use", "name": "n", "input": {"title": "t", "content": "c"}},
                    {"type": "tool_result", "name": "n", "content": [{"text": "found"}]},
                ],
            },
            current_leaf_message_uuid="2",
        )
    ],
    [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "q"}], "created_at": 1.5e9},
        {"role": "assistant", "content": None, "tool_calls": CALLS, "reasoning_details": [{}]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
    ],
    {
        "format": "palimpsest",
        "version": 1,
        "conversation": {
            "code": "c",
            "title": "t",
            "system_prompt": "s",
            "threshold": 0.7,
            "keep_turns": 2,
            "summary_version": 1,
            "compressed_through": 1,
            "truncated_through": 0,
        },
        "summaries": [VERSION],
        "messages": [
            {"seq": 1, "role": "user", "text": "q", "status": "complete", "turn": 5},
            {"seq": 2, "role": "assistant", "text": "a", "turn": 5, "turn_status": "stopped"},
            {"seq": 3, "role": "assistant", "tool_calls": CALLS, "created_at": "2024-01-01"},
        ],
    },
]


def test_i26_one_conversation_is_in_memory_at_a_time() -> None:
    """I26: an import of 200 MB takes no more than its largest conversation.

    Breaks when: ``_listed`` keeps a decoded conversation by a name while the next one is read.
    """
    large = tree(*[node(str(n), str(n - 1) if n else None) for n in range(3_000)])
    peaks = []
    for count in (1, 3):
        data = io.BytesIO(json.dumps([large] * count).encode())
        tracemalloc.start()
        for item in conversations(data):
            del item
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.4 * peaks[0]


def test_large_values_taken_apart_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: a number is cut by a chunk, or an element of a large value is lost."""
    nodes = [node(str(n), str(n - 1) if n else None, create_time=1.5e9 + n / 8) for n in range(99)]
    whole = one(tree(*nodes, odd=[[], {}, None, True, -1.5e-7, 'é\\"'] * 50))
    for chunk in (1, 7, 64, 1_000):
        monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(json_stream, "WHOLE", 50)
        again = one(tree(*nodes, odd=[[], {}, None, True, -1.5e-7, 'é\\"'] * 50))
        assert again.messages == whole.messages
    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep, "b": "x" * 100}
    with pytest.raises(ImportInvalid, match="nested too deeply"):
        read([{"mapping": deep}])


def test_conversations_are_counted_before_they_are_read() -> None:
    messages = [{"role": "user", "content": "a"}]
    for value, number in (
        ([CHAT, CHAT, {"what": 1}], 3),
        (CHAT, 1),
        (messages, 1),
        ({"messages": messages}, 1),
        ({"a": [1], "conversations": [CHAT] * 4}, 4),
        (zipped([("conversations-1.json", [CHAT] * 2), ("conversations-2.json", [CHAT])]), 3),
        (b"[{}, {", None),
        (b"hello", None),
        (b"PK", None),
    ):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        assert files.count(io.BytesIO(data)) == number


def test_counting_does_not_lose_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: the reader that counts shares its stream with the one that looks at the head."""
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 64)
    monkeypatch.setattr(json_stream, "WHOLE", 64)
    data = json.dumps([tree(*[node(str(n), None, text="x" * 50) for n in range(9)])] * 7)
    assert files.count(io.BytesIO(data.encode())) == 7


def test_many_messages_wait_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same list, read as often as one likes.

    Breaks when: a batch is lost on its way to the file, or its place is another's.
    """
    monkeypatch.setattr(spooled, "BATCH", 10)
    kept = spooled.SpooledMessages()
    every = [ForeignMessage(role="user", text=f"message {n}") for n in range(1_234)]
    for message in every:
        kept.append(message)
    assert len(kept) == len(every)
    assert list(kept) == every == list(kept)
    assert [kept[0], kept[777], kept[-1]] == [every[0], every[777], every[-1]]
    assert kept[1_230:] == every[1_230:]
    assert kept._file is not None
    with pytest.raises(IndexError):
        kept[1_234]
