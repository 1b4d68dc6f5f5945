"""Following a conversation: whatever is lost, the screen ends as a fresh page shows it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from chatapp import wiring
from chatapp.consumers import conversation, following
from chatapp.live import events
from chatapp.live.bus import BACKLOG, Bus
from chatapp.models import Conversation, Message
from tests.chatapp.stage import until
from tests.chatapp.viewing import Screen, delta, elsewhere, write
from tests.fake_scripts import Delay, Finish, Script, Step, Text, Wait, failing
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, send, settle
from tests.mirror import Json

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.events]


def slow(words: int) -> Script:
    """A reply of so many words that is flushed to viewers several times."""
    steps = [step for number in range(words) for step in (Text(f"word{number} "), Delay(0.02))]
    return Script(steps=(*steps, Finish("stop")))


async def test_it_tells_what_happens(screen: Screen, chat_client: AsyncClient, code: str) -> None:
    begun = await send(chat_client, code)
    told = await screen.until("title-changed")
    types = [event["type"] for event in told]
    assert types[:3] == ["message-added", "message-added", "turn-started"]
    assert types[-3:] == ["turn-finished", "context", "title-changed"]
    assert set(types[3:-3]) == {"delta"}
    for event in told:
        assert {"type", "event_no", "at"} <= set(event)
        assert "conversation_id" not in event
    finished = told[-3]
    assert (finished["turn"], finished["status"], finished["error"]) == (
        begun["turn"],
        "complete",
        None,
    )
    assert finished["usage"]["prompt_tokens"] > 0
    numbers = [event["event_no"] for event in told]
    assert numbers == sorted(numbers)
    await screen.equals_a_fresh_load()


@pytest.mark.parametrize("index", range(9))
async def test_i4_d06_cut_off_at_any_event(
    screen: Screen, chat_client: AsyncClient, code: str, upstream: FakeUpstream, index: int
) -> None:
    """I4, D06: disconnected after so many events, and again, and back with ``after``.

    Breaks when: ``CatchUp.tell_state`` sends less than what changed since ``after``, or a delta
    is passed on whose offset does not continue what the viewer has.
    """
    upstream.enqueue(slow(30))
    await send(chat_client, code, f"Question {index}")
    for _ in range(index):
        await screen.next()
    for _ in range(3):
        await screen.disconnect()
        await screen.connect()
        event = await screen.next()
        assert event["type"] == "state"
    await screen.until_quiet()
    await settle()
    await screen.disconnect()
    await screen.connect()
    await screen.next()
    await screen.equals_a_fresh_load()


async def test_i4_d03_when_every_message_is_lost(
    screen: Screen,
    chat_client: AsyncClient,
    code: str,
    upstream: FakeUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I4, D03: nothing comes through the bus, and the looks at the database suffice.

    Breaks when: ``_look`` does not compare the numbers, or does not look.
    """
    monkeypatch.setattr(Bus, "_deliver", lambda *_: None)
    monkeypatch.setattr(following, "LOOK_OPEN", 0.05)
    monkeypatch.setattr(following, "LOOK_IDLE", 0.05)
    await screen.disconnect()
    await screen.connect()
    await screen.next()
    upstream.enqueue(slow(10))
    await send(chat_client, code)
    event = await screen.next()
    while not screen.title or screen.turn is not None:
        event = await screen.next()
        assert event["type"] == "state"
    await settle()
    await screen.equals_a_fresh_load()


def title_event(row: Conversation, event_no: int) -> events.TitleChanged:
    return events.TitleChanged(
        title="From nowhere", conversation_id=row.pk, event_no=event_no, at=timezone.now()
    )


def delta_event(
    row: Conversation, begun: Json, offset: int, text: str, event_no: int
) -> events.Delta:
    return events.Delta(
        turn=begun["turn"],
        seq=begun["reply_seq"],
        offset=offset,
        text=text,
        conversation_id=row.pk,
        event_no=event_no,
        at=timezone.now(),
    )


async def test_a_gap_in_the_numbers_is_answered_by_one_state(screen: Screen, code: str) -> None:
    """Breaks when: ``_pass_on`` forwards an event whose predecessor never came."""
    row = await Conversation.objects.aget(code=code)
    await Conversation.objects.filter(pk=row.pk).aupdate(title="Stored", event_no=row.event_no + 3)
    await wiring.bus().publish(title_event(row, row.event_no + 3))
    await wiring.bus().publish(title_event(row, row.event_no + 3))
    event = await screen.next()
    assert (event["type"], event["after"]) == ("state", row.event_no)
    assert screen.title == "Stored"
    await Conversation.objects.filter(pk=row.pk).aupdate(event_no=row.event_no + 4)
    await wiring.bus().publish(title_event(row, row.event_no + 4))
    assert (await screen.next())["type"] == "title-changed"


async def test_a_gap_in_a_text_is_answered_by_one_state(
    screen: Screen, chat_client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("Well"), Wait(gate), Text(", yes."), Finish("stop"))))
    begun = await send(chat_client, code)
    (*_, delta) = await screen.until("delta")
    assert (delta["offset"], delta["text"], delta["turn"]) == (0, "Well", begun["turn"])
    row = await Conversation.objects.aget(code=code)
    ahead = delta_event(row, begun, 3, "not what follows", delta["event_no"])
    await wiring.bus().publish(ahead)  # known already: not told again
    await wiring.bus().nudge(row.pk)  # as after an overflow
    state = await screen.next()
    assert (state["type"], state["turn"]["text"]) == ("state", "Well")
    gate.set()
    (after, *_) = await screen.until("turn-finished")
    assert (after["type"], after["offset"]) == ("delta", 4)


async def test_i4_a_text_that_is_ahead_of_an_untold_change_brings_it(
    screen: Screen, code: str, alice: User
) -> None:
    """I4: who comes back after a delta's number must have been told all up to it.

    The words are stored before they are told, as by the product: of words that are not stored,
    the end of a turn that loses its lease, as on a computer that stood still, tells nothing.

    Breaks when: ``_pass_delta_on`` does not compare the numbers.
    """
    accepted = await elsewhere(alice, code)
    await wiring.announcer().begun(accepted)
    await screen.until("turn-started")
    await write(accepted, "Well")
    await wiring.bus().publish(delta(accepted, 0, "Well"))
    await screen.until("delta")
    number = accepted.event_no + 1
    row = Conversation.objects.filter(code=code)
    await row.aupdate(title="Stored", event_no=number)
    await write(accepted, "Well, yes.")
    await wiring.bus().publish(replace(delta(accepted, 4, ", yes."), event_no=number))
    event = await screen.next()
    assert (event["type"], event["turn"]["text"]) == ("state", "Well, yes.")
    assert screen.title == "Stored"
    await wiring.bus().publish(replace(delta(accepted, 10, " Or no."), event_no=number))
    assert (await screen.next())["text"] == " Or no."


async def test_i4_what_came_while_nobody_looked_is_shown_once(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """As HTML: whole blocks were closed before the viewer came back, and are in its first state.

    Breaks when: the next delta is rendered from where the last viewer left.
    """
    unseen, seen = asyncio.Event(), asyncio.Event()
    steps: list[Step] = [
        Text("One"),
        Wait(unseen),
        Text("\n\nTwo\n\nThree"),
        Wait(seen),
        Text("\n\nFour"),
    ]
    upstream.enqueue(Script(steps=(*steps, Delay(0.5), Finish("stop"))))
    first = Screen(chat_client, code, html=True)
    await first.connect()
    await send(chat_client, code)
    while "One" not in await first.fragment():
        continue
    await first.disconnect()
    unseen.set()
    reply = Message.objects.filter(conversation__code=code, seq=2, text__contains="Three")
    await until(reply.exists)
    again = Screen(chat_client, code, html=True)
    await again.connect()
    closed, _ = parts(await again.fragment())
    seen.set()
    shown = ""
    while "Four" not in shown:
        more, shown = parts(await again.fragment())
        closed += more
    assert re.findall("One|Two|Three|Four", closed + shown) == ["One", "Two", "Three", "Four"]
    await again.disconnect()


def parts(fragment: str) -> tuple[str, str]:
    """The closed blocks that a fragment shows or adds, and the open ones that it shows."""
    found = [
        re.search(rf'<div id="m-2-{part}"[^>]*>(.*?)</div>', fragment, re.DOTALL)
        for part in ("closed", "open")
    ]
    return (found[0][1] if found[0] else "", found[1][1] if found[1] else "")


@pytest.mark.parametrize("burst", [BACKLOG + 1, BACKLOG + 50])
async def test_d05_a_burst_ends_in_one_state(
    screen: Screen, code: str, burst: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D05, I26: more than a viewer's backlog at once, and nothing is missing afterwards.

    No look is near; and after one event too many none follows that would show the gap.

    Breaks when: ``Subscription.put`` drops without saying so.
    """
    monkeypatch.setattr(following, "LOOK_IDLE", 1000.0)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    row = await Conversation.objects.aget(code=code)
    await Conversation.objects.filter(pk=row.pk).aupdate(
        title="The last", event_no=row.event_no + burst
    )
    published = [title_event(row, row.event_no + 1 + number) for number in range(burst)]
    # All are delivered before the viewer's turn comes, however long a layer takes for each.
    await asyncio.gather(*(wiring.bus().publish(event) for event in published))
    while screen.seen < row.event_no + burst:
        await screen.next()
    assert screen.title == "The last"
    assert screen.states <= 4


async def test_i4_what_another_conversation_teaches_changes_the_figures_here(
    screen: Screen, chat_client: AsyncClient, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider counts otherwise than thought: said at the next look, with nothing stored here.

    Breaks when: ``_look`` compares what is stored of the conversation only.
    """
    monkeypatch.setattr(following, "LOOK_IDLE", 0.05)
    await send(chat_client, code)
    while not screen.title:
        # By its own event, or by the state of a look that was faster.
        await screen.next()
    await settle()
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    before = screen.context["total"]
    catalogue = wiring.services().catalogue
    await catalogue.learn("fake-model", "calibration", 2.5)
    await screen.until("context")
    assert screen.context["total"] > before
    await screen.equals_a_fresh_load()


async def test_what_a_server_refuses_is_known_at_once(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: what the client learns is stored past the catalogue, which believes what it
    read for five seconds.
    """
    catalogue = wiring.services().catalogue
    assert (await catalogue.profile("")).supports_usage
    upstream.enqueue(failing(400, "Unrecognized request argument supplied: stream_options"))
    await send(chat_client, code)
    await settle()
    assert not (await catalogue.profile("")).supports_usage


@pytest.mark.parametrize("how", ["sign-out", "password", "deactivation", "deletion"])
async def test_i20_a_revoked_viewer_is_sent_away(
    screen: Screen,
    chat_client: AsyncClient,
    code: str,
    alice: User,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I20, A07, A08: at the next look, which is never ten seconds away.

    Breaks when: ``still_signed_in`` leaves out the session, its hash, or ``is_active``.
    """
    assert following.LOOK_OPEN < following.LOOK_IDLE < 10
    monkeypatch.setattr(following, "LOOK_IDLE", 0.05)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    expected = conversation.SIGNED_OUT
    match how:
        case "sign-out":
            await chat_client.post("/accounts/logout/")
        case "password":
            alice.set_password("another one entirely")
            await alice.asave()
        case "deactivation":
            await User.objects.filter(pk=alice.pk).aupdate(is_active=False)
        case "deletion":
            await chat_client.post(f"/c/{code}/delete/", headers=JSON)
            expected = conversation.NO_SUCH_CONVERSATION
    assert await screen.next() == {"type": "closed", "code": expected}


async def test_i20_a_reply_under_way_keeps_no_revoked_viewer(
    screen: Screen,
    chat_client: AsyncClient,
    code: str,
    upstream: FakeUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I20: who is revoked is sent away in time although the looks of an open turn ask nobody.

    Breaks when: a look that asks nobody puts the next question off.
    """
    monkeypatch.setattr(following, "LOOK_OPEN", 0.03)
    monkeypatch.setattr(following, "LOOK_IDLE", 1.0)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("one "), Wait(gate), Finish("stop"))))
    await send(chat_client, code)
    while screen.turn is None:
        # By its own event, or by the state of a look that was faster.
        await screen.next()
    await chat_client.post("/accounts/logout/")
    while (event := await screen.next())["type"] != "closed":
        assert screen.turn is not None
    assert event["code"] == conversation.SIGNED_OUT
    gate.set()


async def test_our_own_end_brings_the_page_back(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "LIFETIME", 0.02)
    monkeypatch.setattr(conversation, "LIFETIME_SPREAD", 0.01)
    await screen.disconnect()
    await screen.connect()
    while (event := await screen.next())["type"] == "state":
        continue
    assert event == {"type": "closed", "code": 1012}


@pytest.mark.parametrize("after", ["-1", "x", "", "9" * 30, "１", "5000", "next"])
async def test_an_after_that_cannot_be_is_all(
    screen: Screen, chat_client: AsyncClient, code: str, after: str
) -> None:
    await send(chat_client, code)
    await settle()
    await screen.disconnect()
    another = Screen(chat_client, code)
    latest = (await Conversation.objects.aget(code=code)).event_no
    another.seen = latest + 1 if after == "next" else after  # type: ignore[assignment]
    await another.connect()
    another.seen = 0
    state = await another.next()
    assert state["after"] == 0
    await another.equals_a_fresh_load()
    await another.disconnect()
    await screen.connect()
