"""What viewers are told: no word less than before, the end of every run, every stored change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.consumers import following
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.turns import progress
from chatapp.models import Conversation, Message, TurnStatus
from chatapp.turns.fitting import FittingDeps, prepare_in_background
from compression import conf, services, store
from compression.database import in_database_thread
from compression.engine import Engine
from compression.testing import CountingSummarizer
from compression.types import Outcome, Sizes, SummaryStatus, Trigger
from tests.chatapp.moody import Moody
from tests.chatapp.stage import COUNTER, stored, until
from tests.chatapp.turns.test_fitting import PROFILE, with_tools
from tests.chatapp.turns.test_turn import fill
from tests.chatapp.viewing import Screen, delta, elsewhere, write
from tests.fake_scripts import Finish, Script, Text, Wait
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, send, settle
from tests.mirror import Json, Pages

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.events]


# No word less


async def test_i4_a_socket_that_connects_late_is_told_the_whole_reply(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """I4: a message was queued in mid-reply, which raised the number past the reply's own.

    Breaks when: the open turn's message is left out of a state whose number it does not have.
    """
    more, end = asyncio.Event(), asyncio.Event()
    steps = (Text("One two "), Wait(more), Text("three "), Wait(end), Text("four"), Finish("stop"))
    upstream.enqueue(Script(steps=steps))
    await send(chat_client, code)
    reply = Message.objects.filter(conversation__code=code, seq=2)
    await until(lambda: reply.filter(text__contains="two").exists())
    await send(chat_client, code, "And then?")
    page = Pages((await chat_client.get(f"/c/{code}/")).content.decode())
    assert page.text[2] == ["One", "two"]
    late = Screen(chat_client, code, html=True)
    late.seen = (await Conversation.objects.aget(code=code)).event_no
    more.set()
    await until(lambda: reply.filter(text__contains="three").exists())
    await late.connect()
    page.apply(await late.fragment())
    assert page.text[2] == ["One", "two", "three"]
    end.set()
    while page.text[2] != ["One", "two", "three", "four"]:
        page.apply(await late.fragment())
    await late.disconnect()


async def test_i7_a_state_brings_no_less_than_was_told(
    screen: Screen, alice: User, code: str
) -> None:
    """I7: the database takes no text for a while, and another process goes on showing it.

    Breaks when: a state is sent as it was read, and the viewer's mark set back to it.
    """
    accepted = await elsewhere(alice, code)
    await wiring.announcer().begun(accepted)
    await screen.until("turn-started")
    await write(accepted, "One ")
    for offset, text in ((0, "One "), (4, "two ")):
        await wiring.bus().publish(delta(accepted, offset, text))
        assert (await screen.next())["text"] == text
    await wiring.bus().nudge(accepted.conversation_id)
    state = await screen.next()
    assert state["type"] == "state"
    assert state["turn"]["text"] == state["messages"][-1]["text"] == "One two "
    await wiring.bus().publish(delta(accepted, 8, "three"))
    assert (await screen.next())["text"] == "three"
    ended = await progress.afinish(
        "another process",
        accepted.turn,
        accepted.reply_id,
        progress.Ending(status=TurnStatus.COMPLETE, text="One two three", tokens=3),
    )
    assert ended is not None
    await wiring.announcer().ended(ended)
    await screen.told()


async def test_i4_a_far_page_follows_while_nothing_comes_by_the_bus(
    screen: Screen, alice: User, code: str
) -> None:
    """I4: within three seconds, by the product's own intervals.

    Breaks when: the look compares numbers and flags, which no text raises.
    """
    accepted = await elsewhere(alice, code)
    await wiring.announcer().begun(accepted)
    await screen.until("turn-started")
    for text in ("One ", "One two "):
        await write(accepted, text)
        begun = time.monotonic()
        state = (await screen.until("state"))[-1]
        assert time.monotonic() - begun < 3.0
        assert state["turn"]["text"] == text


async def test_what_is_on_its_way_is_not_read_as_well(
    screen: Screen, alice: User, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look in the middle of a stream leaves what its deltas will bring to them.

    Breaks when: a text that is stored and not yet told is taken for lost at once.
    """
    monkeypatch.setattr(following, "LOOK_OPEN", 0.01)
    accepted = await elsewhere(alice, code)
    await wiring.announcer().begun(accepted)
    await screen.until("turn-started")
    text, states = "", screen.states
    for number in range(20):
        piece = f"word{number} "
        await write(accepted, text + piece)
        await wiring.bus().publish(delta(accepted, len(text), piece))
        text += piece
        while screen.messages[accepted.reply_seq]["text"] != text:
            await screen.next()
    assert screen.states - states <= 2


# The end of a run


def engine(summarizer: Any) -> Engine:
    return Engine(
        transcript=StoredTranscript(),
        masks=StoredMasks(),
        counter=COUNTER,
        summarizers=(summarizer,),
    )


SIZES = Sizes(window=8192, reserve=2048)


@pytest.fixture
async def long(code: str) -> str:
    """A conversation that can be compressed, and nothing that runs."""
    await stored(lambda: fill(code, 5, words=225))
    return code


def run(pk: int, summarizer: Any, **more: Any) -> asyncio.Task[Outcome]:
    work = services.compress(
        pk, engine=engine(summarizer), sizes=SIZES, trigger=Trigger.MANUAL, **more
    )
    return asyncio.create_task(work)


async def ended_by(screen: Screen) -> Json:
    """The end of a run, told once, with the screen as a fresh load at last."""
    while (event := await screen.next())["type"] != "compression-completed":
        assert event["type"] in {"state", "compression-started", "compression-progress"}
    assert not event["compression"]["running"]
    return event


async def nothing_more(screen: Screen, pk: int) -> None:
    """No second end follows."""
    await asyncio.sleep(0)
    await wiring.bus().nudge(pk)
    while (event := await screen.next())["type"] != "state":
        assert event["type"] != "compression-completed"
    await screen.equals_a_fresh_load()


async def begun(screen: Screen) -> None:
    while not screen.compression.get("running"):
        event = await screen.next()
        if event["type"] == "compression-started":
            return


@pytest.mark.parametrize("mood", ["down", "empty", "crash"])
async def test_a_failed_or_refused_run_is_told(
    long: str, screen: Screen, pk: int, mood: str
) -> None:
    """Breaks when: an end without a summary is not announced."""
    gate = asyncio.Event()
    running = run(pk, Moody(mood=mood, gate=gate))
    await begun(screen)
    gate.set()
    assert not (await running).success
    end = await ended_by(screen)
    assert (end["success"], end["code"]) == (
        False,
        "draft_rejected" if mood == "empty" else "summarizer_failed",
    )
    await nothing_more(screen, pk)


@pytest.mark.parametrize("html", [False, True])
async def test_a_cancelled_run_is_told_though_a_state_came_first(
    chat_client: AsyncClient, long: str, screen: Screen, pk: int, html: bool
) -> None:
    """Breaks when: what a state of the same number has shown is taken for all there is to say."""
    viewer = screen
    if html:
        viewer = Screen(chat_client, long, html=True)
        await viewer.connect()
        await viewer.fragment()
    running = run(pk, Moody(gate=asyncio.Event()))
    await begun(screen)
    answer = await chat_client.post(f"/c/{long}/compact/cancel/", headers=JSON)
    assert answer.json() == {"state": "cancelled"}
    assert (await running).code == "compression_cancelled"
    if html:
        while 'data-event="compression-completed"' not in (words := await viewer.fragment()):
            continue
        assert "The compression was cancelled. Nothing was changed." in words
        await viewer.disconnect()
    end = await ended_by(screen)
    assert (end["success"], end["code"]) == (False, "compression_cancelled")
    await nothing_more(screen, pk)


async def test_a_run_whose_lease_is_lost_is_told(long: str, screen: Screen, pk: int) -> None:
    """Breaks when: only runs that keep their lease tell of their end."""
    settings = replace(conf.settings(), renew_seconds=0.05)
    running = run(pk, Moody(gate=asyncio.Event()), settings=settings)
    await begun(screen)
    await in_database_thread(store.release_all)()
    assert (await running).code == "lease_lost"
    end = await ended_by(screen)
    assert (end["success"], end["code"]) == (False, "lease_lost")
    await nothing_more(screen, pk)


async def by_cancel(pk: int) -> None:
    await store.acancel(pk)


async def by_death(pk: int) -> None:
    await Conversation.objects.filter(pk=pk).aupdate(
        compression_lease_expires_at="2026-01-01T00:00Z"
    )


async def by_withdrawal(pk: int) -> None:
    row = await Conversation.objects.aget(pk=pk)
    await store.arelease(pk, row.compression_token)
    await wiring.announcer().compression_withdrawn(conversation_id=pk)


async def by_failure(pk: int) -> None:
    row = await Conversation.objects.aget(pk=pk)
    await store.arelease(pk, row.compression_token)
    await store.arecord_attempt(
        pk,
        run=row.compression_token,
        status=SummaryStatus.FAILED,
        trigger=Trigger.MANUAL,
        reason="The server is down.",
        base=await store.aread_base(pk),
        final=True,
    )


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (by_cancel, "The compression was cancelled. Nothing was changed."),
        (by_death, "The server stopped while the summary was written."),
        (by_withdrawal, "It ended without a summary."),
        (by_failure, "The server is down."),
    ],
)
@pytest.mark.parametrize("html", [False, True])
async def test_the_end_of_a_run_elsewhere_is_told_though_its_word_never_comes(
    chat_client: AsyncClient,
    long: str,
    pk: int,
    how: Callable[[int], Awaitable[None]],
    reason: str,
    html: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed with its process, or lost with the bus: what is stored tells how it ended.

    Breaks when: a viewer that was told of a run is not owed its end; or the look that meets it
    reads the row's fields one after the other.
    """
    monkeypatch.setattr(following, "LOOK_IDLE", 0.05)
    token = await store.aclaim(pk, trigger=Trigger.MANUAL, locks_input=True)
    assert token
    viewer = Screen(chat_client, long, html=html)
    await viewer.connect()
    told = await viewer.fragment() if html else str((await viewer.next())["compression"])
    assert "Compressing conversation" in told or "'running': True" in told
    await how(pk)
    if html:
        while 'data-event="compression-completed"' not in (words := await viewer.fragment()):
            continue
        assert reason in words
    else:
        end = await ended_by(viewer)
        assert (end["success"], end["reason"], end["trigger"]) == (False, reason, "manual")
        await nothing_more(viewer, pk)
    await viewer.disconnect()


# Every stored change


class Hands:
    """Everything that a person can do to the conversation, in an order that is possible."""

    def __init__(self, chat_client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
        self.client, self.code, self.upstream = chat_client, code, upstream
        self.gate = asyncio.Event()

    async def post(self, path: str, **fields: object) -> None:
        answer = await self.client.post(f"/c/{self.code}/{path}", fields, headers=JSON)
        assert answer.status_code < 300, (path, answer.content)

    async def page(self) -> Json:
        return dict((await self.client.get(f"/c/{self.code}/", headers=JSON)).json())

    async def compact(self) -> None:
        await self.post("compact/")
        await settle()

    async def edit_summary(self) -> None:
        now = (await self.page())["compression"]
        await self.post("summary/edit/", text=now["summary"], version=now["version"])

    async def ask(self) -> None:
        steps = (Text("Well "), Wait(self.gate), Text("yes"), Finish("stop"))
        self.upstream.enqueue(Script(steps=steps))
        await send(self.client, self.code, "And?")

    async def queue(self) -> None:
        await send(self.client, self.code, "Queued")

    async def end(self) -> None:
        self.gate.set()
        await settle()

    def all(self) -> list[Callable[[], Awaitable[None]]]:
        def posts(path: str, **fields: object) -> Callable[[], Awaitable[None]]:
            return partial(self.post, path, **fields)

        return [
            posts("settings/", title="Another"),
            posts("settings/", threshold="0.7"),
            posts("messages/1/pin/"),
            posts("messages/1/unpin/"),
            posts("archive/"),
            posts("unarchive/"),
            self.compact,
            self.edit_summary,
            posts("summary/undo/"),
            posts("summary/redo/"),
            posts("summary/restore/", version=0),
            posts("clear/"),
            posts("summary/undo/"),
            self.ask,
            self.queue,
            posts("queue/", action="edit", text="Queued otherwise"),
            posts("queue/", action="remove"),
            posts("settings/", title="A third"),
            posts("messages/9/pin/"),
            posts("stop/"),
            self.end,
            posts("regenerate/"),
            settle,
            posts("messages/9/edit/", text="Or?"),
            settle,
        ]


async def test_i4_whatever_is_stored_is_told_without_a_look(
    chat_client: AsyncClient,
    long: str,
    screen: Screen,
    upstream: FakeUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I4: each command, with no look near.

    Breaks when: something raises the number of changes, or changes a message, and tells nobody.
    """
    monkeypatch.setattr(following, "LOOK_IDLE", 1000.0)
    monkeypatch.setattr(following, "LOOK_OPEN", 1000.0)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    hands = Hands(chat_client, long, upstream)
    for number, step in enumerate(hands.all()):
        await step()
        try:
            await screen.told()
        except TimeoutError:
            pytest.fail(f"step {number}: {screen.difference(await hands.page())}")


async def test_i4_masked_tool_results_are_told(
    screen: Screen, code: str, pk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4: before a request is made to fit, on pages that are open.

    Breaks when: messages are masked, and only the summary is told to have changed; or the notice
    is not told of.
    """
    await stored(lambda: with_tools(code))
    await wiring.bus().nudge(pk)
    await screen.until("state")
    deps = FittingDeps(
        profile=PROFILE,
        counter=COUNTER,
        changed=lambda: wiring.announcer().summary_changed(conversation_id=pk),
        engine_for=lambda _: engine(CountingSummarizer()),
    )
    await prepare_in_background(pk, deps)
    assert (await stored(lambda: Message.objects.get(seq=3))).masked_at is not None
    told = await screen.until("summary-changed")
    changed = [one for one in told if "message" in one]
    assert [(one["type"], one["message"]["seq"]) for one in changed] == [("message-changed", 3)]
    assert changed[0]["message"]["masked"]
    masked = [one for one in told if one["type"] == "masked"]
    assert [(one["batch"], one["count"], one["seqs"]) for one in masked] == [(1, 1, [3])]
    assert masked[0]["tokens_freed"] > 2000
    assert told[-1]["compression"]["masked_seqs"] == [3]
    await screen.told()
