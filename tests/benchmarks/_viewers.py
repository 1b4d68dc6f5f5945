"""Viewers, in a process of their own: ``python -m tests.benchmarks._viewers``.

Reads one line of JSON for each task and answers with one: ``kind`` is ``first`` (time to first
token, in turn from each target), ``streams`` (many at once from one target), ``beginnings`` (many
sends within a second), ``pages`` (open sockets and keep them until the next line).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import statistics
import struct
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp

Json = dict[str, Any]
TIMEOUT = 60.0
SECRET = "b" * 32
DIGITS = str.maketrans("abcdefghij", "0123456789")


def now() -> float:
    """Microseconds of the clock that is in the tokens."""
    return time.monotonic_ns() / 1000


class Socket(asyncio.Protocol):
    """A websocket, raw: no library's cost is in the figures."""

    def __init__(self, url: str, headers: dict[str, str], on_event: Callable[[Json], None]) -> None:
        self._url = urlsplit(url)
        self._headers = headers
        self._on_event = on_event
        self._received = bytearray()
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self) -> None:
        """Returns when the handshake is done."""
        loop = asyncio.get_running_loop()
        host, port = self._url.hostname or "", self._url.port or 80
        await loop.create_connection(lambda: self, host, port)
        await asyncio.wait_for(self.open, TIMEOUT)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        headers = {
            "Host": self._url.netloc,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            **self._headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        transport.write(f"GET {self._url.path}?{self._url.query} HTTP/1.1\r\n{lines}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self.open.done():
            head, ended, _ = bytes(self._received).partition(b"\r\n\r\n")
            if not ended:
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            del self._received[: len(head) + 4]
            self.open.set_result(None)
        while (frame := self._frame()) is not None:
            code, payload = frame
            if code == 1:
                self._on_event(json.loads(payload))
            elif code == 9:
                self._write(10, payload)

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame; servers neither mask nor (these ones) split them."""
        if len(self._received) < 2:
            return None
        length, start = self._received[1] & 127, 2
        if length > 125:
            start = 4 if length == 126 else 10
            if len(self._received) < start:
                return None
            length = int.from_bytes(self._received[2:start], "big")
        if len(self._received) < start + length:
            return None
        code, payload = self._received[0] & 15, bytes(self._received[start : start + length])
        del self._received[: start + length]
        return code, payload

    def _write(self, code: int, payload: bytes) -> None:
        length = bytes([128 | len(payload)]) if len(payload) < 126 else b"\xfe"
        if len(payload) > 125:
            length += struct.pack("!H", len(payload))
        # A mask of zeros leaves the payload as it is.
        self._transport.write(bytes([128 | code]) + length + bytes(4) + payload)

    def say(self, value: Json) -> None:
        """Send one frame of JSON."""
        self._write(1, json.dumps(value).encode())

    def close(self) -> None:
        """Go away."""
        self._transport.close()


class Viewer:
    """One person's page of one conversation, or one socket of a relay."""

    def __init__(self, target: Json, number: int, http: aiohttp.ClientSession) -> None:
        sessions = target.get("sessions")
        self._base, self._http = target["base"], http
        self._ours = bool(sessions)
        self._headers = {"Origin": self._base}
        if sessions:
            cookies = f"sessionid={sessions[number % len(sessions)]}; csrftoken={SECRET}"
            self._headers |= {"Cookie": cookies, "X-CSRFToken": SECRET}
        self._code = ""
        self._asked = False
        self._loop = asyncio.get_running_loop()
        self.reset()

    def reset(self) -> None:
        """Before the next reply."""
        self.arrivals: list[tuple[float, float]] = []
        # (when a token was sent, when it came), in microseconds.
        self.first: asyncio.Future[float] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()

    async def open(self, model: str) -> None:
        """Make a conversation and follow it."""
        path = "/"
        if self._ours:
            made = await self._post("/c/", {"model": model, "title": "benchmark"})
            self._code = made["code"]
            path = f"/ws/c/{self._code}/"
        address = f"{self._base.replace('http', 'ws')}{path}?format=json"
        state: asyncio.Future[None] = self._loop.create_future()

        def hear(event: Json) -> None:
            if event["type"] == "state" and not state.done():
                state.set_result(None)
            self._hear(event)

        self._socket = Socket(address, self._headers, hear)
        await self._socket.connect()
        if self._ours:
            await asyncio.wait_for(state, TIMEOUT)
        self._asked = True

    async def look(self) -> None:
        """Load the page, as whoever opens one does before the socket."""
        headers = {**self._headers, "Accept": "text/html"}
        async with self._http.get(f"{self._base}/c/{self._code}/", headers=headers) as answer:
            assert answer.status == 200, answer.status
            await answer.read()

    async def ask(self, model: str) -> None:
        """Send a message."""
        if not self._ours:
            self._socket.say({"model": model})
            return
        fields = {"text": "Tell me something.", "client_msg_id": str(uuid.uuid4())}
        await self._post(f"/c/{self._code}/messages/", fields)

    async def _post(self, path: str, fields: dict[str, str]) -> Json:
        headers = {**self._headers, "Accept": "application/json"}
        async with self._http.post(self._base + path, data=fields, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            value: Json = await answer.json()
            return value

    def _hear(self, event: Json) -> None:
        text = event.get("text") if event["type"] == "delta" else None
        if event["type"] == "state" and event["turn"]:
            # The whole text again; what is new in it counts.
            text = event["turn"]["text"]
        elif event["type"] == "state" and self._asked:
            # The reply ended before this viewer was told any of it.
            replies = [one for one in event["messages"] if one["role"] == "assistant"]
            text = replies[-1]["text"] if replies else None
        if text:
            at = now()
            if not self.first.done():
                self.first.set_result(at)
            told = self.arrivals[-1][0] if self.arrivals else 0.0
            sent = [float(word) for word in text.translate(DIGITS).split()]
            self.arrivals += [(one, at) for one in sent if one > told]
        # A viewer that had to catch up is told of the end by a state without an open turn.
        over = event["type"] == "state" and event["turn"] is None and self.first.done()
        if (over or event["type"] == "turn-finished") and not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Go away."""
        self._socket.close()


async def first_tokens(task: Json, http: aiohttp.ClientSession) -> Json:
    """Milliseconds from asking to the first token: of the upstream, and what each target adds."""
    model, body = task["model"], {"model": task["model"], "stream": True, "messages": []}
    viewers = {name: Viewer(target, 0, http) for name, target in task["targets"].items()}
    for viewer in viewers.values():
        await viewer.open(model)
    times: dict[str, list[float]] = {name: [] for name in ("direct", *viewers)}
    for turn in range(task["turns"]):
        begun = now()
        async with http.post(f"{task['upstream']}/v1/chat/completions", json=body) as answer:
            async for line in answer.content:
                if b'"content":"' in line and b'"content":""' not in line:
                    times["direct"].append(now() - begun)
                    break
            await answer.read()
        for name, viewer in viewers.items():
            viewer.reset()
            begun = now()
            await viewer.ask(model) if name != "ours" else None
            asking = asyncio.ensure_future(viewer.ask(model)) if name == "ours" else None
            first = await asyncio.wait_for(viewer.first, TIMEOUT)
            times[name].append(first - begun)
            await asyncio.wait_for(viewer.ended, TIMEOUT)
            if asking is not None:
                await asking
            # What follows a turn is not to be measured with the next one.
            await asyncio.sleep(task.get("pause", 0.05))
        if turn < 3:
            # The first ones fill caches and open connections.
            for values in times.values():
                values.clear()
    for viewer in viewers.values():
        viewer.close()
    direct = times.pop("direct")
    added = {
        name: statistics.median(one - base for one, base in zip(values, direct, strict=True)) / 1000
        for name, values in times.items()
    }
    return {"direct": statistics.median(direct) / 1000, "added": added}


async def streams(task: Json, http: aiohttp.ClientSession) -> Json:
    """Many replies at once: tokens a second while all run, and each token's delay."""
    viewers = [Viewer(task["target"], number, http) for number in range(task["count"])]
    for start in range(0, len(viewers), 20):
        await asyncio.gather(*(one.open(task["model"]) for one in viewers[start : start + 20]))
    print("ready", flush=True)
    await asyncio.gather(*(one.ask(task["model"]) for one in viewers))
    await asyncio.wait_for(asyncio.gather(*(one.ended for one in viewers)), TIMEOUT)
    for one in viewers:
        one.close()
    # While all of them run: from the last one's first token to the first one's last.
    begun = max(one.arrivals[0][0] for one in viewers)
    ended = min(one.arrivals[-1][0] for one in viewers)
    every = [pair for one in viewers for pair in one.arrivals]
    came = sum(begun <= at < ended for _, at in every)
    # A server so slow that its first stream ended before its last began has no such time.
    delays = sorted(at - sent for sent, at in every if begun <= sent < ended or ended <= begun)
    return {
        "tokens": len(every),
        "seconds": (ended - begun) / 1e6,
        "rate": came / (ended - begun) * 1e6 if ended > begun else 0.0,
        "median": delays[len(delays) // 2] / 1000,
        "p99": delays[len(delays) * 99 // 100] / 1000,
    }


async def beginnings(task: Json, http: aiohttp.ClientSession) -> Json:
    """Sends spread over a second: milliseconds from each to its first token."""
    viewers = [Viewer(task["target"], number, http) for number in range(task["count"])]
    for start in range(0, len(viewers), 20):
        await asyncio.gather(*(one.open(task["model"]) for one in viewers[start : start + 20]))

    async def begin(viewer: Viewer, number: int) -> float:
        await asyncio.sleep(number / len(viewers))
        begun = now()
        asking = asyncio.ensure_future(viewer.ask(task["model"]))
        first = await asyncio.wait_for(viewer.first, TIMEOUT)
        await asking
        return (first - begun) / 1000

    times = sorted(await asyncio.gather(*(begin(one, at) for at, one in enumerate(viewers))))
    await asyncio.wait_for(asyncio.gather(*(one.ended for one in viewers)), TIMEOUT)
    for one in viewers:
        one.close()
    return {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


async def pages(task: Json, http: aiohttp.ClientSession) -> Json:
    """Open pages and keep their sockets."""
    viewers = [Viewer(task["target"], number, http) for number in range(task["count"])]
    for one in viewers:
        await one.open(task["model"])
        if task["target"].get("sessions"):
            await one.look()
    _kept.extend(viewers)
    return {"open": len(viewers)}


_kept: list[Viewer] = []
_TASKS = {"first": first_tokens, "streams": streams, "beginnings": beginnings, "pages": pages}


async def main() -> None:
    """Tasks from standard input, results to standard output."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as http:
        while line := await asyncio.to_thread(sys.stdin.readline):
            while _kept:
                _kept.pop().close()
            task = json.loads(line)
            print(json.dumps(await _TASKS[task["kind"]](task, http)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
