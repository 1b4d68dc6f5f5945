"""A model server for benchmarks, as lean as it can be: ``python -m tests.benchmarks._upstream``.

A model is named ``<tokens>-at-<rate>``: so many tokens, so many a second; rate 0 sends all at once.
Each token is the time at which it was sent, in microseconds of the monotonic clock that all
processes of a machine share, so that a viewer can tell each token's delay.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable

MODELS = ("20-at-0", "300-at-50", "500-at-50", "900-at-50")
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"cache-control: no-cache\r\n\r\n"
)
_CHUNK = (
    'data: {"id":"chatcmpl-benchmark","object":"chat.completion.chunk","created":1700000000,'
    '"model":"benchmark","system_fingerprint":"fp_0","choices":[{"index":0,"delta":%s,'
    '"logprobs":null,"finish_reason":%s}]}\n\n'
)
_USAGE = (
    'data: {"id":"chatcmpl-benchmark","object":"chat.completion.chunk","created":1700000000,'
    '"model":"benchmark","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":%d,'
    '"total_tokens":%d}}\n\n'
)
# A word of letters, since Markdown looks for lists at every number.
LETTERS = str.maketrans("0123456789", "abcdefghij")
# A paragraph ends after so many tokens, as in a model's prose.
PARAGRAPH = 60


def _framed(events: Iterable[str]) -> bytes:
    body = "".join(events).encode()
    return b"%x\r\n%b\r\n" % (len(body), body)


def _token(number: int) -> str:
    ending = "\\n\\n" if number % PARAGRAPH == PARAGRAPH - 1 else " "
    word = str(time.monotonic_ns() // 1000).translate(LETTERS)
    text = f'{{"content":"{word}{ending}"}}'
    return _CHUNK % (text, "null")


class Upstream(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, ended, body = bytes(self._received).partition(b"\r\n\r\n")
        if not ended:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(body) < length:
            return
        del self._received[: len(head) + 4 + length]
        if head.startswith(b"POST"):
            self._answer(json.loads(body[:length]))
        else:
            listed = json.dumps({"object": "list", "data": [{"id": name} for name in MODELS]})
            reply = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
            self._transport.write(f"{reply}{len(listed)}\r\n\r\n{listed}".encode())

    def _answer(self, request: dict[str, str]) -> None:
        tokens, _, speed = request["model"].partition("-at-")
        count, rate = int(tokens), float(speed)
        role = _framed([_CHUNK % ('{"role":"assistant","content":""}', "null")])
        if not rate:
            pieces = [_framed([_token(number)]) for number in range(count)]
            self._transport.write(b"".join([_HEAD, role, *pieces]))
            self._end(count)
            return
        self._transport.write(_HEAD + role)
        self._tick(0, count, 1 / rate, asyncio.get_running_loop().time())

    def _tick(self, number: int, count: int, interval: float, begun: float) -> None:
        if number == count:
            self._end(count)
            return
        self._transport.write(_framed([_token(number)]))
        at = begun + (number + 1) * interval
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(at, self._tick, number + 1, count, interval, begun)

    def _end(self, count: int) -> None:
        last = [_CHUNK % ("{}", '"stop"'), _USAGE % (count, count + 40), "data: [DONE]\n\n"]
        self._transport.write(_framed(last) + b"0\r\n\r\n")


async def serve() -> None:
    """Listen on a free port, print the address, answer until killed."""
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    print(f"Serving on http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
