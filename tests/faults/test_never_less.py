"""Whatever happens in mid-reply, the text of every viewer only grows, and ends as a fresh load.

Two processes on PostgreSQL and Redis, of which one is killed; viewers at both, by JSON and by
fragments. What is done, where, and when, is drawn: a failure names its seed.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from tests.fake_upstream import FakeUpstream
from tests.faults.following import Follower, PageFollower
from tests.faults.world import World, ended, holds, send
from tests.json_client import JsonClient

WORDS = 110
# Seconds between two things that happen, about.
PACE = 0.15

Happening = Callable[[], Awaitable[object]]


class Unrest:
    """Everything that may happen to a conversation while a reply is written."""

    def __init__(
        self, chance: random.Random, world: World, doors: list[JsonClient], viewers: list[Follower]
    ) -> None:
        self.chance, self.world, self.doors, self.viewers = chance, world, doors, viewers
        self.acknowledged: dict[str, str] = {}
        self.late: list[Follower] = []

    def happenings(self) -> list[Happening]:
        return [self.queue, self.edit_queue, self.pin, self.rename, self.drop, self.bus, self.look]

    def door(self) -> JsonClient:
        return self.chance.choice(self.doors)

    async def queue(self) -> None:
        identity, text = str(uuid.uuid4()), "Hello"
        fields = {"text": text, "client_msg_id": identity}
        status, _ = await self.door().post("messages/", **fields)
        # One waits already, or the turn has just ended.
        assert status in {202, 409}
        if status == 202:
            self.acknowledged[identity] = text

    async def edit_queue(self) -> None:
        # What is removed from the queue was never a message.
        status, _ = await self.door().post("queue/", action="edit", text="Hello")
        assert status in {200, 409}

    async def pin(self) -> None:
        action = self.chance.choice(["pin", "unpin"])
        assert (await self.door().post(f"messages/1/{action}/"))[0] == 200

    async def rename(self) -> None:
        title = f"Named {self.chance.random()}"
        assert (await self.door().post("settings/", title=title))[0] == 200

    async def drop(self) -> None:
        await self.chance.choice(self.viewers).drop()

    async def bus(self) -> None:
        """Redis cuts off everybody who listens."""
        command = ["redis-cli", "-p", str(urlsplit(self.world.redis).port)]
        kill = [*command, "client", "kill", "type", "pubsub"]
        await asyncio.to_thread(subprocess.run, kill, check=True, capture_output=True)

    async def look(self) -> None:
        """Somebody loads the page, whose socket connects late."""
        viewer = await PageFollower(self.door()).load()
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        self.late.append(viewer)


async def unrest(
    world: World, upstream: FakeUpstream, person: JsonClient, seed: int, *, kill: bool
) -> None:
    chance = random.Random(seed)
    server = await asyncio.to_thread(world.start)
    there = world.at(server.base_url, server, person.code)
    viewers: list[Follower] = [Follower(person), Follower(there)]
    viewers += [await PageFollower(client).load() for client in (person, there)]
    identity, text = str(uuid.uuid4()), f"slowly {WORDS}"
    async with AsyncExitStack() as stack:
        for viewer in viewers:
            await stack.enter_async_context(viewer.following())
        stir = Unrest(chance, world, [person, there], viewers)
        stir.acknowledged[identity] = text
        assert await send(there, text, identity)
        ends = time.monotonic() + WORDS * 0.02
        dies = time.monotonic() + chance.uniform(0.3, WORDS * 0.015)
        while time.monotonic() < ends:
            await chance.choice(stir.happenings())()
            while stir.late:
                await stack.enter_async_context((late := stir.late.pop()).following())
                viewers.append(late)
            await asyncio.sleep(chance.expovariate(1 / PACE))
            if kill and time.monotonic() > dies:
                await asyncio.to_thread(server.kill)
                stir.doors = [person]
                for viewer in viewers:
                    viewer.client = person
                break
        page = await ended(person)
        while len(page["messages"]) < 2 * len(stir.acknowledged):
            page = await ended(person)
            await asyncio.sleep(0.05)
        for viewer in viewers:
            await viewer.until_quiet()
        for viewer in viewers[:2]:
            await holds(world, person, upstream, acknowledged=stir.acknowledged, follower=viewer)
    await asyncio.to_thread(server.kill)
    await there.close()
    assert page["messages"][1]["text"]
    assert page["messages"][1]["status"] == ("partial" if kill else "complete")


@pytest.mark.parametrize("world", ["postgres"], indirect=True)
async def test_i4_i7_no_viewer_loses_a_word(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """I4, I7: whatever is queued, pinned, renamed, edited, dropped or killed.

    Breaks when: words are shown before they are stored; a state leaves the open reply out, or
    brings less of it than was shown.
    """
    await unrest(world, upstream, person, 2, kill=True)


@pytest.mark.soak
@pytest.mark.parametrize("world", ["postgres"], indirect=True)
@pytest.mark.parametrize("seed", range(10, 22))
async def test_i4_i7_no_viewer_loses_a_word_whatever_is_drawn(
    world: World, upstream: FakeUpstream, person: JsonClient, seed: int
) -> None:
    """The same, a dozen times."""
    await unrest(world, upstream, person, seed, kill=seed % 2 == 0)
