"""Turns of many messages, followed: the screen ends as a fresh page shows it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient

from tests.chatapp.viewing import Screen
from tests.fake_scripts import Delay, Done, Finish, Script, Text, Tool, Usage
from tests.fake_upstream import FakeUpstream
from tests.inprocess import send, settle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.events]

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
