"""Two processes behind nginx, on PostgreSQL and Redis, started by the script for it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.faults.database import Database
from tests.faults.following import Follower, beside, replied
from tests.json_client import Json, JsonClient
from tests.ports import free_port
from tests.servers import ROOT, START_TIMEOUT, server_environment
from tests.services import ensure_nginx, own_database, postgres, redis
from tests.upstreams import RunningUpstream, running_upstream

# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 30
SLOW = {"text": "word " * 600, "seconds_a_word": 0.02}


@dataclass(kw_only=True)
class Deployment:
    """What the script started: nginx in front, and the processes behind it."""

    process: subprocess.Popen[str]
    front: str
    behind: list[str]
    database: Database
    upstream: RunningUpstream
    link: str = ""
    lines: list[str] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "".join(self.lines)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One for all tests here but the last, which kills a process."""
    ensure_nginx()
    folder = tmp_path_factory.mktemp("many")
    with ExitStack() as stack:
        database = stack.enter_context(own_database(stack.enter_context(postgres())))
        bus = stack.enter_context(redis())
        upstream = stack.enter_context(running_upstream())
        yield from _deployed(folder, database, bus, upstream)


def _deployed(
    folder: Path, database: str, bus: str, upstream: RunningUpstream
) -> Iterator[Deployment]:
    front, *ports = free_port(), free_port(), free_port()
    environment = server_environment(
        folder,
        front,
        DJANGO_SETTINGS_MODULE="tests.faults.settings",
        DATABASE_URL=database,
        REDIS_URL=bus,
        OPENAI_BASE_URL=upstream.base_url,
        CONTEXT_WINDOW="4000",
    )
    listen = f"127.0.0.1:{front}"
    script = [sys.executable, "-m", "chatapp.deployment.many", "--listen", listen]
    process = subprocess.Popen(
        [*script, "--ports", *map(str, ports)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deployment = Deployment(
        process=process,
        front=f"http://{listen}",
        behind=[f"http://127.0.0.1:{port}" for port in ports],
        database=Database(database),
        upstream=upstream,
    )
    serves = threading.Event()
    reader = threading.Thread(target=_read, args=(deployment, serves), daemon=True)
    reader.start()
    try:
        assert serves.wait(START_TIMEOUT), deployment.log
        assert process.poll() is None, deployment.log
        deployment.pids = [int(pid) for pid in re.findall(r" pid (\d+)$", deployment.log, re.M)]
        yield deployment
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def _read(deployment: Deployment, serves: threading.Event) -> None:
    assert deployment.process.stdout is not None
    for line in deployment.process.stdout:
        deployment.lines.append(line)
        if "/accounts/link/" in line:
            deployment.link = line.strip()
        if line.startswith("Serving on "):
            serves.set()
    serves.set()


@dataclass(kw_only=True)
class People:
    """One person at three doors: through nginx, and at each process."""

    front: JsonClient
    here: JsonClient
    there: JsonClient


_signed_in: dict[str, list[tuple[str, str]]] = {}


@pytest.fixture
async def people(deployment: Deployment) -> AsyncIterator[People]:
    front = JsonClient(deployment.front)
    if deployment.link not in _signed_in:
        await front.sign_in(deployment.link)
        jar = front._http.cookie_jar
        _signed_in[deployment.link] = [(cookie.key, cookie.value) for cookie in jar]
    clients = [
        beside(_signed_in[deployment.link], address, origin=deployment.front)
        for address in (deployment.front, *deployment.behind)
    ]
    await front.close()
    await clients[0].create()
    for client in clients:
        client.code = clients[0].code
    yield People(front=clients[0], here=clients[1], there=clients[2])
    for client in clients:
        await client.close()


async def ended(client: JsonClient) -> Json:
    """The page once no reply is written any more."""
    async with asyncio.timeout(PATIENCE):
        while (page := await client.get())["turn"] is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return page


async def test_it_works(deployment: Deployment, people: People) -> None:
    """The whole job through nginx: a page, a message, what is shown of the reply, its end."""
    follower = Follower(people.front)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        await people.front.send("Hello")
        await follower.until(replied(2))
        await follower.until_quiet()
    page = await people.there.get()
    assert page["messages"][1]["text"] == "You said: Hello"
    assert "Traceback" not in deployment.log


async def test_w09_a_socket_through_nginx_stays_open_while_nothing_happens(
    deployment: Deployment, people: People
) -> None:
    """Pings of the server pass the proxy: the client answers them, and stays.

    Breaks when: nginx is not told to pass the upgrade on.
    """
    cookies = "; ".join(f"{name}={value}" for name, value in _signed_in[deployment.link])
    address = deployment.front.replace("http", "ws", 1) + f"/ws/c/{people.front.code}/"
    async with connect(
        address,
        origin=deployment.front,  # type: ignore[arg-type]
        additional_headers={"Cookie": cookies},
        ping_interval=None,
    ) as socket:
        await asyncio.wait_for(socket.recv(), PATIENCE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(socket.recv(), 3)
        await people.here.post("settings/", title="Still here")
        assert "Still here" in str(await asyncio.wait_for(socket.recv(), PATIENCE))


async def test_a_viewer_there_follows_a_reply_that_runs_here(
    deployment: Deployment, people: People
) -> None:
    """Deltas come by Redis as they are written, not by the look every two seconds.

    Breaks when: the bus does not publish to the layer, or does not join the group.
    """
    deployment.upstream.script({"text": "word " * 100, "seconds_a_word": 0.02})
    follower = Follower(people.there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        await people.here.send("Hello")
        await follower.until(replied(2))
        await follower.until_quiet()
    kinds = [event["type"] for event in follower.journal]
    # A state may stand for any other event; five deltas come by Redis or not at all.
    assert kinds.count("delta") >= 5


async def test_a_compression_here_is_seen_there(deployment: Deployment, people: People) -> None:
    """Breaks when: signals of compression reach the viewers of one process only."""
    for number in range(4):
        await people.here.send(f"Message {number}. You must always say please. " + "word " * 300)
        await ended(people.here)
    follower = Follower(people.there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        status, answer = await people.here.post("compact/")
        assert status < 300, answer
        await follower.until(lambda mirror: mirror.compression.get("version") == 1)
        await follower.until_quiet()
    # A state may stand for an event that Redis lost, and tells the same.
    assert any(
        event["type"] == "compression-started"
        or (event["type"] == "state" and event["compression"]["running"])
        for event in follower.journal
    )


async def test_a_page_that_is_loaded_there_says_what_is_compressed_here(
    deployment: Deployment, people: People
) -> None:
    """Breaks when: how many messages a run takes in is known to its own process only."""
    for number in range(4):
        await people.here.send(f"Message {number}. You must always say please. " + "word " * 300)
        await ended(people.here)
    assert (await people.there.get())["compression"]["messages_under_way"] == 0
    before = len(await asyncio.to_thread(deployment.upstream.chats))
    deployment.upstream.script({"steps": [{"wait": None}]})
    status, answer = await people.here.post("compact/")
    assert status < 300, answer
    async with asyncio.timeout(PATIENCE):
        # Or what waits would be the answer to whoever asks next.
        while len(await asyncio.to_thread(deployment.upstream.chats)) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    begun = (await people.there.get())["compression"]
    assert begun["running"]
    await people.here.post("compact/cancel/")
    async with asyncio.timeout(PATIENCE):
        while (done := await people.there.get())["compression"]["running"]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert begun["messages_under_way"] in range(2, 8)
    assert done["compression"]["messages_under_way"] == 0
    deployment.upstream.release()


async def test_l14_stop_from_another_process_closes_the_upstream_in_time(
    deployment: Deployment, people: People
) -> None:
    """Within two seconds the viewers see the end, in whichever process they are.

    Breaks when: a runner looks for stops that others have stored less often than it stores texts.
    """
    deployment.upstream.script(SLOW)
    follower = Follower(people.here)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        await people.here.send("Hello")
        await follower.until(lambda mirror: (mirror.messages.get(2) or {}).get("text"))
        stopped = time.monotonic()
        status, _ = await people.there.post("stop/")
        assert status < 300
        await follower.until(replied(2))
        assert time.monotonic() - stopped < 2.5
    page = await people.there.get()
    assert page["turns"][0]["status"] == "stopped"
    assert await asyncio.to_thread(deployment.upstream.left_alone)


async def test_d07_tabs_at_both_processes_see_one_order(
    deployment: Deployment, people: People
) -> None:
    """I3: sent from both at once; who comes second waits, and both tabs show the same.

    Breaks when: seqs are given by a process and not under the conversation's row.
    """
    tabs = [Follower(people.here), Follower(people.there), Follower(people.front)]
    async with AsyncExitStack() as stack:
        for tab in tabs:
            await stack.enter_async_context(tab.following())
        for tab in tabs:
            await tab.until(lambda mirror: mirror.states)
        for number in range(3):
            await asyncio.gather(
                people.here.send(f"here {number}"), people.there.send(f"there {number}")
            )
            await ended_with(people.front, 4 * (number + 1), deployment)
        for tab in tabs:
            await tab.until(replied(12))
            await tab.until_quiet()
    page = await people.front.get()
    assert [message["seq"] for message in page["messages"]] == list(range(1, 13))
    said = {message["text"] for message in page["messages"] if message["role"] == "user"}
    assert said == {f"{where} {number}" for where in ("here", "there") for number in range(3)}


async def ended_with(client: JsonClient, count: int, deployment: Deployment) -> None:
    """Until so many messages are there, and no reply is written any more."""
    deadline = time.monotonic() + PATIENCE
    while len((page := await ended(client))["messages"]) != count:
        assert time.monotonic() < deadline, (page, deployment.log[-4000:])
        await asyncio.sleep(0.05)


async def test_i20_a_sign_out_here_closes_the_sockets_there(
    deployment: Deployment, people: People
) -> None:
    """I20, over processes: within ten seconds.

    Breaks when: a socket looks at its session at the handshake only.
    """
    follower = Follower(people.there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        begun = time.monotonic()
        assert await signed_out(people.here) < 400
        async with asyncio.timeout(PATIENCE):
            while follower.close_code is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert follower.close_code == 4401
    assert time.monotonic() - begun < 10
    # The others of this module need a session again.
    _signed_in.clear()
    command = [sys.executable, "manage.py", "signin_link", "--base-url", deployment.front]
    environment = _environment_of(deployment.pids[0])
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    deployment.link = done.stdout.strip()


async def signed_out(client: JsonClient) -> int:
    async with client._http.post("/accounts/logout/", allow_redirects=False) as answer:
        return answer.status


def _environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


async def test_i5_a_process_is_killed_and_the_other_one_ends_its_turn(
    deployment: Deployment, people: People
) -> None:
    """Viewers elsewhere see it; nginx sends everybody to the process that lives. Comes last.

    Breaks when: only the process that began a turn can end it.
    """
    deployment.upstream.script(SLOW)
    follower = Follower(people.there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        await people.here.send("Hello")
        await follower.until(lambda mirror: (mirror.messages.get(2) or {}).get("text"))
        os.kill(deployment.pids[0], signal.SIGKILL)
        await follower.until(replied(2))
        await follower.until_quiet()
    page = await people.there.get()
    assert page["turns"][0]["status"] == "interrupted"
    assert page["messages"][1]["status"] == "partial"
    for _ in range(6):
        assert (await people.front.get())["messages"] == page["messages"]
    await people.front.send("Go on")
    assert (await ended(people.front))["messages"][-1]["text"] == "You said: Go on"
