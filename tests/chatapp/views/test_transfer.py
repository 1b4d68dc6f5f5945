"""Export and import, from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from django.utils import timezone

from chatapp.models import Conversation, Message
from chatapp.text import without_hidden
from chatapp.transfer.openai_messages import HIDDEN_LEFT_OUT
from tests.chatapp.transfer.test_files import CHAT, claude_chat, node, said, tree, zipped
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

HOSTILE = "<img src=x onerror=alert(1)> \u202e ``` </script>"


async def body(answer: Any) -> str:
    return b"".join([piece async for piece in answer.streaming_content]).decode()


def upload(value: Any, name: str = "file.json") -> dict[str, SimpleUploadedFile]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return {"file": SimpleUploadedFile(name, data)}


def without(one: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in names}


async def add(*messages: Message) -> None:
    """Append messages to the only conversation that there is."""
    row = await Conversation.objects.aget()
    for seq, message in enumerate(messages, start=row.next_seq):
        message.conversation, message.seq, message.created_at = row, seq, timezone.now()
    await Message.objects.abulk_create(messages)
    await Conversation.objects.aupdate(next_seq=row.next_seq + len(messages))


async def test_i12_an_export_holds_every_message_unchanged(client: AsyncClient, code: str) -> None:
    """I12: superseded ones included, whatever is in them.

    Breaks when: ``export_messages`` leaves some out, or a batch ends the file early.
    """
    await send(client, code, HOSTILE)
    await settle()
    await client.post(f"/c/{code}/regenerate/", headers=JSON)
    await settle()
    await add(*(Message(role="user", text=f"number {number}") for number in range(450)))
    answer = await client.get(f"/c/{code}/export/", {"format": "json"}, headers=JSON)
    file = json.loads(await body(answer))
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    stored = [one async for one in Message.objects.order_by("seq")]
    assert [one["seq"] for one in file["messages"]] == list(range(1, len(stored) + 1))
    assert [one["text"] for one in file["messages"]] == [one.text for one in stored]
    assert sum(one["superseded"] for one in file["messages"]) == 1


async def test_an_export_can_be_imported_and_exported_again(
    client: AsyncClient, code: str, bob: User
) -> None:
    """I12, I30: what comes back is what went out, and coming back twice changes nothing.

    N07: but for what nobody sees, since anybody may have written a file.

    Breaks when: ``native.read`` or ``store_import`` forgets a field.
    """
    await send(client, code, HOSTILE)
    await settle()
    await client.post(f"/c/{code}/regenerate/", headers=JSON)
    await settle()
    await client.post(f"/c/{code}/messages/1/pin/", headers=JSON)
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    await add(
        Message(role="assistant", reasoning="Let me see.", tool_calls=[call]),
        Message(role="tool", text="x = 5", tool_call_id="c1", tool_name="look"),
        Message(role="assistant", text="It is", status="partial"),
    )
    first = await body(await client.get(f"/c/{code}/export/", {"format": "json"}))
    other = await signed_in(bob)
    report = (await other.post("/import/", upload(first.encode()), headers=JSON)).json()
    assert (report["imported"], report["messages"], report["refused"]) == (1, 6, [])
    copy = report["conversations"][0]["code"]
    second = await body(await other.get(f"/c/{copy}/export/", {"format": "json"}))
    ignored = ("turn", "turn_status", "model", "token_count", "added_context", "masked")
    before, after = (
        [without(one, *ignored) for one in json.loads(file)["messages"]] for file in (first, second)
    )
    # What is the same in all messages would be the same in a copy that forgets it.
    assert [name for name in before[0] if len({str(one[name]) for one in before}) == 1] == []
    for one in before:
        one["text"] = without_hidden(one["text"])
    assert before == after
    again = (await other.post("/import/", upload(first.encode()), headers=JSON)).json()
    assert (again["imported"], again["already"]) == (0, 1)
    assert again["conversations"][0]["code"] == copy


async def test_pins_of_a_file_have_the_limit_of_all_pins(client: AsyncClient, code: str) -> None:
    """As many are taken as a person could pin, and the others are counted.

    Breaks when: ``_with_pins_within`` takes a pin that the command would refuse.
    """
    await add(
        Message(role="user", text="word " * 300, pinned_at=timezone.now()),
        Message(role="assistant", text="word " * 500, pinned_at=timezone.now()),
        Message(role="tool", text="found", tool_call_id="c", pinned_at=timezone.now()),
        Message(role="user", text="word " * 100, pinned_at=timezone.now()),
        Message(role="assistant", text="word " * 200, pinned_at=timezone.now()),
    )
    file = (await body(await client.get(f"/c/{code}/export/", {"format": "json"}))).encode()
    await Conversation.objects.all().adelete()
    report = (await client.post("/import/", upload(file), headers=JSON)).json()
    assert report["left_out"] == {"pin, for which there is no room": 3}
    copy = report["conversations"][0]["code"]
    page = (await client.get(f"/c/{copy}/", headers=JSON)).json()
    assert [one["seq"] for one in page["messages"] if one["pinned"]] == [1, 4]
    refused = await client.post(f"/c/{copy}/messages/5/pin/", headers=JSON)
    assert (refused.status_code, refused.json()["error"]["fields"]["most"]) == (422, 558)
    again = (await client.post("/import/", upload(file), headers=JSON)).json()
    assert (again["imported"], again["already"]) == (0, 1)


async def test_markdown_is_saved_never_shown(client: AsyncClient, code: str) -> None:
    """X01, X08: the file's name is one on every system, whatever the title says."""
    await client.post(f"/c/{code}/settings/", {"title": '../a"b\u202e<x>/\n'}, headers=JSON)
    await send(client, code, "A question")
    await settle()
    answer = await client.get(f"/c/{code}/export/")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    name = answer["Content-Disposition"]
    assert name.startswith("attachment; filename=")
    assert not set('<>/\\\n"') & set(name.split("=", 1)[1].strip('"'))
    text = await body(answer)
    assert text.startswith("# ")
    assert "\n## You, " in text
    assert "A question" in text


async def test_an_export_of_another_form_is_refused(client: AsyncClient, code: str) -> None:
    answer = await client.get(f"/c/{code}/export/", {"format": "pdf"}, headers=JSON)
    assert answer.status_code == 422


async def test_a_file_of_several_conversations(client: AsyncClient, upstream: FakeUpstream) -> None:
    """I11, I30: truthful counts, and nobody is asked for anything."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "https://evil.example/x"}
    hostile = tree(node("a", None, text=HOSTILE), node("b", "a", "assistant", picture))
    data = zipped(
        [("conversations.json", [CHAT, hostile, {"mapping": {}}, claude_chat(said("q"))])]
    )
    answer = await client.post("/import/", upload(data, "export.zip"), headers=JSON)
    assert answer.status_code == 201
    report = answer.json()
    assert (report["imported"], report["already"], report["messages"]) == (3, 0, 5)
    assert [one["number"] for one in report["refused"]] == [3]
    assert report["left_out"] == {"part of type image_asset_pointer": 1, HIDDEN_LEFT_OUT: 1}
    assert await Message.objects.acount() == 5
    again = (await client.post("/import/", upload(data), headers=JSON)).json()
    assert (again["imported"], again["already"], again["messages"]) == (0, 3, 0)
    assert upstream.chats == []
    for format_ in (HTMX, {}):
        page = (await client.post("/import/", upload(data), headers=format_)).content.decode()
        assert "3 were here already" in page
        assert "<img" not in page.replace('<img class="', "")


async def test_what_was_deleted_stays_deleted(client: AsyncClient) -> None:
    """I31: and the report says so."""
    code = (await client.post("/import/", upload([CHAT]), headers=JSON)).json()["conversations"][0]
    await client.post(f"/c/{code['code']}/delete/", headers=JSON)
    again = (await client.post("/import/", upload([CHAT]), headers=JSON)).json()
    assert again["conversations"][0]["deleted"]
    assert (await client.get(f"/c/{code['code']}/", headers=JSON)).status_code == 404


@pytest.mark.parametrize("fields", [{}, {"file": ""}, {"file": "text"}])
async def test_without_a_file(client: AsyncClient, fields: dict[str, str]) -> None:
    answer = await client.post("/import/", fields, headers=JSON)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["fields"]) == {"file"}


async def test_a_file_that_is_none_of_these(client: AsyncClient) -> None:
    for data in (b"", b"hello", b"PK\x03\x04", b"[{}]"):
        answer = await client.post("/import/", upload(data), headers=JSON)
        assert answer.status_code == 422
        assert answer.json()["error"]["code"] in {"import_invalid", "invalid_input"}
        # A person has the form again, which says what can be imported.
        answer = await client.post("/import/", upload(data))
        page = answer.content.decode()
        assert answer.status_code == 422
        assert 'role="alert"' in page
        assert 'type="file"' in page
        assert "of ChatGPT or of Claude" in page
    assert not await Conversation.objects.aexists()


async def test_i10_a_file_over_the_limit(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I10: by what came, not by what was announced.

    Breaks when: ``import_`` does not look at the file's size.
    """
    monkeypatch.setattr("chatapp.views.transfer.MAX_BYTES", 100)
    answer = await client.post("/import/", upload(b"[" + b" " * 200 + b"]"), headers=JSON)
    assert answer.status_code == 413
    assert not await Conversation.objects.aexists()


async def test_i09_an_import_that_is_cut_short_leaves_whole_conversations(
    client: AsyncClient, alice: User
) -> None:
    """I09: what stands before the break is here, whole; the break is in the report."""
    text = json.dumps([CHAT, tree(node("x", None, text="second"))])
    report = (await client.post("/import/", upload(text[:-5].encode()), headers=JSON)).json()
    assert report["imported"] == 1
    assert "cut off" in report["refused"][0]["message"]
    whole = (await client.post("/import/", upload(text.encode()), headers=JSON)).json()
    assert (whole["imported"], whole["already"]) == (1, 1)
    every = [row async for row in Conversation.objects.all()]
    assert sorted([await row.messages.acount() for row in every]) == [1, 2]


async def test_a_list_of_messages_is_one_conversation(client: AsyncClient, tmp_path: Path) -> None:
    listed = [{"role": "system", "content": "Obey."}, {"role": "user", "content": "hi"}]
    for value in (listed, {"messages": listed}):
        report = (await client.post("/import/", upload(value), headers=JSON)).json()
        assert len(report["conversations"]) == 1
    row = await Conversation.objects.aget()
    assert row.system_prompt == ""
    assert row.title == "hi"


async def test_x01_the_calls_of_an_imported_conversation_are_shown_and_inert(
    client: AsyncClient,
) -> None:
    """X01: a tool's name is bounded by the import, its arguments and its result are anything.

    Breaks when: ``partials/article.html`` looks for another form of a call than is stored, or
    ``partials/call.html`` marks the arguments as safe.
    """
    function = {"name": "look_up", "arguments": json.dumps({"q": HOSTILE})}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": HOSTILE},
        {"role": "assistant", "content": "There."},
    ]
    assert (await client.post("/import/", upload(messages), headers=JSON)).status_code == 201
    row = await Conversation.objects.aget()
    page = await client.get(f"/c/{row.code}/")
    assert page.status_code == 200
    text = page.content.decode()
    assert "Called look_up" in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") == 2
    assert "<img" not in text
