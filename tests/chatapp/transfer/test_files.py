"""Foreign exports: I01 to I11, as far as reading a file goes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from typing import Any

import pytest

from chatapp.errors import ImportInvalid
from chatapp.transfer import chatgpt, files
from chatapp.transfer.files import Item, Refused, conversations
from chatapp.transfer.values import ForeignConversation


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


def test_i01_a_zip_of_many_shards() -> None:
    """I01: all shards are read; a layout that is not known is said, never "success, 0".

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
def test_i02_gaps_in_a_message_cost_that_message_only(message: Any) -> None:
    """I02, I03: missing metadata, content, author, children, root message.

    Breaks when: a field is read without asking whether it is there.
    """
    odd = {"id": "b", "parent": "a", "message": message}
    last = node("c", "b", "assistant", "end", create_time=None)
    found = one([tree(node("a", None), odd, last)])
    assert spoken(found)[0] == ("user", "hi")
    assert spoken(found)[-1] == ("assistant", "end")
    assert 2 <= len(found.messages) <= 3


def test_i04_cycles_dangling_parents_and_long_chains_end() -> None:
    """I04: bounded, iterative.

    Breaks when: ``_path`` does not remember where it was, or recurses.
    """
    cycle = one([tree(node("a", "b"), node("b", "a", "assistant"), current="b")])
    assert cycle.left_out[chatgpt.CYCLE] == 1
    assert len(cycle.messages) == 2
    assert len(one([tree(node("a", "a"))]).messages) == 1
    assert len(one([tree(node("b", "gone"))]).messages) == 1
    assert len(one([tree(node("a", None), node("b", None, text="two"))]).messages) == 1
    chain = [node(str(n), str(n - 1) if n else None) for n in range(100_000)]
    assert len(one([tree(*chain)]).messages) == 100_000


def test_i05_other_branches_are_counted() -> None:
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
def test_i06_times_that_are_none_are_left_out(time: str) -> None:
    """I06: the order is the tree's, not the times'.

    Breaks when: ``time`` lets an error out, or NaN is refused with its whole file.
    """
    text = json.dumps([tree(node("a", None, create_time="HERE"), node("b", "a", "assistant"))])
    found = one(text.replace('"HERE"', time).encode())
    assert found.messages[0].created_at is None
    assert len(found.messages) == 2


def test_i06_numbers_as_text_are_times() -> None:
    found = one([tree(node("a", None, create_time="1700000000"))])
    assert found.messages[0].created_at is not None
    assert found.messages[0].created_at.year == 2023


def test_i07_what_cannot_be_stored_is_replaced_and_counted() -> None:
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


def test_i08_a_bomb_is_refused_by_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """I08: neither what an archive says of itself nor what is in it makes us read more.

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


def test_i08_names_in_an_archive_lead_nowhere() -> None:
    """I08: nothing is unpacked, so a path is a name and a nested archive is a file."""
    names = ["../../conversations.json", "/etc/conversations.json", "C:\\x/conversations.json"]
    for name in names:
        assert len(read(zipped([(name, [CHAT])]))) == 1
    nested = zipped([("conversations.json", [CHAT])])
    with pytest.raises(ImportInvalid, match="unsupported layout"):
        read(zipped([("inner.zip", nested)]))


def test_i08_broken_and_encrypted_archives_are_refused() -> None:
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
