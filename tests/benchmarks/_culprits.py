"""One person who asks for a lot, as a process: ``python -m tests.benchmarks._culprits <task>``.

The task is a JSON object: ``what`` (a key of :data:`KINDS`), ``base``, ``session``, ``seconds`` and
what else that kind needs. Prints ``begun`` once the load is on, and at its end one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp

Task = dict[str, Any]
TOKEN = "c" * 32
#: Pages, forms and searches at once.
AT_ONCE = 6
#: Seconds for what was asked in time to be answered.
GRACE = 30.0
#: An abandoned request is left after so many seconds.
ABANDONED = 0.3
FORM = b"a=b&" * (1024**2 // 4)
FORM_MEGABYTES = 20
STREAMS, STREAMED_BY = 50, "500-at-50"
#: Sockets that one person may have open.
SOCKETS = 20
#: Words that thousands of messages hold, OR-ed and ranked.
QUERY = " ".join(f"harbour{number} lantern letter" for number in range(20))
#: What costs a renderer most for its length; each is a message.
COSTLY = (
    "$${" * 123_000,
    "[" * 50_000,
    "*_" * 60_000 + "a" + "_*" * 60_000,
    "> " * 5_000 + "a",
    "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + ("|b" * 2_000 + "|\n") * 20,
    "$\\frac{" * 20_000 + "1" + "}{2}$" * 20_000,
    "```python\n" + "x = [" * 30_000 + "\n```",
    "\\(" * 60_000,
    "<a href='" * 20_000,
    "![" * 30_000,
)


async def imports(http: aiohttp.ClientSession, task: Task) -> Task:
    """One file, and then its progress to the end."""
    started = time.monotonic()
    begun()
    report = await imported(http, Path(task["file"]))
    return {**report, "seconds": time.monotonic() - started}


async def imported(http: aiohttp.ClientSession, file: Path) -> Task:
    """What became of a file; the answer may be the report, or a job that ends with one."""
    form = aiohttp.FormData()
    with file.open("rb") as stream:
        form.add_field("file", stream, filename=file.name)
        try:
            async with http.post("/import/", data=form) as answer:
                said = await _json(answer)
        except aiohttp.ClientError as error:
            return {"state": "failed", "why": type(error).__name__}
    if answer.status >= 400:
        return {"state": "failed", "why": f"HTTP {answer.status} {said.get('error', '')}"}
    while said.get("state") in {"waiting", "running"}:
        await asyncio.sleep(0.2)
        async with http.get(f"/import/{said['job']}/") as answer:
            said = {**said, **await _json(answer)}
    return {"state": "finished", **said}


async def _json(answer: aiohttp.ClientResponse) -> Task:
    """The answer's object; empty where it is none."""
    with suppress(ValueError, aiohttp.ContentTypeError):
        said = await answer.json()
        return dict(said) if isinstance(said, dict) else {}
    return {}


async def renders(http: aiohttp.ClientSession, task: Task) -> Task:
    """Pages of the costliest messages, six at once, every other one abandoned."""
    path = f"/c/{task['code']}/"

    async def page(number: int) -> str:
        patience = ABANDONED if number % 2 else None
        timeout = aiohttp.ClientTimeout(total=patience)
        async with http.get(path, headers={"Accept": "text/html"}, timeout=timeout) as answer:
            await answer.read()
            return str(answer.status)

    return await _again_and_again(page, task["seconds"])


async def posts_forms(http: aiohttp.ClientSession, task: Task) -> Task:
    """20 MB of fields each, by nobody."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(FORM_MEGABYTES):
            yield FORM

    async def post(number: int) -> str:
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": ""}
        if number % 2:
            kind["Content-Length"] = str(FORM_MEGABYTES * len(FORM))
        async with http.post("/accounts/login/", data=pieces(), headers=kind) as answer:
            return str(answer.status)

    return await _again_and_again(post, task["seconds"])


async def searches(http: aiohttp.ClientSession, task: Task) -> Task:
    """Queries of many common words over all that this person has."""

    async def search(number: int) -> str:
        async with http.get("/search/", params={"q": QUERY, "page": 1 + number % 20}) as answer:
            await answer.read()
            return str(answer.status)

    return await _again_and_again(search, task["seconds"])


async def streams(http: aiohttp.ClientSession, task: Task) -> Task:
    """Fifty replies at 50 tokens a second, one after the other in each of fifty conversations.

    As many as may be are followed over a socket, the others are asked for now and then.
    """
    codes = []
    for _ in range(STREAMS):
        async with http.post("/c/", json={"model": STREAMED_BY}) as answer:
            codes.append((await answer.json())["code"])

    async def reply(number: int) -> str:
        code = codes[number % STREAMS]
        fields = {"text": "Go on.", "client_msg_id": str(uuid.uuid4())}
        async with AsyncExitStack() as stack:
            socket = None
            if number % STREAMS < SOCKETS:
                address = f"/ws/c/{code}/?format=json&after=0"
                socket = await stack.enter_async_context(http.ws_connect(address))
                await socket.receive()
            async with http.post(f"/c/{code}/messages/", json=fields) as answer:
                turn = (await _json(answer)).get("turn")
            if turn and socket:
                await _finished(socket, turn)
            elif turn:
                await _ended(http, f"/c/{code}/turns/{turn}/")
        return str(answer.status)

    return await _again_and_again(reply, task["seconds"], STREAMS)


async def _finished(socket: aiohttp.ClientWebSocketResponse, turn: int) -> None:
    """Follow a reply to its end, which a state may tell in place of the event."""
    async for frame in socket:
        event = frame.json()
        ended = event["turn"] if event["type"] == "turn-finished" else None
        if ended == turn or (event["type"] == "state" and not event["turn"]):
            return


async def _ended(http: aiohttp.ClientSession, path: str) -> None:
    """Ask for a turn until it has ended."""
    while True:
        await asyncio.sleep(2)
        async with http.get(path) as told:
            if (await told.json())["finished_at"]:
                return


KINDS: dict[str, Callable[[aiohttp.ClientSession, Task], Awaitable[Task]]] = {
    "import": imports,
    "render": renders,
    "forms": posts_forms,
    "search": searches,
    "streams": streams,
}


async def _again_and_again(
    ask: Callable[[int], Awaitable[str]], seconds: float, at_once: int = AT_ONCE
) -> Task:
    """How often each answer came, asking ``at_once`` at a time."""
    came: Counter[str] = Counter()
    until = time.monotonic() + seconds
    begun()

    async def one(number: int) -> None:
        while time.monotonic() < until:
            try:
                came[await ask(number)] += 1
            except (aiohttp.ClientError, TimeoutError) as error:
                came[type(error).__name__] += 1
            number += at_once

    tasks = [asyncio.create_task(one(number)) for number in range(at_once)]
    _, pending = await asyncio.wait(tasks, timeout=seconds + GRACE)
    if pending:
        came["unanswered"] += len(pending)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return {"answers": dict(came)}


def begun() -> None:
    """Tell whoever measures that it goes on."""
    print("begun", flush=True)


def client(base: str, session: str) -> aiohttp.ClientSession:
    """A browser of somebody who is signed in."""
    headers = {
        "Accept": "application/json",
        "Origin": base,
        "X-CSRFToken": TOKEN,
        "Cookie": f"csrftoken={TOKEN}; sessionid={session}",
    }
    return aiohttp.ClientSession(
        base,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    )


async def _run(task: Task) -> None:
    async with client(task["base"], task["session"]) as http:
        print(json.dumps(await KINDS[task["what"]](http, task)), flush=True)


if __name__ == "__main__":
    asyncio.run(_run(json.loads(sys.argv[1])))
