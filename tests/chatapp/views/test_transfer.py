"""Export and import, from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from django.utils import timezone

from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Conversation, Message
from chatapp.text.safety import without_hidden
from chatapp.transfer import claude
from chatapp.transfer.openai_messages import HIDDEN_LEFT_OUT
from compression import store
from compression.types import Entry, Ledger, Section, Trigger
from tests.chatapp.transfer.test_files import CHAT, claude_chat, node, said, tree, zipped
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

HOSTILE = "<img src=x onerror=alert(1)> \u202e ``` </script>"


async def body(answer: Any) -> str:
    return b"".join([piece async for piece in answer.streaming_content]).decode()


def upload(value: Any, name: str = "file.json") -> dict[str, SimpleUploadedFile]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return {"file": SimpleUploadedFile(name, data)}


def waiting_files() -> list[Path]:
    """The files of imports that are kept until their job ends."""
    return list(Path(settings.IMPORT_DIR).glob("*.import"))


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
    function = {"name": "look", "arguments": "{}", "strict": True}
    call = {"id": "c1", "type": "function", "function": function, "signature": "c2ln"}
    await add(
        Message(role="assistant", reasoning="Let me see.", tool_calls=[call]),
        Message(
            role="tool",
            text="x = 5",
            tool_call_id="c1",
            tool_name="look",
            seconds=0.25,
            masked_at=timezone.now(),
            token_count=9,
        ),
        Message(role="assistant", text="It is", status="partial", added_context="Wind down."),
    )
    first = await body(await client.get(f"/c/{code}/export/", {"format": "json"}))
    other = await signed_in(bob)
    report = (await other.post("/import/", upload(first.encode()), headers=JSON)).json()
    assert (report["imported"], report["messages"], report["refused"]) == (1, 6, [])
    copy = report["conversations"][0]["code"]
    second = await body(await other.get(f"/c/{copy}/export/", {"format": "json"}))
    ignored = ("turn", "token_count")
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


async def test_an_export_brings_back_the_summary_and_the_settings(
    client: AsyncClient, code: str, alice: User, bob: User
) -> None:
    """I12, I13: versions, ledger, boundary, instructions; Undo and Redo go by the same sources.

    Breaks when: the export leaves out what a version was made of, ``own_state.read`` forgets a
    field of it, or ``bring_versions`` gives a person's version to nobody.
    """
    for text in ("Never use tabs.", "And now?", "Go on.", "More."):
        await send(client, code, text)
        await settle()
    await client.post(
        f"/c/{code}/settings/",
        {"system_prompt": "Be brief.", "threshold": "0.7", "keep_turns": "3", "title": "Mine"},
        headers=JSON,
    )
    await sync_to_async(summarised)(code)
    fields = {"text": "## Constraints\n- Never use tabs. [1]\n- My own line", "version": 1}
    edited = await client.post(f"/c/{code}/summary/edit/", fields, headers=JSON)
    assert edited.status_code == 200, edited.content
    first = await body(await client.get(f"/c/{code}/export/", {"format": "json"}))
    other = await signed_in(bob)
    report = (await other.post("/import/", upload(first.encode()), headers=JSON)).json()
    (made,) = report["conversations"]
    assert (made["summaries"], made["instructions"], report["left_out"]) == (2, True, {})
    copy = made["code"]
    second = json.loads(await body(await other.get(f"/c/{copy}/export/", {"format": "json"})))
    before = json.loads(first)
    assert second["summaries"] == before["summaries"]
    assert [one["by_person"] for one in second["summaries"]] == [True, False]
    assert without(second["conversation"], "code", "updated_at") == without(
        before["conversation"], "code", "updated_at"
    )
    row = await Conversation.objects.aget(code=copy)
    newest = await row.summaries.aget(version=2)
    assert newest.author_id == bob.pk
    assert [one["origin"] for one in newest.ledger if one["text"] == "My own line"] == ["person"]
    for command, boundary in (("undo", 4), ("undo", 0), ("redo", 4)):
        done = await other.post(f"/c/{copy}/summary/{command}/", headers=JSON)
        assert done.status_code == 200, done.content
        assert (await Conversation.objects.aget(code=copy)).compressed_through == boundary


@pytest.mark.parametrize("edited", [False, True])
async def test_a_summary_of_what_lost_hidden_characters_can_be_put_back(
    client: AsyncClient, code: str, edited: bool
) -> None:
    """I14, N07: as long as its source stands in the file; if not, it fits nothing here either.

    Breaks when: ``Sources`` does not tell a version's fingerprint anew, or does so whatever the
    file's messages say; or the texts of a summary keep what nobody sees.
    """
    for text in ("Never use\u200b tabs.", "And now?\U000e0041"):
        await send(client, code, text)
        await settle()
    await Message.objects.filter(seq=2).aupdate(text="One\r\ntwo")
    await sync_to_async(summarised)(code)
    file = json.loads(await body(await client.get(f"/c/{code}/export/", {"format": "json"})))
    if edited:
        file["messages"][1]["text"] = "Something else"
    version = file["summaries"][0]
    version["text"] += "\U000e0041"
    version["ledger"][0]["text"] += "\u202e"
    report = (await client.post("/import/", upload(file), headers=JSON)).json()
    assert set(report["left_out"]) == {HIDDEN_LEFT_OUT}
    copy = report["conversations"][0]["code"]
    row = await Conversation.objects.aget(code=copy)
    stored = await row.summaries.aget(version=1)
    assert stored.text == "## Constraints\n- Never use tabs. [1]" == row.compressed_context
    assert [one["text"] for one in stored.ledger] == ["Never use tabs."]
    texts = [one.text async for one in row.messages.order_by("seq")]
    assert texts[0] == "Never use tabs."
    assert texts[1] == ("Something else" if edited else "One\r\ntwo")
    undone = await client.post(f"/c/{copy}/summary/undo/", headers=JSON)
    assert undone.status_code == 200
    again = await client.post(f"/c/{copy}/summary/redo/", headers=JSON)
    assert again.status_code == (409 if edited else 200), again.content


def summarised(code: str) -> None:
    """Give the conversation a first version, of its first four messages."""
    row = Conversation.objects.get(code=code)
    items = StoredTranscript().items(row.pk, after_seq=0, through_seq=4)
    entry = Entry(id=1, section=Section.CONSTRAINTS, text="Never use tabs.", sources=(1,))
    draft = store.FitDraft(
        trigger=Trigger.MANUAL,
        text="## Constraints\n- Never use tabs. [1]",
        ledger=Ledger(entries=(entry,)),
        first_seq=1,
        through_seq=4,
        message_count=4,
        fingerprint=store.fingerprint(items),
        source_tokens=40,
        summary_tokens=9,
        usage_before=0.5,
        usage_after=0.25,
        model="m",
        prompt_version="1",
        cost=0.001,
        duration=1.5,
        audit={"salient": 3},
    )
    token = store.claim(row.pk, trigger=Trigger.MANUAL, locks_input=False)
    assert token is not None
    store.apply(row.pk, token, store.read_base(row.pk), draft, StoredTranscript())


@pytest.mark.parametrize(
    "change",
    [
        {"messages": lambda found: found[1:]},
        {"messages": lambda found: [{**found[0], "role": "root"}, *found[1:]]},
        {"summaries": lambda found: [{**found[0], "through_seq": 99}]},
        {"summaries": lambda found: [{**found[0], "ledger": [{"text": 5}]}]},
        {"summaries": lambda found: [{**found[0], "version": -1}]},
        {"summaries": lambda found: [5]},
        {"conversation": lambda found: {**found, "compressed_through": 3}},
        {"conversation": lambda found: {**found, "summary_version": 7}},
    ],
)
async def test_a_summary_that_stands_for_what_is_not_there_is_left_out(
    client: AsyncClient, code: str, change: dict[str, Any]
) -> None:
    """I8: and counted; the messages are imported all the same.

    Breaks when: ``own_state`` takes a file's word for what its summary stands for.
    """
    for text in ("One", "Two", "Three"):
        await send(client, code, text)
        await settle()
    await sync_to_async(summarised)(code)
    file = json.loads(await body(await client.get(f"/c/{code}/export/", {"format": "json"})))
    for name, changed in change.items():
        file[name] = changed(file[name])
    report = (await client.post("/import/", upload(file), headers=JSON)).json()
    assert (report["imported"], report["left_out"].get("summary version")) == (1, 1)
    row = await Conversation.objects.aget(code=report["conversations"][0]["code"])
    assert (row.compressed_through, row.compressed_context) == (0, "")


async def test_imported_conversations_stand_at_their_own_dates(
    client: AsyncClient, code: str
) -> None:
    """Breaks when: ``finish_import`` leaves the time of the import in ``updated_at``."""
    old = {**CHAT, "id": "1", "create_time": 1_600_000_000, "update_time": 1_600_086_400}
    dated = tree(node("a", None, create_time=1_500_000_000), node("b", "a", "assistant"))
    future = claude_chat(said("q"), created_at="2190-01-01T00:00:00Z")
    await client.post("/import/", upload([old, dated, future]), headers=JSON)
    rows = [row async for row in Conversation.objects.exclude(code=code).order_by("pk")]
    assert [(row.created_at.year, row.updated_at.year) for row in rows[:2]] == [
        (2020, 2020),
        (2017, 2017),
    ]
    assert rows[0].updated_at > rows[0].created_at
    assert rows[2].updated_at <= timezone.now()
    listed = (await client.get("/", headers=JSON)).json()["conversations"]
    assert [one["updated_at"][:4] for one in listed][-2:] == ["2020", "2017"]


async def test_equal_conversations_are_two_and_a_grown_one_says_so(client: AsyncClient) -> None:
    """I30: truthful counts.

    Breaks when: conversations are known by their words alone, or by their id alone.
    """
    twins = [claude_chat(said("q"), uuid="1"), claude_chat(said("q"), uuid="2")]
    report = (await client.post("/import/", upload(twins), headers=JSON)).json()
    assert (report["imported"], report["already"]) == (2, 0)
    grown = claude_chat(said("q"), said("a", "assistant"), uuid="1")
    again = (await client.post("/import/", upload([*twins, grown]), headers=JSON)).json()
    assert (again["imported"], again["already"]) == (1, 2)
    first, _, third = again["conversations"]
    assert (third["created"], third["earlier"]) == (True, first["code"])


async def test_what_an_older_release_imported_is_known_still(client: AsyncClient) -> None:
    """I30: one of two with the same words is the one that is here; the other is new.

    Breaks when: ``find_imported`` does not look for the content, or takes it for both.
    """
    twins = [claude_chat(said("q"), uuid="1"), claude_chat(said("q"), uuid="2")]
    (content,) = {one.identity.content for one in (claude.read(twin) for twin in twins)}
    await client.post("/import/", upload(twins[:1]), headers=JSON)
    await Conversation.objects.aupdate(source_fingerprint=content, source_key="")
    for imported, already in ((1, 1), (0, 2)):
        report = (await client.post("/import/", upload(twins), headers=JSON)).json()
        assert (report["imported"], report["already"]) == (imported, already)


async def test_f10_the_body_may_be_the_file(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F10: JSON or ZIP without a form around it, under the same limit.

    Breaks when: ``_received`` reads the whole body before it looks at its size.
    """
    for data, kind in (
        (json.dumps([CHAT]), "application/json"),
        (zipped([("conversations.json", [CHAT, claude_chat(said("q"))])]), "application/zip"),
    ):
        answer = await client.post(
            "/import/?name=mine.json", data=data, content_type=kind, headers=JSON
        )
        assert (answer.status_code, answer.json()["imported"]) == (201, 1)
        assert answer.json()["file_name"] == "mine.json"
    monkeypatch.setattr("chatapp.views.transfer.MAX_BYTES", 100)
    refused = await client.post(
        "/import/", data="[" + " " * 200, content_type="application/json", headers=JSON
    )
    assert refused.status_code == 413
    assert waiting_files() == []


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
    """F11, I30: truthful counts, and nobody is asked for anything."""
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


async def test_f10_a_file_over_the_limit(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F10: by what came, not by what was announced.

    Breaks when: ``import_`` does not look at the file's size.
    """
    monkeypatch.setattr("chatapp.views.transfer.MAX_BYTES", 100)
    answer = await client.post("/import/", upload(b"[" + b" " * 200 + b"]"), headers=JSON)
    assert answer.status_code == 413
    assert not await Conversation.objects.aexists()


async def test_f09_an_import_that_is_cut_short_leaves_whole_conversations(
    client: AsyncClient, alice: User
) -> None:
    """F09: what stands before the break is here, whole; the break is in the report."""
    text = json.dumps([CHAT, tree(node("x", None, text="second"))])
    report = (await client.post("/import/", upload(text[:-5].encode()), headers=JSON)).json()
    assert report["imported"] == 1
    said = report["refused"][0]["message"]
    assert "cut off" in said
    assert "Nothing was imported" not in said
    assert said.endswith("What stands before that was imported.")
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
