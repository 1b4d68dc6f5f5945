"""Turns of many messages, followed: the screen ends as a fresh page shows it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient

from chatapp.consumers import following
from chatapp.live.bus import Bus, Published
from tests.chatapp.viewing import Screen
from tests.fake_scripts import Delay, Done, Finish, Script, Text, Tool, Usage
from tests.fake_upstream import FakeUpstream
from tests.inprocess import send, settle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

CALL = Script(
    steps=(
        Text("I will look. "),
        Delay(0.06),
        Tool("current_time", '{"time_zone": "Europe/Stockholm"}'),
        Finish("tool_calls"),
        Usage(),
        Done(),
    )
)
ANSWER = Script(steps=(Text("It is "), Delay(0.06), Text("noon."), Finish(), Usage(), Done()))


@pytest.fixture(autouse=True)
def clock_is_offered(settings: Any) -> None:
    settings.CURRENT_TIME_TOOL = True


async def test_the_product_offers_its_own_tool(
    screen: Screen, chat_client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    upstream.enqueue(CALL, ANSWER)
    await send(chat_client, code, "What time is it?")
    told = await screen.until("turn-finished")
    await settle()
    await screen.until_quiet()
    started = next(event for event in told if event["type"] == "tool-started")
    finished = next(event for event in told if event["type"] == "tool-finished")
    assert started["arguments"] == {"time_zone": "Europe/Stockholm"}
    assert finished["result"].endswith("(Europe/Stockholm)")
    assert screen.messages[finished["seq"]]["text"] == finished["result"]
    await screen.told()


@pytest.mark.parametrize("index", range(0, 14, 2))
async def test_i4_d06_cut_off_at_any_event_of_a_turn_with_tools(
    screen: Screen, chat_client: AsyncClient, code: str, upstream: FakeUpstream, index: int
) -> None:
    """Breaks when: a state leaves out a message of the round that is under way."""
    upstream.enqueue(CALL, CALL, ANSWER)
    await send(chat_client, code, "What time is it?")
    for _ in range(index):
        if (await screen.next())["type"] == "turn-finished":
            break
    await screen.disconnect()
    await screen.connect()
    assert (await screen.next())["type"] == "state"
    await screen.until_quiet()
    await settle()
    await screen.told()


@pytest.mark.parametrize("lost", range(11))
async def test_i4_any_single_event_of_a_turn_with_tools_is_lost(
    screen: Screen,
    chat_client: AsyncClient,
    code: str,
    upstream: FakeUpstream,
    monkeypatch: pytest.MonkeyPatch,
    lost: int,
) -> None:
    """I4. What a card is made of comes in several events of one number, of which a layer may lose
    any, and no later number tells of it.

    Breaks when: a state over such a bus brings only what is newer than the last number.
    """
    deliver = Bus._deliver
    passed = 0

    def without_one(bus: Bus, conversation_id: int, published: Published | None) -> None:
        nonlocal passed
        if published is not None and published.type != "delta":
            passed += 1
            if passed == lost + 1:
                return
        deliver(bus, conversation_id, published)

    monkeypatch.setattr(Bus, "lossy", property(lambda bus: True))
    # Later than the events of the round, and soon enough to wait for.
    monkeypatch.setattr(following, "LOOK_OPEN", 0.5)
    monkeypatch.setattr(following, "LOOK_IDLE", 0.5)
    await screen.disconnect()
    await screen.connect()
    await screen.next()
    monkeypatch.setattr(Bus, "_deliver", without_one)
    upstream.enqueue(CALL, ANSWER)
    await send(chat_client, code, "What time is it?")
    await screen.until_quiet()
    await settle()
    await screen.told()
    assert passed > lost
    roles = [screen.messages[seq]["role"] for seq in sorted(screen.messages)]
    assert roles == ["user", "assistant", "tool", "assistant"]
