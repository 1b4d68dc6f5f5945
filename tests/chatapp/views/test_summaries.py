"""Commands on the summary, and what every answer carries."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient

from chatapp import wiring
from chatapp.conversations import listing
from chatapp.models import Conversation, ModelProfile
from chatapp.views import pages
from compression.runs.run import living
from tests.fake_scripts import Finish, Script, Wait
from tests.fake_upstream import DEFAULT_MODELS, FakeUpstream
from tests.inprocess import HTMX, JSON, new_conversation, send, settle

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always keep in mind that the harbour of Malmö opens at nine and closes at five. " * 30


@pytest.fixture
async def long(client: AsyncClient, code: str) -> str:
    """A conversation that is worth compressing."""
    for number in range(5):
        await send(client, code, f"Question {number}. {WORDS}")
        await settle()
    return code


@pytest.fixture
async def compressed(client: AsyncClient, long: str) -> str:
    """The same with a summary."""
    answer = await client.post(f"/c/{long}/compact/", headers=JSON)
    assert (answer.status_code, answer.json()) == (202, {"state": "started"})
    await settle()
    assert (await Conversation.objects.aget(code=long)).compression_version
    return long


async def test_too_short_to_compress(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    for headers in (JSON, HTMX, {}):
        answer = await client.post(f"/c/{code}/compact/", headers=headers)
        assert answer.status_code == 422
    assert upstream.chats == []
    cleared = await client.post(f"/c/{code}/clear/", headers=JSON)
    assert cleared.status_code == 422
    assert cleared.json()["error"]["code"] == "nothing_to_compress"
    for command in ("undo", "redo"):
        answer = await client.post(f"/c/{code}/summary/{command}/", headers=JSON)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "nothing_to_undo"


@pytest.fixture
def log(settings: Any, tmp_path: Path) -> Path:
    """Where this test's calls are noted; ask for it before the product."""
    settings.ACTIVITY_LOG_DIR = str(tmp_path)
    return tmp_path


async def test_i29_the_call_for_a_summary_is_noted_with_its_conversation(
    log: Path, client: AsyncClient, compressed: str
) -> None:
    """I29: so that the activity of the conversation tells of it.

    Breaks when: ``summaries.compact`` starts the run outside ``activity_log.about``.
    """
    told = (await client.get(f"/c/{compressed}/activity/", headers=JSON)).json()
    assert [one["kind"] for one in told["calls"]] == ["summary", *["chat"] * 5]


async def settled(conversation: Conversation) -> None:
    """Wait until no run of this process compresses the conversation."""
    async with asyncio.timeout(20):
        while living(conversation.pk) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_c02_one_run_and_the_others_are_told(
    client: AsyncClient, long: str, upstream: FakeUpstream
) -> None:
    """C02: asked for again and again, one summary is written, and every answer comes at once.

    Breaks when: ``begin_compression`` waits for the whole run instead of its beginning, or takes
    the beginning of another one's run for its own.
    """
    before = len(upstream.chats)
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Wait(gate), Finish("stop"))))
    async with asyncio.timeout(20):
        answers = await asyncio.gather(
            *(client.post(f"/c/{long}/compact/", headers=JSON) for _ in range(5))
        )
    assert [answer.status_code for answer in answers] == [202] * 5
    states = sorted(answer.json()["state"] for answer in answers)
    assert states == ["running"] * 4 + ["started"]
    await upstream.came(before + 1)
    later = await client.post(f"/c/{long}/compact/", headers=JSON)
    assert (later.status_code, later.json()) == (202, {"state": "running"})
    assert len(upstream.chats) == before + 1
    page = (await client.get(f"/c/{long}/", headers=JSON)).json()
    assert page["compression"]["running"] is True
    cancelled = await client.post(f"/c/{long}/compact/cancel/", headers=JSON)
    assert cancelled.json() == {"state": "cancelled"}
    # The run is ending; once it has ended there is nothing to cancel.
    await settled(await Conversation.objects.aget(code=long))
    idle = await client.post(f"/c/{long}/compact/cancel/", headers=JSON)
    assert idle.json() == {"state": "idle"}
    gate.set()
    await settle()
    assert (await Conversation.objects.aget(code=long)).compression_version == 0


async def test_undo_redo_restore_and_clear(client: AsyncClient, compressed: str) -> None:
    async def state() -> dict[str, Any]:
        page = (await client.get(f"/c/{compressed}/", headers=JSON)).json()
        return dict(page["compression"])

    first = await state()
    assert first["boundary"] > 0
    for path, fields in (("summary/undo/", {}), ("summary/restore/", {"version": 0})):
        if path == "summary/restore/":
            await client.post(f"/c/{compressed}/summary/redo/", headers=JSON)
            assert (await state())["summary"] == first["summary"]
        answer = await client.post(f"/c/{compressed}/{path}", fields, headers=JSON)
        assert answer.status_code == 200
        assert (await state())["boundary"] == 0
    back = await client.post(f"/c/{compressed}/summary/restore/", {"version": 1}, headers=JSON)
    assert back.status_code == 200
    assert (await state())["summary"] == first["summary"]
    cleared = await client.post(f"/c/{compressed}/clear/", headers=JSON)
    assert cleared.status_code == 200
    assert (await state())["summary"] == ""
    assert (await state())["boundary"] == 10
    unknown = await client.post(f"/c/{compressed}/summary/restore/", {"version": 99}, headers=JSON)
    assert unknown.status_code in {404, 409, 422}
    versions = (await client.get(f"/c/{compressed}/summaries/", headers=JSON)).json()["versions"]
    assert versions[-1]["version"] == 1


async def test_c11_an_edit_of_what_has_changed_shows_both_texts(
    client: AsyncClient, compressed: str
) -> None:
    """C11: nothing is overwritten that the editor has not read.

    Breaks when: ``edit`` does not compare the version that was read.
    """
    page = (await client.get(f"/c/{compressed}/", headers=JSON)).json()
    text, version = page["compression"]["summary"], page["compression"]["version"]
    edited = text.replace("Malmö", "Lund")
    path = f"/c/{compressed}/summary/edit/"
    saved = await client.post(path, {"text": edited, "version": version}, headers=JSON)
    assert saved.status_code == 200
    assert saved.json()["version"] > version
    late = {"text": text.replace("Malmö", "Ystad"), "version": version}
    stale = await client.post(path, late, headers=JSON)
    assert stale.status_code == 409
    error = stale.json()["error"]
    assert error["code"] == "stale_version"
    assert "Lund" in error["fields"]["current_text"]
    assert "Ystad" in error["fields"]["submitted_text"]
    for headers in (HTMX, {}):
        shown = await client.post(path, late, headers=headers)
        assert shown.status_code == 409
        assert b"Lund" in shown.content
        assert b"Ystad" in shown.content
    unread = await client.post(path, {"text": text}, headers=JSON)
    assert (unread.status_code, set(unread.json()["error"]["fields"])) == (422, {"version"})


async def test_a_persons_version_is_told_from_a_models(
    client: AsyncClient, compressed: str
) -> None:
    """Breaks when: what an edit copies from its parent, the bill and the model, is said of it."""
    page = (await client.get(f"/c/{compressed}/", headers=JSON)).json()["compression"]
    assert not page["edited"]
    text = page["summary"].replace("Malmö", "Lund")
    edit = {"text": text, "version": page["version"]}
    await client.post(f"/c/{compressed}/summary/edit/", edit, headers=JSON)
    for path in ("", "summaries/"):
        html = (await client.get(f"/c/{compressed}/{path}")).content.decode()
        assert re.search(r"tokens, (<time.*</time>, )?edited by a person</p>", html)
    latest, first = html.split('<li id="version-')[1:]
    for words in ("Version 2", "Active", "edited by a person"):
        assert words in latest
    for words in ("Version 1", "replaced", "asked for"):
        assert words in first
    assert html.count("no longer cached") == 1
    # Undone and done again, it is a person's still.
    for command in ("undo", "redo"):
        await client.post(f"/c/{compressed}/summary/{command}/", headers=JSON)
    page = (await client.get(f"/c/{compressed}/", headers=JSON)).json()["compression"]
    assert (page["version"], page["edited"]) == (4, True)


async def test_i14_a_version_whose_source_was_changed_does_not_come_back(
    client: AsyncClient, compressed: str, upstream: FakeUpstream
) -> None:
    """I14: undone, then a message that it stood for is edited: Redo and Restore both refuse.

    Breaks when: ``_restore`` does not look at the fingerprint, or the answer has not both texts.
    """
    first = (await client.get(f"/c/{compressed}/", headers=JSON)).json()["compression"]
    await client.post(f"/c/{compressed}/summary/undo/", headers=JSON)
    edited = {"text": "A wholly other beginning.", "client_msg_id": str(uuid4())}
    answer = await client.post(f"/c/{compressed}/messages/1/edit/", edited, headers=JSON)
    assert answer.status_code == 202
    await settle()
    for command, fields in (("redo", {}), ("restore", {"version": first["version"]})):
        path = f"/c/{compressed}/summary/{command}/"
        stale = await client.post(path, fields, headers=JSON)
        assert stale.status_code == 409
        error = stale.json()["error"]
        assert (error["code"], error["retryable"]) == ("stale_source", False)
        assert error["fields"]["submitted_text"] == first["summary"]
        assert error["fields"]["current_text"] == ""
        for headers in (HTMX, {}):
            shown = await client.post(path, fields, headers=headers)
            assert shown.status_code == 409
            assert b"was changed or removed" in shown.content
    after = (await client.get(f"/c/{compressed}/", headers=JSON)).json()["compression"]
    assert (after["summary"], after["boundary"]) == ("", 0)
    await send(client, compressed, "And now?")
    await settle()
    assert "Question 0" not in str(upstream.chats[-1].json)


async def test_what_the_model_will_see(client: AsyncClient, compressed: str) -> None:
    told = (await client.get(f"/c/{compressed}/context/", headers=JSON)).json()
    assert [part["name"] for part in told["parts"]] == ["system", "summary", "pinned", "tail"]
    assert [message["role"] for message in told["messages"]].count("system") == 1
    total = sum(part["tokens"] for part in told["parts"])
    assert total + told["context"]["adjustment"] == told["context"]["total"]
    for headers in (HTMX, {}):
        shown = await client.get(f"/c/{compressed}/context/", headers=headers)
        assert shown.status_code == 200
        assert (b"<html" in shown.content) is (headers is not HTMX)


@pytest.mark.parametrize("headers", [JSON, HTMX, {}])
async def test_i23_every_answer_carries_its_headers(
    client: AsyncClient, code: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I23, A13: whatever the status and the form, for who is signed in.

    Breaks when: the policy or ``no_store`` is taken out of the middleware, or put below a view's.
    """

    async def fail(*_: object) -> None:
        raise RuntimeError

    answers = [
        await client.get(f"/c/{code}/", headers=headers),
        await client.get(f"/c/{code}/summaries/", headers=headers),
        await client.get("/c/nonsense/", headers=headers),
        await client.get("/nowhere/", headers=headers),
        await client.get(f"/c/{code}/compact/", headers=headers),
        await client.post(f"/c/{code}/messages/", {"text": ""}, headers=headers),
        await client.post(f"/c/{code}/archive/", headers=headers),
        await client.get("/models/", headers=headers),
        await client.get("/accounts/password_change/", headers=headers),
    ]
    monkeypatch.setattr(listing, "alinks", fail)
    monkeypatch.setattr(pages, "_ashared_context", fail)
    answers.append(await client.get("/", headers=headers))
    statuses = [answer.status_code for answer in answers]
    assert statuses[:3] == [200, 200, 404]
    assert statuses[4:6] == [405, 422]
    assert statuses[-1] == 500
    for answer in answers:
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert "no-store" in answer["Cache-Control"]
        assert "private" in answer["Cache-Control"]
        assert b"<script>" not in answer.content
        assert b" style=" not in answer.content


async def test_older_messages_and_the_other_pages(client: AsyncClient, code: str) -> None:
    await send(client, code)
    await settle()
    older = (await client.get(f"/c/{code}/", {"before": 2}, headers=JSON)).json()
    assert [message["seq"] for message in older["messages"]] == [1]
    fragment = await client.get(f"/c/{code}/", {"before": 2}, headers=HTMX)
    assert b"<html" not in fragment.content
    assert (await client.get("/"))["Location"] == f"/c/{code}/"
    other = await new_conversation(client, title="Newer")
    assert (await client.get("/"))["Location"] == f"/c/{other}/"
    assert (await client.get("/", {"new": ""})).status_code == 200
    models = (await client.get("/models/", headers=JSON)).json()
    assert models["default"] == "fake-model"
    assert models["models"][0]["window"] == 8192
    assert wiring.started()


async def test_what_failing_would_leave_out_and_what_a_reply_saw(
    client: AsyncClient, long: str
) -> None:
    answer = await client.get(f"/c/{long}/context/?left-out", headers=JSON)
    out = answer.json()["messages"]
    seqs = [one["seq"] for one in out]
    # Whole turns, the oldest first; the last turn always stays.
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) % 2 == 0
    assert len(seqs) <= 8
    for path in ("context/?left-out", "context/"):
        for headers in (HTMX, {}):
            page = await client.get(f"/c/{long}/{path}", headers=headers)
            assert page.status_code == 200
    state = (await client.get(f"/c/{long}/", headers=JSON)).json()
    reply = state["messages"][-1]
    assert reply["usage"]["completion_tokens"]
    assert state["messages"][-2]["usage"] == {}
    saw = await client.get(f"/c/{long}/turns/{reply['turn']}/", headers=HTMX)
    assert "What this reply saw" in saw.content.decode()
    told = await client.get(f"/c/{long}/turns/{reply['turn']}/", headers=JSON)
    assert told.json()["manifest"]["tokens"]["total"]


async def test_a_continued_summary_cites_the_earlier_conversation(
    client: AsyncClient, compressed: str
) -> None:
    """The last turns come along, and the sources lead to where the messages are.

    Breaks when: ``mark_earlier`` is left out, so that they lead to other messages of this one.
    """
    made = (await client.post(f"/c/{compressed}/continue-in-new/", headers=JSON)).json()["code"]
    page = (await client.get(f"/c/{made}/", headers=JSON)).json()
    before = (await client.get(f"/c/{compressed}/", headers=JSON)).json()
    assert (page["compression"]["version"], page["compression"]["boundary"]) == (1, 0)
    assert page["compression"]["summary"] == before["compression"]["summary"]
    texts = [one["text"] for one in page["messages"]]
    assert [one["seq"] for one in page["messages"]] == [1, 2, 3, 4]
    assert texts == [one["text"] for one in before["messages"][-4:]]
    branch = (await client.post(f"/c/{made}/branch/", {"seq": 2}, headers=JSON)).json()["code"]
    link = re.compile(rf'<a href="/c/{compressed}/\?around=(\d+)#m-\1">earlier \1')
    for code, expected in ((compressed, False), (made, True), (branch, True)):
        html = (await client.get(f"/c/{code}/summaries/", headers=HTMX)).content.decode()
        assert bool(link.search(html)) == expected
        assert ('href="#m-' in html) != expected
    await client.post(f"/c/{compressed}/delete/", headers=JSON)
    html = (await client.get(f"/c/{made}/summaries/", headers=HTMX)).content.decode()
    assert "<span>earlier 1" in html
    assert 'href="#m-' not in html


async def test_what_another_model_would_see_of_it(
    client: AsyncClient, upstream: FakeUpstream, code: str
) -> None:
    """Breaks when: the figures are those of the conversation's own model, or any name is stored."""
    small = {"id": "small-model", "object": "model", "max_model_len": 1024}
    upstream.models = (*DEFAULT_MODELS, small)
    for _ in range(2):
        await send(client, code, WORDS)
        await settle()
    path = f"/c/{code}/context/"
    now = (await client.get(path, headers=JSON)).json()["context"]
    then = (await client.get(path, {"model": "small-model"}, headers=JSON)).json()["context"]
    assert (now["model"], now["window"]) == ("fake-model", 8192)
    assert (then["model"], then["window"]) == ("small-model", 1024)
    assert then["usage"] > 1 > now["usage"]
    assert (await client.get(path, headers=JSON)).json()["context"] == now
    unknown = await client.get(path, {"model": "no-model"}, headers=JSON)
    assert unknown.status_code == 422
    assert not await ModelProfile.objects.filter(name="no-model").aexists()
    foreign = await client.get(f"/c/{uuid4()}/context/", {"model": "small-model"}, headers=JSON)
    assert foreign.status_code == 404
