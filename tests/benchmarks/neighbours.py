"""What others wait for while one person asks for a lot: a page, and a send that is accepted.

One after the other: a large export is imported, that person searches in it, nobody in particular
posts forms of 20 MB, fifty replies stream at once, and pages of the messages that cost a renderer
most are asked for six at a time and abandoned. Each beside the same neighbours just before it, in
quiet. At the end of the last, while it goes on, the server is told to end. The culprit is a process
of its own, and the product is not kept to one core.

``NEIGHBOURS_MEGABYTES`` (200) and ``NEIGHBOURS_SECONDS`` (45, of each measurement but the import's)
make it smaller.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.benchmarks import _culprits
from tests.benchmarks._processes import announced, sessions
from tests.servers import ROOT, RunningServer, start_server

#: Milliseconds of a page and of a send, at the 99th percentile.
MOST = 300.0
#: A person who writes again after a second is in a hurry already. Five who pause for a tenth of one
#: fill a core by themselves, and then wait for one another.
NEIGHBOURS, CONVERSATIONS, PAUSE = 5, 8, 1.0
#: Seconds after which an answer that did not come counts as one that took so long.
PATIENCE = 60.0
#: Of an import that does not end.
LONGEST = 1800.0
#: Characters of a message and messages of a conversation in the export.
MESSAGE, MESSAGES = 1_000, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything."""

    megabytes: float = 200.0
    seconds: float = 45.0


@dataclass(slots=True)
class Waits:
    """Seconds that the neighbours waited."""

    page: list[float] = field(default_factory=list)
    send: list[float] = field(default_factory=list)
    refused: int = 0
    """Pages and sends that were answered otherwise than they should, or not at all."""


def main() -> int:
    """0 when the p99 of every page and send is at most ``MOST``, and all of them came."""
    size = Size(
        megabytes=float(os.environ.get("NEIGHBOURS_MEGABYTES", Size().megabytes)),
        seconds=float(os.environ.get("NEIGHBOURS_SECONDS", Size().seconds)),
    )
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(measure(Path(folder), size)) else 1


async def measure(folder: Path, size: Size) -> bool:
    """Print the table; whether all of it reached what is demanded."""
    with ExitStack() as stack:
        upstream, _ = stack.enter_context(announced("tests.benchmarks._upstream"))
        server = start_server(
            folder,
            OPENAI_BASE_URL=f"{upstream}/v1",
            CHAT_MODEL="20-at-0",
            CONTEXT_WINDOW="200000",
            # Fifty of them are one person's.
            REPLIES_PER_USER=str(_culprits.STREAMS),
        )
        stack.callback(server.kill)
        keys = sessions(server)
        culprit, others = keys[0], keys[1 : NEIGHBOURS + 1]
        async with neighbours(server, others) as people:
            task = {
                "base": server.base_url,
                "session": culprit,
                "seconds": size.seconds,
                "file": str(_export(folder / "export.json", size.megabytes)),
                "code": await _costly(server, culprit, _costly_export(folder / "costly.json")),
            }
            _print_head()
            reached = True
            for what in ("import", "search", "forms", "streams", "render"):
                quiet = await _wait(people, for_seconds=size.seconds)
                loud, told, peak = await _beside(server, people, {**task, "what": what})
                reached &= _print_rows(what, quiet, loud)
                print(f"{'':9}{_told(told)}; peak {peak / 1e6:,.0f} MB in RAM", flush=True)
                reached &= told.get("state") != "failed"
            print(
                f"{'end':9}{await _end(server, task):.1f} s from SIGTERM, in the midst of renders"
            )
    return bool(reached)


# The neighbours


@dataclass(slots=True, kw_only=True)
class Neighbour:
    """Somebody who reads and writes in a few conversations, one after the other."""

    http: aiohttp.ClientSession
    codes: list[str]

    async def live(self, until: asyncio.Event, waits: Waits) -> None:
        """Open a page, send a message there, pause, until the event."""
        number = 0
        while not until.is_set():
            code = self.codes[number % len(self.codes)]
            number += 1
            pages = {"Accept": "text/html"}
            waits.page.append(await self._timed(waits, "GET", f"/c/{code}/", headers=pages))
            fields = {"text": "And then?", "client_msg_id": str(uuid.uuid4())}
            waits.send.append(await self._timed(waits, "POST", f"/c/{code}/messages/", json=fields))
            await asyncio.sleep(PAUSE)

    async def _timed(self, waits: Waits, method: str, path: str, **options: Any) -> float:
        begun = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE), self.http.request(method, path, **options) as got:
                await got.read()
                waits.refused += got.status >= 400
        except (aiohttp.ClientError, TimeoutError):
            waits.refused += 1
            return max(time.monotonic() - begun, PATIENCE)
        return time.monotonic() - begun


@asynccontextmanager
async def neighbours(server: RunningServer, keys: Sequence[str]) -> AsyncIterator[list[Neighbour]]:
    """They are signed in, and each of their conversations has an answered message."""
    people: list[Neighbour] = []
    try:
        for key in keys:
            one = Neighbour(http=_culprits.client(server.base_url, key), codes=[])
            people.append(one)
            for _ in range(CONVERSATIONS):
                async with one.http.post("/c/", json={}) as answer:
                    one.codes.append((await answer.json())["code"])
        await _wait(people, for_seconds=1.0)
        yield people
    finally:
        for one in people:
            await one.http.close()


async def _wait(people: Sequence[Neighbour], *, for_seconds: float) -> Waits:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(for_seconds, over.set)
    return await _until(over, people)


async def _until(over: asyncio.Event, people: Sequence[Neighbour]) -> Waits:
    waits = Waits()
    await asyncio.gather(*(one.live(over, waits) for one in people))
    return waits


# The culprit


@asynccontextmanager
async def _culprit(task: dict[str, Any]) -> AsyncIterator[asyncio.StreamReader]:
    """The culprit's process, once its load is on; what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks._culprits",
        json.dumps(task),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        limit=64 * 1024**2,
    )
    assert process.stdout is not None
    try:
        assert (await process.stdout.readline()).strip() == b"begun", task["what"]
        yield process.stdout
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _beside(
    server: RunningServer, people: Sequence[Neighbour], task: dict[str, Any]
) -> tuple[Waits, dict[str, Any], int]:
    """What the neighbours wait while the culprit is at work; what it said; bytes in RAM at most."""
    _forget_peak(server.process.pid)
    over = asyncio.Event()
    async with _culprit(task) as printed:
        waiting = asyncio.create_task(_until(over, people))
        try:
            line = await asyncio.wait_for(printed.readline(), LONGEST)
            told = json.loads(line) if line else {"state": "failed", "why": "the culprit died"}
        except TimeoutError:
            told = {"state": "failed", "why": f"not finished after {LONGEST:g} s"}
        over.set()
        waits = await waiting
    return waits, told, _peak(server.process.pid)


async def _end(server: RunningServer, task: dict[str, Any]) -> float:
    """Seconds from SIGTERM to the end, while pages are being rendered."""
    async with _culprit({**task, "what": "render", "seconds": PATIENCE}):
        await asyncio.sleep(1.0)
        begun = time.monotonic()
        server.process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(server.process.wait), PATIENCE)
        return time.monotonic() - begun


def _export(file: Path, megabytes: float) -> Path:
    """An export in Claude's form, of so many megabytes, no conversation like another."""
    filler = "The lantern of the harbour was lit, and a letter came by the last boat. " * 20
    with file.open("w") as out:
        out.write("[")
        number = 0
        while out.tell() < megabytes * 1e6:
            messages = [
                {
                    "sender": ("human", "assistant")[place % 2],
                    "text": f"harbour{number % 20} {number}.{place}. {filler}"[:MESSAGE],
                }
                for place in range(MESSAGES)
            ]
            whole = {"uuid": str(uuid.uuid4()), "name": f"No. {number}", "chat_messages": messages}
            out.write(("," if number else "") + json.dumps(whole))
            number += 1
        out.write("]")
    return file


def _costly_export(file: Path) -> Path:
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(_culprits.COSTLY)
    ]
    file.write_text(json.dumps(messages))
    return file


async def _costly(server: RunningServer, session: str, file: Path) -> str:
    """The code of a conversation of this person that is as dear to render as can be."""
    async with _culprits.client(server.base_url, session) as http:
        report = await _culprits.imported(http, file)
    assert report["state"] == "finished", report
    return str(report["conversations"][0]["code"])


# What is printed


def _forget_peak(pid: int) -> None:
    """Begin anew with the kernel's count of the most memory; see proc(5), clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _figures(seconds: Sequence[float]) -> tuple[float, float, float]:
    """p50, p99 and the worst, in milliseconds."""
    ordered = sorted(1000 * one for one in seconds)
    return tuple(ordered[round(share * (len(ordered) - 1))] for share in (0.5, 0.99, 1.0))  # type: ignore[return-value]


def _print_head() -> None:
    print(
        f"{NEIGHBOURS} neighbours; milliseconds: p50, p99, worst; the same in quiet; ratio of p99"
    )


def _print_rows(what: str, quiet: Waits, loud: Waits) -> bool:
    reached = not loud.refused
    for name in ("page", "send"):
        own, control = _figures(getattr(loud, name)), _figures(getattr(quiet, name))
        shown = "  ".join(f"{value:8.1f}" for value in (*own, *control))
        good = own[1] <= MOST
        reached &= good
        verdict = "reached" if good else "MISSED"
        print(
            f"{what:9}{name:5}n {len(getattr(loud, name)):5}  {shown}  × {own[1] / control[1]:6.2f}"
            f"  p99 ≤ {MOST:g} {verdict}",
            flush=True,
        )
    if loud.refused:
        print(f"{'':9}{loud.refused} pages or sends of the neighbours were refused or never came")
    return reached


def _told(told: dict[str, Any]) -> str:
    """The culprit's own account, in short."""
    if "answers" in told:
        return "answers: " + ", ".join(f"{n} × {code}" for code, n in told["answers"].items())
    if told.get("state") == "failed":
        return f"failed after {told.get('seconds', 0.0):,.0f} s: {told.get('why', told)}"
    counts = {name: told[name] for name in ("imported", "already", "messages") if name in told}
    return f"{told['state']} in {told.get('seconds', 0.0):,.0f} s: {counts}"


if __name__ == "__main__":
    raise SystemExit(main())
