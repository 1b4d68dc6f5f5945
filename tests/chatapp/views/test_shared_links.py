"""Shared links: what one shows, what it never shows, and when it ends."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from chatapp.accounts import visitors
from chatapp.conversations.sharing import reading
from chatapp.conversations.sharing.links import MOST_WORKING
from chatapp.models import Conversation, Message, Share
from compression import store
from tests.chatapp.views.test_routes import ADMIN, OWNED, PERSONAL, ROUTES, address, stored
from tests.fake_scripts import Finish, Script, Text, Wait
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def spoken(client: AsyncClient, code: str) -> str:
    """Alice's conversation with one turn, and much in it that is hers alone."""
    await send(client, code, "What **grows** here?")
    await settle()
    await Conversation.objects.filter(code=code).aupdate(
        title="The garden", system_prompt="secret prompt", draft="secret draft"
    )
    await Message.objects.filter(conversation__code=code).aupdate(
        reasoning="secret thoughts", added_context="secret excerpt"
    )
    return code


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> AsyncClient:
    """The browser of somebody without a session, whom nobody has counted yet."""
    monkeypatch.setattr("chatapp.views.sharing.shared.readers", visitors.Visitors())
    return AsyncClient()


async def link(client: AsyncClient, code: str, **fields: Any) -> str:
    """The path of a new link."""
    answer = await client.post(f"/c/{code}/shares/make/", fields, headers=JSON)
    assert answer.status_code == 201, answer.content
    return "/s/" + str(answer.json()["url"]).rpartition("/s/")[2]


async def texts(reader: AsyncClient, path: str) -> list[str]:
    answer = await reader.get(path, headers=JSON)
    assert answer.status_code == 200, answer.content
    return [one["text"] for one in answer.json()["messages"]]


async def test_a_link_shows_the_conversation_and_nothing_else(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """The words of both sides and the title; no code, name, thought, prompt or draft.

    Breaks when: the page is made from a view that has more than a stranger may see.
    """
    path = await link(client, spoken, tools="on", summaries="on")
    page = await reader.get(path)
    html = page.content.decode()
    assert page.status_code == 200
    assert "<strong>grows</strong>" in html
    assert "The garden" in html
    json = (await reader.get(path, headers=JSON)).content.decode()
    for hidden in ("secret", "alice", spoken, "data-seq", 'id="m-'):
        assert hidden not in html, hidden
        assert hidden not in json, hidden
    assert not re.findall(r"<script|<form|hx-|ws-connect", html)
    assert not page.cookies
    assert "Cookie" not in page.headers.get("Vary", "")
    assert page.headers["X-Robots-Tag"].startswith("noindex")
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "no-store" in page.headers["Cache-Control"]
    assert "'unsafe-inline'" not in page.headers["Content-Security-Policy"]


async def test_later_messages_and_edits_are_not_shown(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """What was there when the link was made is shown, whatever happens to it later.

    Breaks when: the boundary of the link is not looked at, or what was superseded later is hidden.
    """
    path = await link(client, spoken)
    then = await texts(reader, path)
    await send(client, spoken, "A later question")
    await settle()
    assert await texts(reader, path) == then
    await client.post(f"/c/{spoken}/messages/1/edit/", {"text": "What grew here?"}, headers=JSON)
    await settle()
    assert await texts(reader, path) == then
    now = await texts(reader, await link(client, spoken))
    assert now[0] == "What grew here?"
    assert len(now) == 2


async def test_i14_what_was_superseded_before_is_not_shown(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """I14: not even once its row has changed again, as by a mask that is taken off.

    Breaks when: the time at which it was superseded is not looked at.
    """
    await client.post(f"/c/{spoken}/messages/1/edit/", {"text": "Instead"}, headers=JSON)
    await settle()
    path = await link(client, spoken)
    await Message.objects.filter(superseded_at__isnull=False).aupdate(event_no=10**6)
    assert "What **grows** here?" not in await texts(reader, path)


async def test_a_reply_that_is_being_written_is_left_out(
    client: AsyncClient, spoken: str, reader: AsyncClient, upstream: FakeUpstream
) -> None:
    """With its question, also once it is whole.

    Breaks when: the messages of an open turn are counted as shown.
    """
    before = await texts(reader, await link(client, spoken))
    go = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("Half "), Wait(go), Text("and half."), Finish())))
    await send(client, spoken, "Still unanswered")
    path = await link(client, spoken)
    assert await texts(reader, path) == before
    go.set()
    await settle()
    assert await texts(reader, path) == before


async def test_tools_are_shown_only_if_they_were_chosen(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """Neither names nor arguments nor results otherwise; imported calls of any shape do no harm.

    Breaks when: ``with_tools`` is not looked at for calls or for results.
    """
    calls: list[dict[str, Any]] = [
        {"id": "c1", "function": {"name": "look", "arguments": '{"at": "arguments here"}'}},
        {"function": "nothing"},
    ]
    reply = await Message.objects.aget(role="assistant")
    await Message.objects.filter(pk=reply.pk).aupdate(tool_calls=calls)
    row = await Conversation.objects.aget(code=spoken)
    await Message.objects.acreate(
        conversation=row,
        seq=row.next_seq,
        role="tool",
        text="results here",
        tool_name="look",
        created_at=timezone.now(),
    )
    await Conversation.objects.filter(pk=row.pk).aupdate(next_seq=row.next_seq + 1)
    plain, whole = await link(client, spoken), await link(client, spoken, tools="on")
    for headers in ({}, JSON):
        shown = (await reader.get(whole, headers=headers)).content.decode()
        hidden = (await reader.get(plain, headers=headers)).content.decode()
        for word in ("arguments here", "results here", "look"):
            assert word in shown
            assert word not in hidden


async def test_the_summary_is_shown_only_if_it_was_chosen(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """In the version of that day, between the messages it stands for and the others.

    Breaks when: the present version is shown, or one is shown without being chosen.
    """
    row = await Conversation.objects.aget(code=spoken)
    fields = {"text": "## Context\n- Roses grow here.", "version": 0}
    await client.post(f"/c/{spoken}/summary/edit/", fields, headers=JSON)
    plain, whole = await link(client, spoken), await link(client, spoken, summaries="on")
    later = {"text": "## Context\n- Only weeds.", "version": 1}
    answer = await client.post(f"/c/{spoken}/summary/edit/", later, headers=JSON)
    assert answer.status_code == 200, answer.content
    assert (await sync_to_async(store.read_base)(row.pk)).version == 2
    assert (await reader.get(plain, headers=JSON)).json()["summary"] is None
    summary = (await reader.get(whole, headers=JSON)).json()["summary"]
    assert [one["lines"] for one in summary["sections"]] == [["Roses grow here."]]
    html = (await reader.get(whole)).content.decode()
    assert "Roses grow here." in html
    assert "weeds" not in html


async def test_i26_a_long_conversation_comes_in_pages(
    client: AsyncClient, spoken: str, reader: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I26: each page has so many messages or characters; together they are all of them, once.

    Breaks when: a page is not limited, or the next one begins elsewhere than this one ended.
    """
    row = await Conversation.objects.aget(code=spoken)
    await Message.objects.abulk_create(
        Message(
            conversation=row,
            seq=seq,
            role="user",
            text=f"{seq} " + "x" * (400 if seq == 9 else 1),
            created_at=timezone.now(),
        )
        for seq in range(3, 12)
    )
    await Conversation.objects.filter(pk=row.pk).aupdate(next_seq=12)
    path = await link(client, spoken)
    whole = await texts(reader, path)
    assert len(whole) == 11
    monkeypatch.setattr(reading, "PAGE_MESSAGES", 4)
    monkeypatch.setattr(reading, "PAGE_CHARACTERS", 300)
    found: list[str] = []
    sizes, following = [], 0
    while True:
        page = (await reader.get(f"{path}?after={following}", headers=JSON)).json()
        found += [one["text"] for one in page["messages"]]
        sizes.append(len(page["messages"]))
        following = page["following"]
        if not following:
            break
    assert found == whole
    assert max(sizes) <= 4
    assert 1 in sizes


async def test_i31_a_link_ends_with_its_time_its_owner_or_its_conversation(
    client: AsyncClient, spoken: str, reader: AsyncClient, alice: User
) -> None:
    """I31: revoked, expired, deleted, or its owner's account closed: the same as a wrong one.

    It does not come back with a conversation that is brought back.
    Breaks when: one of these is not looked at, or the answers differ.
    """
    wrong = await reader.get("/s/nothing/")
    assert wrong.status_code == 404
    assert b"nothing here any more" in wrong.content

    async def gone(path: str) -> bool:
        page, json = await reader.get(path), await reader.get(path, headers=JSON)
        assert json.status_code == page.status_code
        return page.status_code == 404 and page.content == wrong.content

    revoked = await link(client, spoken)
    share = await Share.objects.alatest("pk")
    assert not await gone(revoked)
    await client.post(f"/c/{spoken}/shares/{share.pk}/revoke/")
    assert await gone(revoked)
    expired = await link(client, spoken, days=1)
    await Share.objects.filter(revoked_at=None).aupdate(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert await gone(expired)
    closed = await link(client, spoken, days=0)
    await User.objects.filter(pk=alice.pk).aupdate(is_active=False)
    assert await gone(closed)
    await User.objects.filter(pk=alice.pk).aupdate(is_active=True)
    assert not await gone(closed)
    await client.post(f"/c/{spoken}/delete/")
    assert await gone(closed)
    await client.post(f"/c/{spoken}/undelete/")
    assert await gone(closed)
    for odd in ("/s/" + "x" * 3000 + "/", "/s/%00/", "/s/ü/"):
        assert await gone(odd)


async def test_i19_a_link_opens_nothing_else(
    client: AsyncClient, spoken: str, reader: AsyncClient, upstream: FakeUpstream
) -> None:
    """I19, A01: each address there is, with the token wherever a code or key could stand.

    Breaks when: any view takes a token for a session, or for the code of a conversation.
    """
    path = await link(client, spoken, tools="on", summaries="on")
    token = path.split("/")[2]
    before, calls = await stored(), len(upstream.chats)
    reader.cookies["sessionid"] = token
    for route in ROUTES:
        if route in ADMIN or route.startswith(("s/", "accounts/", "healthz", "readyz", "manifest")):
            continue
        method = OWNED[route][0] if route in OWNED else sorted(PERSONAL.get(route, {"GET"}))[0]
        fields = OWNED[route][1] if route in OWNED else {}
        for code in (token, spoken):
            where = address(route, code)
            headers = {**JSON, "Authorization": f"Bearer {token}"}
            ask = reader.get if method == "GET" else reader.post
            answer = await ask(where, fields, headers=headers)
            assert answer.status_code in {401, 405}, (where, answer.status_code)
    for sub in ("messages/", "context/", "export/", "find/?q=grows", "summaries/", "1/", "../"):
        assert (await reader.get(f"{path}{sub}")).status_code in {302, 404}
    for other in (reader.post, reader.put, reader.delete):
        assert (await other(path)).status_code == 405
    assert await stored() == before
    assert len(upstream.chats) == calls


async def test_the_token_is_not_stored(client: AsyncClient, spoken: str) -> None:
    """Whoever reads the database opens no link. Breaks when: the token is stored as it is."""
    token = (await link(client, spoken)).split("/")[2]
    assert token not in await stored()
    listed = (await client.get(f"/c/{spoken}/shares/")).content.decode()
    assert token not in listed
    assert token not in (await client.get("/shares/")).content.decode()


async def test_a_stranger_cannot_revoke_nor_list(
    client: AsyncClient, spoken: str, bob: User, reader: AsyncClient
) -> None:
    path = await link(client, spoken)
    share = await Share.objects.aget()
    other = await signed_in(bob)
    assert (await other.get("/shares/", headers=JSON)).json() == {"shares": []}
    answer = await other.post(f"/c/{spoken}/shares/{share.pk}/revoke/", headers=JSON)
    assert answer.status_code == 404
    assert (await reader.get(path)).status_code == 200


async def test_the_number_of_links_is_limited(
    client: AsyncClient, code: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: links are made without counting those that work."""
    row = await Conversation.objects.aget(code=spoken)
    await Share.objects.abulk_create(
        Share(
            conversation=row,
            token_sha256=f"{number:064}",
            through_seq=1,
            event_no=1,
            created_at=timezone.now(),
        )
        for number in range(MOST_WORKING)
    )
    answer = await client.post(f"/c/{spoken}/shares/make/", {}, headers=JSON)
    assert answer.status_code == 422
    assert "Revoke one" in answer.json()["error"]["message"]
    answer = await client.post(f"/c/{spoken}/shares/make/", {"days": "5000"}, headers=JSON)
    assert answer.status_code == 422


async def test_n02_a_reader_with_too_many_requests_is_told_to_wait(
    client: AsyncClient, spoken: str, reader: AsyncClient
) -> None:
    """N02: and those of people with an account are answered all the same.

    Breaks when: the view does not count its readers.
    """
    path = await link(client, spoken)
    for _ in range(visitors.MOST_READS):
        answer = await reader.get(path, headers=JSON)
    assert answer.status_code == 200
    refused = await reader.get(path, headers=JSON)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert (await client.get(f"/c/{spoken}/")).status_code == 200
