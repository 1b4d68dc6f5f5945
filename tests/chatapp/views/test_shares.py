"""Whose page waits for whom while pages are rendered."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient

from chatapp import wiring
from chatapp.rendering import kept
from chatapp.views.searching import MOST_SEARCHES
from compression.database import SERVER_THREADS, SQLITE_THREADS, in_database_thread, pending_of
from compression.fair_threads import on_behalf_of
from tests.inprocess import HTMX, new_conversation, send, settle, signed_in

PAGES = ("", "?before=100", "context/", "summaries/", "messages/1/replaced/", "export/")


@pytest.mark.parametrize("page", PAGES)
async def test_n02_a_page_waits_for_its_own_persons_others_only(
    client: AsyncClient, code: str, bob: User, page: str
) -> None:
    """N02, I25: while one of alice's is rendered hers wait and bob's do not; hers may be abandoned.

    Breaks when: a view renders anywhere but in the pool, or for another share.
    """
    other = await signed_in(bob)
    his = await new_conversation(other)
    for browser, conversation in ((client, code), (other, his)):
        await send(browser, conversation)
        await settle()
    begun, go = threading.Event(), threading.Event()
    alice = await User.objects.aget(username="alice")

    def hold() -> None:
        begun.set()
        assert go.wait(30)

    held = asyncio.create_task(wiring.rendering_pool().run(alice.pk, hold))
    assert await asyncio.to_thread(begun.wait, 30)
    headers = HTMX if page.startswith("?") else {}
    answer = await other.get(f"/c/{his}/{page}", headers=headers)
    assert answer.status_code == 200
    hers = [asyncio.create_task(client.get(f"/c/{code}/{page}", headers=headers)) for _ in range(3)]
    if page != "export/":
        # Nothing is rendered for a file.
        await asyncio.wait(hers, timeout=0.2)
        assert not any(one.done() for one in hers)
    hers[0].cancel()
    go.set()
    await held
    answers = await asyncio.gather(*hers[1:])
    assert [one.status_code for one in answers] == [200, 200]


async def test_n02_a_page_loaded_again_is_taken_from_what_is_kept(
    client: AsyncClient, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N02. Breaks when: a finished reply is parsed for each page that shows it."""
    await send(client, code, "A **question** " * 40)
    await settle()
    first = (await client.get(f"/c/{code}/")).content
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return ""

    for one in (kept.markdown, kept.verbatim):
        monkeypatch.setattr(one, "_make", make)
    again = (await client.get(f"/c/{code}/")).content
    assert [text for text in made if len(text) >= kept.SHORT] == []
    assert len(again) > 0.8 * len(first)


async def test_n02_searches_of_one_person_take_turns(client: AsyncClient, bob: User) -> None:
    """N02: alice's searches are done one after the other, bob's beside them, and many are refused.

    Breaks when: a search is not asked for on its person's behalf, or without bounds.
    """
    other = await signed_in(bob)
    alice = await User.objects.aget(username="alice")
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go.wait(30)

    async def search_of_hers() -> None:
        on_behalf_of.set(alice.pk)
        await in_database_thread(hold, lane="slow")()

    held = asyncio.create_task(search_of_hers())
    assert await asyncio.to_thread(begun.wait, 30)
    hers = [asyncio.create_task(client.get("/search/?q=lantern")) for _ in range(MOST_SEARCHES)]
    try:
        done, _ = await asyncio.wait(hers, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert [one.result().status_code for one in done] == [429]
        if SQLITE_THREADS["slow"] > 1 or connection.vendor == "postgresql":
            assert (await other.get("/search/?q=lantern")).status_code == 200
        assert sum(one.done() for one in hers) == 1
    finally:
        go.set()
    await held
    assert sorted([(await one).status_code for one in hers]) == [200] * (MOST_SEARCHES - 1) + [429]


async def test_n02_many_commands_of_one_person_delay_nobody_else(
    client: AsyncClient, code: str, bob: User
) -> None:
    """N02: what alice's requests ask the database for is done in turns with what bob's do.

    Breaks when: a request's units are not done on behalf of its person, or first come first.
    """
    other = await signed_in(bob)
    alice = await User.objects.aget(username="alice")
    begun, go = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        assert go.wait(30)

    async def hers() -> None:
        on_behalf_of.set(alice.pk)
        await in_database_thread(hold)()

    held = [asyncio.create_task(hers()) for _ in range(40)]
    # A server's request has a context of its own; in a test it is that of the one before.
    on_behalf_of.set(None)
    try:
        assert await asyncio.to_thread(begun.acquire, timeout=30)
        waits = asyncio.create_task(client.get(f"/c/{code}/"))
        for _ in range(3):
            assert (await other.get("/?new")).status_code == 200
        assert not waits.done()
    finally:
        go.set()
        await asyncio.gather(*held)
    assert (await waits).status_code == 200


async def test_n02_whoever_searches_delays_no_page(client: AsyncClient, code: str) -> None:
    """N02, I25: while searches take long, what else is asked for is answered.

    Breaks when: a search is done by the threads that answer pages.
    """
    go = threading.Event()
    held = [
        asyncio.create_task(in_database_thread(go.wait, lane="slow")(30))
        for _ in range(max(SQLITE_THREADS["slow"], SERVER_THREADS["slow"]))
    ]
    search = asyncio.create_task(client.get("/search/?q=lantern"))
    try:
        assert (await client.get(f"/c/{code}/")).status_code == 200
        await asyncio.wait([search], timeout=0.2)
        assert not search.done()
    finally:
        go.set()
        await asyncio.gather(*held)
    assert (await search).status_code == 200


async def test_n02_the_end_waits_for_no_search_that_waits(client: AsyncClient) -> None:
    """N02: a person's eight searches of ten seconds would keep a server from ending.

    Breaks when: what waits in the lane is done before the process ends.
    """
    alice = await User.objects.aget(username="alice")
    go = threading.Event()
    held = [
        asyncio.create_task(in_database_thread(go.wait, lane="slow")(30))
        for _ in range(max(SQLITE_THREADS["slow"], SERVER_THREADS["slow"]))
    ]
    search = asyncio.create_task(client.get("/search/?q=lantern"))
    try:
        async with asyncio.timeout(20):
            while not pending_of(alice.pk, "slow"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await wiring.shutdown()
        with pytest.raises(asyncio.CancelledError):
            await search
    finally:
        go.set()
        await asyncio.gather(*held, return_exceptions=True)
