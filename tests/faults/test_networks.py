"""What lies between the parts breaks: between client and server, server and model, server and bus,
server and database."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import time
import uuid
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fake_upstream import FakeUpstream
from tests.faults.following import Follower, replied, shown
from tests.faults.proxy import Proxy
from tests.faults.world import World, ended, holds, send, until
from tests.json_client import JsonClient
from tests.ports import free_port
from tests.servers import RunningServer

soak = pytest.mark.soak


def behind(world: World, proxy: Proxy, person: JsonClient) -> JsonClient:
    """The same person, with the proxy between them and the survivor."""
    return world.at(f"http://{proxy.address}", world.survivor, person.code)


def world_address(person: JsonClient) -> str:
    """``host:port`` of the process that the person is at."""
    base = person._http._base_url
    assert base is not None
    return base.authority


# Between client and server


@pytest.mark.parametrize("fault", ["cut", pytest.param("delay", marks=soak), "hold"])
async def test_i4_i7_a_viewers_connection(
    world: World, upstream: FakeUpstream, person: JsonClient, fault: str
) -> None:
    """Cut ten times, late by 0.2 s, or half open for 3 s: the screen ends as a fresh load.

    Breaks when: deltas are passed on without looking at their offsets.
    """
    text, identity = "slowly 120", str(uuid.uuid4())
    async with Proxy(world_address(person)) as proxy:
        viewer = behind(world, proxy, person)
        follower = Follower(viewer)
        async with follower.following():
            await follower.until(lambda mirror: mirror.states)
            proxy.delay = 0.2 if fault == "delay" else 0.0
            assert await send(person, text, identity)
            if fault == "cut":
                for times in range(10):
                    await follower.until(shown(40 * times))
                    proxy.cut()
            elif fault == "hold":
                await follower.until(lambda mirror: mirror.messages.get(2, {}).get("text"))
                proxy.hold()
                await ended(person)
                proxy.let_go()
            await follower.until(replied(2))
            proxy.delay = 0.0
            page = await holds(
                world, person, upstream, acknowledged={identity: text}, follower=follower
            )
        await viewer.close()
    assert page["messages"][1]["status"] == "complete"
    assert follower.connections >= (8 if fault == "cut" else 1)


async def test_d01_d02_the_answer_to_a_send_is_lost(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """The server's words never arrive: sent again twice at once, and later, it is one message. And
    so is what ten tries bring for the first time, all at once.

    Breaks when: a repeated ``client_msg_id`` is not looked for, or outside of the transaction that
    stores.
    """
    text, identity, at_once = "Hello", str(uuid.uuid4()), str(uuid.uuid4())
    async with Proxy(world_address(person)) as proxy:
        proxy.deaf = True
        lost = behind(world, proxy, person)
        sending = asyncio.create_task(send(lost, text, identity))
        await asyncio.wait_for(upstream.came(1), 30)
        proxy.cut()
        assert await sending is None
        await lost.close()
    both = await asyncio.gather(*(send(person, text, identity) for _ in range(2)))
    await ended(person)
    later = await send(person, text, identity)
    answers = {str(sent) for sent in (*both, later)}
    assert len(answers) == 1
    tries = await asyncio.gather(*(send(person, text, at_once) for _ in range(10)))
    assert len({str(sent) for sent in tries}) == 1
    await holds(world, person, upstream, acknowledged={identity: text, at_once: text})
    assert len(upstream.chats) == 2


def joined(world: World, person: JsonClient) -> bool:
    """Whether any process listens to what Redis tells of the conversation."""
    (row,) = world.rows("SELECT id FROM chatapp_conversation WHERE code = %s", person.code)
    command = ["redis-cli", "-p", str(urlsplit(world.redis).port), "pubsub", "channels"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return any(channel.endswith(f"conversation.{row[0]}") for channel in found)


async def test_w10_a_half_open_viewer_is_given_up(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Nobody answers the pings: the socket ends, and with it the group's membership.

    Breaks when: PING_TIMEOUT is not given to Daphne, or the last viewer leaves the group joined.
    """

    async with Proxy(world_address(person)) as proxy:
        viewer = behind(wide_world, proxy, person)
        follower = Follower(viewer)
        async with follower.following():
            await follower.until(lambda mirror: mirror.states)
            assert await until(partial(joined, wide_world, person))
            proxy.hold()
            # Three seconds, of which Daphne's own limits would make half a minute.
            async with asyncio.timeout(15):
                await until(lambda: not joined(wide_world, person))
        await viewer.close()


async def test_w07_who_never_reads_is_cut_off_and_the_answer_stored(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """I26: ten megabytes for a viewer who reads nothing; the process holds about one of them.

    Pings are the usual ones: a peer that is merely silent gets most of a minute.

    Breaks when: UNSENT_MAX is raised to 100 MB.
    """
    server = await asyncio.to_thread(
        lambda: world.start(DJANGO_SETTINGS_MODULE="tests.server_settings", CONTEXT_WINDOW="400000")
    )
    there = world.at(server.base_url, server, person.code)
    host, _, port = server.base_url.removeprefix("http://").partition(":")
    # A small buffer here: what the kernel takes is not what the process holds.
    plug = socket.socket()
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await asyncio.to_thread(plug.connect, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=plug, limit=1024)
    cookies = "; ".join(f"{name}={value}" for name, value in world._cookies)
    handshake = (
        f"GET /ws/c/{person.code}/ HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nOrigin: {server.origin}\r\nCookie: {cookies}\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    writer.write(handshake.encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    texts = {}
    for number in range(3):
        identity = str(uuid.uuid4())
        texts[identity] = f"{number} " + "word " * 20_000
        assert await send(there, texts[identity], identity)
        await ended(there)
    before = memory(server)
    deadline = time.monotonic() + 60
    # Each pin is told to every viewer, with the whole message.
    while "viewer who does not read" not in server.log:
        assert time.monotonic() < deadline, memory(server) - before
        for action in ("pin", "unpin"):
            await asyncio.gather(*(there.post(f"messages/{seq}/{action}/") for seq in (1, 3, 5)))
    assert memory(server) - before < 10 * 1024 * 1024
    writer.transport.abort()
    await holds(world, there, upstream, acknowledged=texts)
    await there.close()
    await asyncio.to_thread(server.kill)


def memory(server: RunningServer) -> int:
    """Bytes that the process holds in memory."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


# Between server and model


@pytest.mark.parametrize(
    "fault", [pytest.param("cut", marks=soak), pytest.param("delay", marks=soak), "hold"]
)
async def test_l01_l14_the_connection_to_the_model(
    world: World, upstream: FakeUpstream, person: JsonClient, fault: str
) -> None:
    """Cut: what came is kept. Late: nothing changes. Half open: Stop ends it within two seconds.

    Breaks when: a reply that broke off counts as complete, or Stop waits for the model.
    """
    text, identity = "slowly 60", str(uuid.uuid4())
    async with Proxy(f"127.0.0.1:{upstream._port}") as proxy:
        server = await asyncio.to_thread(
            lambda: world.start(OPENAI_BASE_URL=f"http://{proxy.address}/v1")
        )
        there = world.at(server.base_url, server, person.code)
        proxy.delay = 0.1 if fault == "delay" else 0.0
        follower = Follower(there)
        async with follower.following():
            await follower.until(lambda mirror: mirror.states)
            sent = await send(there, text, identity)
            assert sent is not None
            await follower.until(lambda mirror: mirror.messages.get(2, {}).get("text"))
            if fault == "cut":
                proxy.cut()
            elif fault == "hold":
                proxy.hold()
                begun = time.monotonic()
                assert (await there.post("stop/"))[0] < 300
                await follower.until(replied(2))
                assert time.monotonic() - begun < 2
                proxy.cut()
            await holds(world, there, upstream, acknowledged={identity: text}, follower=follower)
        turn = await there.get(f"turns/{sent['turn']}/")
        await there.close()
        await asyncio.to_thread(server.kill)
    expected = {"cut": {"failed", "interrupted"}, "delay": {"complete"}, "hold": {"stopped"}}
    assert turn["status"] in expected[fault]


# Between server and bus


@pytest.mark.parametrize("fault", [pytest.param("cut", marks=soak), "hold"])
async def test_i4_the_bus_is_away_while_a_reply_is_written(
    wide_world: World, upstream: FakeUpstream, person: JsonClient, fault: str
) -> None:
    """The reply goes on at its pace, its own viewers see it; those elsewhere find out by looking.

    Breaks when: publishing waits for the channel layer as long as Redis's client does, so that a
    half-open connection keeps the reply from everybody.
    """
    text, identity = "slowly 150", str(uuid.uuid4())
    address = urlsplit(wide_world.redis)
    async with Proxy(f"127.0.0.1:{address.port}") as proxy:
        server = await asyncio.to_thread(
            lambda: wide_world.start(REDIS_URL=f"redis://{proxy.address}/0")
        )
        there = wide_world.at(server.base_url, server, person.code)
        near, far = Follower(there), Follower(person)
        async with near.following(), far.following():
            await near.until(lambda mirror: mirror.states)
            await far.until(lambda mirror: mirror.states)
            begun = time.monotonic()
            assert await send(there, text, identity)
            await near.until(lambda mirror: mirror.messages.get(2, {}).get("text"))
            if fault == "cut":
                proxy.refusing = True
                proxy.cut()
            else:
                proxy.hold()
            await near.until(replied(2))
            # Three seconds of words, and at most a few that a silent bus may cost.
            assert time.monotonic() - begun < 15
            assert longest_pause(near) < 4
            # Who comes now is served as well.
            late = Follower(there)
            async with late.following():
                await late.until(replied(2))
            await far.until(replied(2))
            proxy.refusing = False
            proxy.let_go()
            await near.until_quiet()
            await holds(wide_world, person, upstream, acknowledged={identity: text}, follower=far)
        await there.close()
        await asyncio.to_thread(server.kill)


def longest_pause(follower: Follower) -> float:
    """Seconds between two pieces of a reply, by the server's clock."""
    told = [one["at"] for one in follower.journal if one["type"] in {"delta", "turn-finished"}]
    times = [datetime.fromisoformat(at).timestamp() for at in told]
    return max(later - earlier for earlier, later in pairwise(times))


@soak
async def test_i4_d03_a_bus_that_loses_everything(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Nothing is ever delivered, within the process neither: the looks alone keep the screen true.

    Breaks when: a consumer does not look by itself.
    """
    server = await asyncio.to_thread(lambda: world.start(TESTS_BUS="lost"))
    there = world.at(server.base_url, server, person.code)
    text, identity = "slowly 150", str(uuid.uuid4())
    follower = Follower(there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        assert await send(there, text, identity)
        await follower.until(replied(2))
        await holds(world, there, upstream, acknowledged={identity: text}, follower=follower)
    assert {event["type"] for event in follower.journal} == {"state"}
    await there.close()
    await asyncio.to_thread(server.kill)


async def test_i4_a_bus_that_loses_every_third_message(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Between two processes, by a real Redis: every third beginning, end and piece of the text does
    not arrive.

    Breaks when: a delta is passed on whose offset is not where the viewer's text ends, or whose
    message the viewer was never told.
    """
    server = await asyncio.to_thread(lambda: wide_world.start(TESTS_BUS="some"))
    there = wide_world.at(server.base_url, server, person.code)
    follower = Follower(person)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        texts = {}
        for number in range(3):
            identity = str(uuid.uuid4())
            texts[identity] = f"slowly {60 + number}"
            assert await send(there, texts[identity], identity)
            await follower.until(replied(2 * number + 2))
        assert (await there.post("settings/", title="Lost or not"))[0] < 400
        await holds(wide_world, person, upstream, acknowledged=texts, follower=follower)
    kinds = [event["type"] for event in follower.journal]
    assert "delta" in kinds
    assert kinds.count("state") > 3
    await there.close()
    await asyncio.to_thread(server.kill)


async def test_i4_a_bus_that_loses_one_of_two_events_of_a_number(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """The end of a turn arrives, and what the next request will use, which has its number, not.

    Breaks when: a viewer is taken to have everything of a number because it has some of it.
    """
    server = await asyncio.to_thread(lambda: wide_world.start(TESTS_BUS="context"))
    there = wide_world.at(server.base_url, server, person.code)
    follower = Follower(person)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        text, identity = "slowly 30", str(uuid.uuid4())
        assert await send(there, text, identity)
        await follower.until(replied(2))
        await holds(wide_world, person, upstream, acknowledged={identity: text}, follower=follower)
    kinds = {event["type"] for event in follower.journal}
    assert "turn-finished" in kinds
    assert "context" not in kinds
    await there.close()
    await asyncio.to_thread(server.kill)


async def test_d04_d05_a_process_that_hangs_while_a_burst_passes(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Stopped while 160 events pass, of which the bus drops the later ones: it lets go of who does
    not fetch what it has.

    Breaks when: a viewer takes the events that it gets for all that there were.
    """
    dropping = ["redis-cli", "-p", str(urlsplit(wide_world.redis).port)]
    dropping += ["client", "kill", "type", "pubsub"]
    first, again = str(uuid.uuid4()), str(uuid.uuid4())
    assert await send(person, "Hello", first)
    await ended(person)
    # A process that hangs gets no pong in time; here nobody is to come back by that.
    server = await asyncio.to_thread(lambda: wide_world.start(TESTS_PING_TIMEOUT="100"))
    there = wide_world.at(server.base_url, server, person.code)
    follower = Follower(there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        server.process.send_signal(signal.SIGSTOP)
        try:
            for number in range(41):
                for action in ("pin", "unpin") if number < 40 else ("pin",):
                    assert (await person.post(f"messages/1/{action}/"))[0] < 400
                if number == 20:
                    await asyncio.to_thread(subprocess.run, dropping, check=True)
                    assert not await asyncio.to_thread(joined, wide_world, person)
            assert await send(person, "Again", again)
            await ended(person)
        finally:
            server.process.send_signal(signal.SIGCONT)
        await follower.until(replied(4))
        texts = {first: "Hello", again: "Again"}
        await holds(wide_world, person, upstream, acknowledged=texts, follower=follower)
        assert follower.mirror.messages[1]["pinned"]
        # And it hears again what is told.
        assert (await person.post("settings/", title="Afterwards"))[0] < 400
        await follower.until(lambda mirror: mirror.title == "Afterwards")
    assert follower.connections == 1
    await there.close()
    await asyncio.to_thread(server.kill)


@soak
async def test_redis_is_started_anew(
    wide_world: World, upstream: FakeUpstream, person: JsonClient, tmp_path: Path
) -> None:
    """Everything that Redis knew is gone, its subscriptions too: viewers hear again.

    Breaks when: the process never joins its groups again.
    """
    port = free_port()

    def redis() -> subprocess.Popen[bytes]:
        program = shutil.which("redis-server")
        assert program is not None
        command = [program, "--port", str(port), "--save", "", "--dir", str(tmp_path)]
        return subprocess.Popen([*command, "--logfile", str(tmp_path / "redis.log")])

    running = redis()
    try:
        url = f"redis://127.0.0.1:{port}/0"
        here, there = await asyncio.gather(
            *(asyncio.to_thread(lambda: wide_world.start(REDIS_URL=url)) for _ in range(2))
        )
        writer = wide_world.at(here.base_url, here, person.code)
        viewer = wide_world.at(there.base_url, there, person.code)
        follower = Follower(viewer)
        async with follower.following():
            await follower.until(lambda mirror: mirror.states)
            running.kill()
            await asyncio.to_thread(running.wait)
            running = redis()
            text, identity = "slowly 100", str(uuid.uuid4())
            assert await send(writer, text, identity)
            await follower.until(replied(2))
            # Soon by the bus again, and not by looking: deltas are never read from the database.
            async with asyncio.timeout(60):
                told = len(follower.journal)
                count, sent = 2, {identity: text}
                while not any(one["type"] == "delta" for one in follower.journal[told:]):
                    again = str(uuid.uuid4())
                    sent[again] = "slowly 20"
                    assert await send(writer, "slowly 20", again)
                    count += 2
                    await follower.until(replied(count))
            await holds(wide_world, person, upstream, acknowledged=sent, follower=follower)
        for client in (writer, viewer):
            await client.close()
        for server in (here, there):
            await asyncio.to_thread(server.kill)
    finally:
        running.kill()
        running.wait()
