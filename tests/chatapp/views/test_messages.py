"""Commands on messages and turns, as a program, htmx and a plain form call them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient
from django.utils.html import escape

from chatapp.actions import conversations
from chatapp.models import Conversation, Message, Turn
from compression import store
from compression.types import Trigger
from tests.fake_scripts import Finish, Script, Text, Wait
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, new_conversation, send, settle

pytestmark = pytest.mark.django_db(transaction=True)

ERROR_FIELDS = {"code", "message", "retryable", "retry_after", "fields", "partial_kept"}


def held(gate: asyncio.Event) -> Script:
    """A reply that begins, and goes on when the test opens the gate."""
    return Script(steps=(Text("I begin"), Wait(gate), Text(" and I end."), Finish("stop")))


def form(text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"text": text, "client_msg_id": str(uuid4()), **more}


def error_of(answer: Any) -> dict[str, Any]:
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == ERROR_FIELDS
    return dict(body["error"])


async def test_a_message_is_read_as_it_was_written(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: the message of another number is answered."""
    upstream.enqueue(Script(steps=(Text("# *Hi*\n"), Finish("stop"))))
    await send(client, code, "Hello")
    await settle()
    reply = (await client.get(f"/c/{code}/messages/2/")).json()
    assert (reply["seq"], reply["role"], reply["text"]) == (2, "assistant", "# *Hi*\n")
    missing = await client.get(f"/c/{code}/messages/3/", headers=JSON)
    assert missing.status_code == 404
    assert error_of(missing)["code"] == "not_found"


async def test_a_message_is_accepted_with_its_numbers(client: AsyncClient, code: str) -> None:
    answer = await client.post(f"/c/{code}/messages/", form(), headers=JSON)
    assert answer.status_code == 202
    turn = await Turn.objects.aget()
    assert answer.json() == {"turn": turn.pk, "message_seq": 1, "reply_seq": 2}
    await settle()
    told = (await client.get(f"/c/{code}/turns/{turn.pk}/", headers=JSON)).json()
    assert told["status"] == "complete"
    assert told["error"] is None
    assert told["usage"]["prompt_tokens"] > 0
    assert told["manifest"]["tokens"]


async def test_a_message_as_json(client: AsyncClient, code: str) -> None:
    answer = await client.post(
        f"/c/{code}/messages/", form("Grüße 🙂"), headers=JSON, content_type="application/json"
    )
    assert answer.status_code == 202
    assert (await Message.objects.aget(seq=1)).text == "Grüße 🙂"


async def test_a_message_from_htmx_and_from_a_plain_form(client: AsyncClient, code: str) -> None:
    fragment = await client.post(f"/c/{code}/messages/", form(), headers=HTMX)
    assert fragment.status_code == 202
    assert fragment["Content-Type"].startswith("text/html")
    assert b"<html" not in fragment.content
    await settle()
    plain = await client.post(f"/c/{code}/messages/", form())
    assert (plain.status_code, plain["Location"]) == (302, f"/c/{code}/")
    assert await Message.objects.filter(role="user").acount() == 2


@pytest.mark.parametrize(
    ("path", "text", "status"),
    [
        ("messages/", "word " * 20_000, 413),
        ("messages/", "<b>words</b> and \x00", 422),
        ("stop/", "half a thought", 409),
        ("compact/", "half a thought", 422),
    ],
)
async def test_a_plain_form_that_is_refused_gives_its_text_back(
    client: AsyncClient, code: str, path: str, text: str, status: int
) -> None:
    answer = await client.post(f"/c/{code}/{path}", {**form(), "text": text})
    assert answer.status_code == status
    shown = answer.content.decode()
    assert f'<pre tabindex="0">{escape(text.split(chr(0))[0])}' in shown
    assert f'<a href="/c/{code}/">Go back</a>' in shown
    for headers in (JSON, HTMX):
        told = await client.post(f"/c/{code}/{path}", {**form(), "text": text}, headers=headers)
        assert told.status_code == status
        assert "Your text" not in told.content.decode()


async def test_stop_and_compact_of_a_plain_form_keep_what_is_being_written(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Without a script the page is loaded again; with one it stays and keeps the draft itself.

    Breaks when: the draft is not kept, or is taken from a page with a script, or emptied by it.
    """
    gate = asyncio.Event()
    upstream.enqueue(held(gate))
    await client.post(f"/c/{code}/messages/", form(), headers=JSON)
    answer = await client.post(f"/c/{code}/stop/", {"text": "half a\r\nthought"})
    assert (answer.status_code, answer["Location"]) == (302, f"/c/{code}/")
    gate.set()
    await settle()
    assert (await Conversation.objects.aget(code=code)).draft == "half a\nthought"
    for number in range(12):
        await client.post(f"/c/{code}/messages/", form(f"{number} " + "word " * 200), headers=JSON)
        await settle()
    assert (await Conversation.objects.aget(code=code)).draft == ""
    answer = await client.post(f"/c/{code}/compact/", {"text": "another"})
    assert (answer.status_code, answer["Location"]) == (302, f"/c/{code}/")
    await settle()
    assert (await Conversation.objects.aget(code=code)).draft == "another"
    for fields, headers, kept in (
        ({"text": "a third"}, HTMX, "written by a script"),
        ({}, {}, "written by a script"),
        ({"text": ""}, {}, ""),
    ):
        upstream.enqueue(held(asyncio.Event()))
        await client.post(f"/c/{code}/messages/", form(), headers=JSON)
        await Conversation.objects.filter(code=code).aupdate(draft="written by a script")
        answer = await client.post(f"/c/{code}/stop/", fields, headers=headers)
        assert answer.status_code in {202, 302}
        await settle()
        assert (await Conversation.objects.aget(code=code)).draft == kept


@pytest.mark.parametrize(
    ("path", "behind"),
    [
        ("/c/", "/%3Fnew"),
        ("/c/{code}/messages/", "/c/{code}/"),
        ("/c/{code}/summary/edit/", "/c/{code}/"),
        ("/settings/", "/settings/"),
    ],
)
async def test_who_signs_in_again_comes_to_the_page_that_a_form_was_sent_from(
    code: str, path: str, behind: str
) -> None:
    """Breaks when: ``next`` is the address of a command, which cannot be loaded."""
    answer = await AsyncClient().post(path.format(code=code), form())
    assert answer["Location"] == "/accounts/login/?next=" + behind.format(code=code)


async def test_i2_a_repeated_send_starts_nothing(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """I2, D02: the acknowledgement was lost and the client sends again, even after a regeneration.

    Breaks when: ``accept`` does not ask ``_repeated``, or ``_repeated`` takes the message's latest
    turn.
    """
    message = form()
    first = await client.post(f"/c/{code}/messages/", message, headers=JSON)
    again = await client.post(f"/c/{code}/messages/", message, headers=JSON)
    assert (again.status_code, again.json()) == (202, first.json())
    await settle()
    await client.post(f"/c/{code}/regenerate/", headers=JSON)
    await settle()
    late = await client.post(f"/c/{code}/messages/", message, headers=JSON)
    assert late.json() == first.json()
    await settle()
    assert len(upstream.chats) == 2
    assert await Message.objects.filter(role="user").acount() == 1


async def test_while_a_reply_is_written_a_message_waits(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    gate = asyncio.Event()
    upstream.enqueue(held(gate))
    await send(client, code)
    waiting = form("What waits")
    for _ in range(2):  # the second is a repetition
        queued = await client.post(f"/c/{code}/messages/", waiting, headers=JSON)
        assert (queued.status_code, queued.json()) == (202, {"queued": True})
    another = await client.post(f"/c/{code}/messages/", form("One more"), headers=JSON)
    assert another.status_code == 409
    assert error_of(another)["code"] == "turn_open"
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    assert page["conversation"]["queued"] is True
    assert page["conversation"]["draft"] == "What waits"

    edited = await client.post(
        f"/c/{code}/queue/", {"action": "edit", "text": "It waits better"}, headers=JSON
    )
    assert edited.status_code == 200
    gate.set()
    await settle()
    await settle()
    texts = [one.text async for one in Message.objects.filter(role="user").order_by("seq")]
    assert texts == ["Hello", "It waits better"]


async def test_what_waits_cannot_become_too_large(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """The figures are looked at again when a waiting message is changed, as when it was sent.

    Breaks when: ``edit_queued`` does not call ``check_size``.
    """
    gate = asyncio.Event()
    upstream.enqueue(held(gate))
    await send(client, code)
    await client.post(f"/c/{code}/messages/", form("What waits"), headers=JSON)
    giant = {"action": "edit", "text": "word " * 20_000}
    refused = await client.post(f"/c/{code}/queue/", giant, headers=JSON)
    assert refused.status_code == 413
    assert error_of(refused)["code"] == "too_large"
    row = await Conversation.objects.aget()
    assert (row.draft, row.send_when_done) == ("What waits", True)
    gate.set()


async def test_what_waits_can_be_removed_and_is_a_draft_again(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    gate = asyncio.Event()
    upstream.enqueue(held(gate))
    await send(client, code)
    await client.post(f"/c/{code}/messages/", form("Not yet"), headers=JSON)
    removed = await client.post(f"/c/{code}/queue/", {"action": "remove"}, headers=JSON)
    assert removed.status_code == 200
    row = await Conversation.objects.aget()
    assert (row.draft, row.send_when_done) == ("Not yet", False)
    for action in ({"action": "remove"}, {"action": "edit", "text": "too late"}):
        late = await client.post(f"/c/{code}/queue/", action, headers=JSON)
        assert late.status_code == 409
        assert error_of(late)["code"] == "nothing_queued"
    wrong = await client.post(f"/c/{code}/queue/", {"action": "explode"}, headers=JSON)
    assert wrong.status_code == 422
    assert "action" in error_of(wrong)["fields"]
    gate.set()


async def test_send_now_stops_the_reply_and_sends(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    upstream.enqueue(held(asyncio.Event()))
    first = await send(client, code)
    await client.post(f"/c/{code}/messages/", form("Sooner"), headers=JSON)
    answer = await client.post(f"/c/{code}/queue/", {"action": "send_now"}, headers=JSON)
    assert answer.status_code == 200
    await settle()
    await settle()
    stopped = await Turn.objects.aget(pk=first["turn"])
    assert stopped.status == "stopped"
    assert await Message.objects.filter(role="user", text="Sooner").aexists()


async def test_stop_sends_nothing_until_it_is_told_to(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: the action does not hold what is queued, or ``send_now`` does not release it."""
    upstream.enqueue(held(asyncio.Event()))
    await send(client, code)
    await client.post(f"/c/{code}/messages/", form("Later"), headers=JSON)
    await client.post(f"/c/{code}/stop/", headers=JSON)
    await settle()
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    conversation = page["conversation"]
    assert (conversation["held"], conversation["queued"]) == (True, False)
    assert conversation["draft"] == "Later"
    assert page["turn"] is None
    answer = await client.post(f"/c/{code}/queue/", {"action": "send_now"}, headers=JSON)
    assert answer.status_code == 200
    await settle()
    assert await Message.objects.filter(role="user", text="Later").aexists()
    assert not (await Conversation.objects.aget()).held


async def test_stop_ends_the_turn_once(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    upstream.enqueue(held(asyncio.Event()))
    begun = await send(client, code)
    await upstream.came(1)
    stopped = await client.post(f"/c/{code}/stop/", headers=JSON)
    assert stopped.status_code == 202
    await settle()
    assert (await Turn.objects.aget(pk=begun["turn"])).status == "stopped"
    again = await client.post(f"/c/{code}/stop/", headers=JSON)
    assert again.status_code == 409
    assert error_of(again)["code"] == "nothing_to_stop"


async def test_i31_deleting_ends_the_reply_and_nothing_comes_back(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: a conversation is deleted without stopping its turn."""
    upstream.enqueue(held(asyncio.Event()))
    begun = await send(client, code)
    await upstream.came(1)
    assert (await client.post(f"/c/{code}/delete/", headers=JSON)).status_code == 200
    await settle()
    assert (await Turn.objects.aget(pk=begun["turn"])).status == "stopped"
    assert (await client.get(f"/c/{code}/", headers=JSON)).status_code == 404
    assert (await client.get("/", headers=JSON)).json()["conversations"] == []


async def test_i31_no_summary_begins_when_a_deleted_conversations_reply_ends(
    client: AsyncClient, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stopped reply's end begins one, as in a long conversation, before anything else is done.

    Breaks when: compressions are cancelled before the conversation is marked as deleted.
    """
    row = await Conversation.objects.aget(code=code)

    async def ended(user_id: int, code: str) -> None:
        await store.aclaim(row.pk, trigger=Trigger.BACKGROUND, locks_input=False)

    monkeypatch.setattr(conversations, "stop", ended)
    assert (await client.post(f"/c/{code}/delete/", headers=JSON)).status_code == 200
    assert not (await store.aread_state(row.pk)).running


async def test_regenerate_edit_and_continue(client: AsyncClient, code: str) -> None:
    await send(client, code)
    await settle()
    regenerated = await client.post(f"/c/{code}/regenerate/", {"seq": 2}, headers=JSON)
    assert regenerated.status_code == 202
    assert regenerated.json()["message_seq"] == 1
    assert regenerated.json()["reply_seq"] == 3
    await settle()
    edited = await client.post(f"/c/{code}/messages/1/edit/", {"text": "Hi"}, headers=JSON)
    assert edited.status_code == 202
    assert edited.json()["message_seq"] == 4
    await settle()
    continued = await client.post(f"/c/{code}/continue/", headers=JSON)
    assert continued.status_code == 202
    assert continued.json()["message_seq"] == 6
    await settle()
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    live = [one["seq"] for one in page["messages"] if not one["superseded"]]
    assert live == [4, 5, 6, 7]


async def test_a_reply_without_text_is_answered_again_and_not_continued(
    client: AsyncClient, code: str
) -> None:
    """By hand too: the model would be told to go on with nothing.

    Breaks when: ``continue_reply`` does not look at what there is to continue.
    """
    empty = await client.post(f"/c/{code}/continue/", headers=JSON)
    assert (empty.status_code, empty.json()["error"]["code"]) == (409, "nothing_to_continue")
    await send(client, code)
    await settle()
    await Message.objects.filter(role="assistant").aupdate(text=" ", status="partial")
    refused = await client.post(f"/c/{code}/continue/", headers=JSON)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "nothing_to_continue")
    assert await Message.objects.acount() == 2
    assert (await client.post(f"/c/{code}/regenerate/", headers=JSON)).status_code == 202
    await settle()


async def test_what_was_replaced_stays_readable(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: the page of it leaves out a text, or takes one for HTML."""
    upstream.enqueue(Script(steps=(Text("An *old* <b>reply</b>."), Finish("stop"))))
    await send(client, code, "An <i>old</i> question")
    await settle()
    await client.post(f"/c/{code}/messages/1/edit/", {"text": "Hi"}, headers=JSON)
    await settle()
    feed = (await client.get(f"/c/{code}/")).content.decode()
    assert 'href="messages/3/replaced/"' in feed
    assert "messages/4/replaced/" not in feed
    found = (await client.get(f"/c/{code}/messages/3/replaced/", headers=JSON)).json()
    assert [one["text"] for one in found["messages"]] == [
        "An <i>old</i> question",
        "An *old* <b>reply</b>.",
    ]
    assert found["has_newer"] is False
    for headers in ({}, HTMX):
        answer = await client.get(f"/c/{code}/messages/3/replaced/", headers=headers)
        html = answer.content.decode()
        assert "An &lt;i&gt;old&lt;/i&gt; question" in html
        assert "An <em>old</em> &lt;b&gt;reply&lt;/b&gt;." in html
        assert ("<html" in html) == (headers == {})
    for seq in ("1", "9", str(2**63)):
        answer = await client.get(f"/c/{code}/messages/{seq}/replaced/", headers=JSON)
        assert answer.status_code == 404, seq
    answer = await client.get(f"/c/{code}/messages/3/replaced/?after=x", headers=JSON)
    assert error_of(answer)["code"] == "invalid_input"


async def test_much_that_was_replaced_is_read_in_parts(client: AsyncClient, code: str) -> None:
    for number in range(26):
        await send(client, code, f"Question {number}.")
        await settle()
    await client.post(f"/c/{code}/messages/1/edit/", {"text": "Hi"}, headers=JSON)
    await settle()
    path = f"/c/{code}/messages/53/replaced/"
    first = (await client.get(path, headers=HTMX)).content.decode()
    assert "Question 24." in first
    assert "Question 25." not in first
    assert f'href="{path}?after=50"' in first
    rest = (await client.get(f"{path}?after=50")).content.decode()
    assert "Question 25." in rest
    assert "Question 24." not in rest
    assert "?after=" not in rest


async def test_a03_a11_only_messages_of_this_conversation_are_changed(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """A03, A11: whatever number is tried, by each command that takes one.

    Breaks when: ``replacing.edit`` takes a message without its conversation, its role, or one that
    is superseded; or ``pin`` or ``branch`` takes another conversation's.
    """
    other = await new_conversation(client)
    for _ in range(3):
        await send(client, other)
        await settle()
    await send(client, code)
    await settle()
    await client.post(f"/c/{code}/messages/1/edit/", {"text": "Hello again"}, headers=JSON)
    await settle()
    before = [one async for one in Message.objects.order_by("pk").values()]
    calls = len(upstream.chats)
    superseded, reply, others = ("1", "2"), "4", "5"
    strange = (
        "0",
        "9",
        str(2**63 - 1),
        str(2**63),
        str(2**70),
        "9" * 5000,
        "-1",
        "1 OR 1",
        "\uff11",
        "x",
    )
    tries = {
        "messages/{}/edit/": (*superseded, reply, others, *strange),
        "messages/{}/pin/": (*superseded, others, *strange),
        "messages/{}/unpin/": (*superseded, others, *strange),
    }
    for path, seqs in tries.items():
        for seq in seqs:
            answer = await client.post(f"/c/{code}/{path.format(seq)}", {"text": "x"}, headers=JSON)
            assert answer.status_code == 404, (path, seq)
    answer = await client.post(f"/c/{code}/branch/", {"seq": others}, headers=JSON)
    assert answer.status_code == 404
    await settle()
    assert [one async for one in Message.objects.order_by("pk").values()] == before
    assert len(upstream.chats) == calls


async def test_too_large_is_refused_with_figures_before_anything_is_stored(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    giant = form("word " * 20_000)
    await client.post(f"/c/{code}/draft/", {"text": "a draft"}, headers=JSON)
    answer = await client.post(f"/c/{code}/messages/", giant, headers=JSON)
    assert answer.status_code == 413
    error = error_of(answer)
    assert error["code"] == "too_large"
    figures = error["fields"]
    assert set(figures) == {
        "window",
        "budget",
        "reserve",
        "fixed",
        "constraints",
        "message",
        "over",
    }
    assert figures["window"] == 8192
    assert figures["budget"] == figures["window"] - figures["reserve"]
    assert figures["over"] == (
        figures["fixed"] + figures["constraints"] + figures["message"] - figures["budget"]
    )
    assert not await Message.objects.aexists()
    assert (await Conversation.objects.aget()).draft == "a draft"
    fragment = await client.post(f"/c/{code}/messages/", giant, headers=HTMX)
    assert fragment.status_code == 413
    assert b"too_large" in fragment.content
    page = await client.post(f"/c/{code}/messages/", giant)
    assert page.status_code == 413
    assert b"Nothing was sent" in page.content
    assert upstream.chats == []


async def test_a_new_conversation_whose_first_message_is_too_large_is_not_made(
    client: AsyncClient,
) -> None:
    answer = await client.post("/c/", form("word " * 20_000), headers=JSON)
    assert answer.status_code == 413
    assert not await Conversation.objects.aexists()


async def test_a_new_conversation_can_begin_with_its_message(client: AsyncClient) -> None:
    first = form("First")
    answers = [await client.post("/c/", first, headers=HTMX) for _ in range(2)]
    row = await Conversation.objects.aget()
    for answer in answers:  # the second is a repetition
        assert answer.status_code == 200
        assert answer["HX-Redirect"] == f"/c/{row.code}/"
    assert await Message.objects.filter(text="First").aexists()
    plain = await client.post("/c/", {"title": "Plain"})
    assert plain.status_code == 302


async def test_a_sender_who_has_not_seen_the_last_message_is_told(
    client: AsyncClient, code: str
) -> None:
    await send(client, code)
    await settle()
    answer = await client.post(f"/c/{code}/messages/", form(last_seen_seq=1), headers=JSON)
    assert answer.status_code == 409
    assert error_of(answer)["fields"] == {"last_seq": 2}


async def test_a10_nothing_else_in_a_form_is_believed(client: AsyncClient, code: str) -> None:
    """A10: role, owner, seq, boundary and status are the server's.

    Breaks when: a view hands the form's fields on as they are.
    """
    forged = form(role="system", user_id=99, owner=99, seq=77, status="x", compressed_through=5)
    answer = await client.post(f"/c/{code}/messages/", forged, headers=JSON)
    assert answer.json()["message_seq"] == 1
    settings = {"owner": 99, "compressed_through": 9, "event_no": 1000, "next_seq": 50}
    await client.post(f"/c/{code}/settings/", {"title": "Mine", **settings}, headers=JSON)
    row = await Conversation.objects.select_related("owner").aget()
    assert (row.owner.username, row.compressed_through, row.title) == ("alice", 0, "Mine")
    assert (row.next_seq, row.event_no < 1000) == (3, True)
    assert (await Message.objects.aget(seq=1)).role == "user"


async def test_pin_branch_and_continue_in_new(client: AsyncClient, code: str) -> None:
    await send(client, code)
    await settle()
    for command, pinned in (("pin", True), ("unpin", False)):
        answer = await client.post(f"/c/{code}/messages/1/{command}/", headers=JSON)
        assert answer.status_code == 200
        page = (await client.get(f"/c/{code}/", headers=JSON)).json()
        assert page["messages"][0]["pinned"] is pinned
    missing = await client.post(f"/c/{code}/messages/99/pin/", headers=JSON)
    assert missing.status_code == 404
    title = (await client.get(f"/c/{code}/", headers=JSON)).json()["conversation"]["title"]
    for path, fields, begun_as in (
        ("branch/", {"seq": 2}, "branch"),
        ("continue-in-new/", {}, "continuation"),
    ):
        made = await client.post(f"/c/{code}/{path}", fields, headers=JSON)
        assert made.status_code == 201
        assert made.json()["code"] != code
        shown = (await client.get(f"/c/{made.json()['code']}/", headers=JSON)).json()
        assert shown["origin"] == {"begun_as": begun_as, "code": code, "title": title}
    assert (await client.get(f"/c/{code}/", headers=JSON)).json()["origin"] is None
    await client.post(f"/c/{code}/delete/", headers=JSON)
    left = (await client.get(f"/c/{made.json()['code']}/", headers=JSON)).json()
    assert left["origin"] is None
    await client.post(f"/c/{code}/undelete/", headers=JSON)
    unnumbered = await client.post(f"/c/{code}/branch/", {"seq": "two"}, headers=JSON)
    assert unnumbered.status_code == 422


async def test_a_branch_from_before_the_first_message_has_the_settings_only(
    client: AsyncClient, code: str
) -> None:
    """Breaks when: 0 is taken for the number of a message."""
    await client.post(f"/c/{code}/settings/", {"system_prompt": "In rhyme."}, headers=JSON)
    await send(client, code)
    await settle()
    made = await client.post(f"/c/{code}/branch/", {"seq": 0}, headers=JSON)
    page = (await client.get(f"/c/{made.json()['code']}/", headers=JSON)).json()
    assert page["messages"] == []
    assert page["conversation"]["system_prompt"] == "In rhyme."
    assert page["origin"]["code"] == code
    sent = await send(client, made.json()["code"])
    assert sent["message_seq"] == 1
    await settle()
