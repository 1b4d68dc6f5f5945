"""A model server for tests: real HTTP, OpenAI's wire format, and it does what it is told.

In a test::

    async with FakeUpstream() as upstream:
        upstream.enqueue(saying("Hello"), failing(503))
        client = OpenAIClient(base_url=upstream.base_url, …)

In a process of its own: ``python -m tests.fake_upstream --port 0`` prints its base URL.
``POST /script`` takes one description or a list of them (see ``fake_scripts.from_json``); those
with ``"for": "summaries"`` wait for the next summary that is asked for, whenever that is.
``POST /release`` lets every answer go on that waits at a step ``{"wait": null}``.
``GET /requests`` tells what was asked, ``POST /reset`` forgets both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.fake_scripts import (
    Chunk,
    Cut,
    Delay,
    Done,
    Finish,
    Json,
    KeepAlive,
    Raw,
    Reasoning,
    Script,
    Step,
    SummaryHalf,
    Text,
    Tool,
    Usage,
    Wait,
    default_answer,
    from_json,
    is_summary_request,
    prompt_tokens,
    summary_delta,
    tokens,
)
from tests.ports import free_port

Handler = Callable[[Json], Script]
DEFAULT_MODELS: tuple[Json, ...] = ({"id": "fake-model", "object": "model", "max_model_len": 8192},)


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    json: Json
    """The parsed body; empty for a GET."""
    peer: str
    """Address and port of the client: the same for requests on one connection."""
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client went away before the answer was whole."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer was sent whole."""


class FakeUpstream:
    """The server. ``handler`` answers what no enqueued script answers."""

    def __init__(
        self,
        *,
        handler: Handler = default_answer,
        models: tuple[Json, ...] = DEFAULT_MODELS,
        port: int = 0,
    ) -> None:
        self.handler = handler
        self.models: tuple[Json, ...] | Script = models
        self.requests: list[Recorded] = []
        self._queue: deque[Script] = deque()
        self._summaries: deque[Script] = deque()
        self._held: list[Wait] = []
        self._port = port
        self._runner: web.AppRunner | None = None
        self._came = asyncio.Condition()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        return f"{self.origin}/v1"

    @property
    def chats(self) -> list[Recorded]:
        """The requests for a reply, without those for the list of models."""
        return [request for request in self.requests if request.path.endswith("/completions")]

    def enqueue(self, *scripts: Script) -> None:
        """These are the next answers, in order."""
        self._queue.extend(scripts)

    def forget(self) -> None:
        """Answers that were not asked for are not given any more."""
        self._queue.clear()
        self._summaries.clear()

    def enqueue_summaries(self, *scripts: Script) -> None:
        """These are the next summaries, whatever else is asked for before them."""
        self._summaries.extend(scripts)

    async def came(self, number: int) -> Recorded:
        """The chat request of that number, 1 and up, as soon as it has come in."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.chats) >= number)
        return self.chats[number - 1]

    async def start(self) -> None:
        """Listen, at the same port each time; it is known afterwards."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.get("/v1/models", self._list_models),
                web.post("/v1/chat/completions", self._chat),
                web.post("/script", self._take_scripts),
                web.get("/requests", self._tell_requests),
                web.post("/release", self._release),
                web.post("/reset", self._reset),
            ]
        )
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        self._port = self._port or free_port()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> FakeUpstream:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def _record(self, request: web.Request, body: Json) -> Recorded:
        recorded = Recorded(
            method=request.method,
            path=request.path,
            headers={name.lower(): value for name, value in request.headers.items()},
            json=body,
            peer=str(request.transport.get_extra_info("peername") if request.transport else ""),
        )
        self.requests.append(recorded)
        return recorded

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        self._record(request, {})
        if isinstance(self.models, Script):
            return _whole(self.models)
        return web.json_response({"object": "list", "data": list(self.models)})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        recorded = self._record(request, body)
        script = self._next_script(body)
        async with self._came:
            self._came.notify_all()
        try:
            if script.body is not None:
                response: web.StreamResponse = _whole(script)
            elif body.get("stream"):
                response = await _Streaming(request, body, script).run()
            else:
                response = web.json_response(whole_reply(body, script))
        except (asyncio.CancelledError, ConnectionResetError):
            recorded.disconnected.set()
            raise
        recorded.answered.set()
        return response

    def _next_script(self, body: Json) -> Script:
        if self._summaries and is_summary_request(body):
            return self._summaries.popleft()
        return self._queue.popleft() if self._queue else self.handler(body)

    async def _take_scripts(self, request: web.Request) -> web.Response:
        described = await request.json()
        scripts = described if isinstance(described, list) else [described]
        for one in scripts:
            script = from_json(one)
            self._held += [step for step in script.steps if isinstance(step, Wait)]
            summaries = one.get("for") == "summaries"
            (self.enqueue_summaries if summaries else self.enqueue)(script)
        return web.json_response({"queued": len(self._queue)})

    async def _tell_requests(self, _request: web.Request) -> web.Response:
        told = [
            {
                "method": one.method,
                "path": one.path,
                "headers": dict(one.headers),
                "json": one.json,
                "disconnected": one.disconnected.is_set(),
                "answered": one.answered.is_set(),
            }
            for one in self.requests
        ]
        return web.json_response({"requests": told, "queued": len(self._queue)})

    async def _release(self, _request: web.Request) -> web.Response:
        for step in self._held:
            step.event.set()
        self._held.clear()
        return web.json_response({})

    async def _reset(self, _request: web.Request) -> web.Response:
        self.requests.clear()
        self._queue.clear()
        self._summaries.clear()
        return web.json_response({})


class _Streaming:
    """Plays one script into one response."""

    def __init__(self, request: web.Request, body: Json, script: Script) -> None:
        self._request = request
        self._body = body
        self._script = script
        self._sent: list[str] = []
        headers = {"Content-Type": script.content_type, **script.headers}
        self._response = web.StreamResponse(status=script.status, headers=headers)

    async def run(self) -> web.StreamResponse:
        await self._response.prepare(self._request)
        for step in self._script.steps:
            if isinstance(step, Cut):
                if self._request.transport is not None:
                    self._request.transport.close()
                return self._response
            await self._play(step)
        await self._response.write_eof()
        return self._response

    async def _play(self, step: Step) -> None:
        match step:
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case Wait(event=event):
                await event.wait()
            case KeepAlive(every=every):
                while True:
                    await self._response.write(b": keep-alive\n\n")
                    await asyncio.sleep(every)
            case Raw(data=data):
                await self._response.write(data)
            case Done():
                await self._response.write(b"data: [DONE]\n\n")
            case Usage() if not self._wants_usage():
                return
            case SummaryHalf(number=number):
                whole = json.dumps(summary_delta(self._body))
                half = len(whole) // 2
                await self._play(Text(whole[:half] if number == 1 else whole[half:]))
            case _:
                if isinstance(step, Text | Reasoning):
                    self._sent.append(step.text)
                payload = self._payload(step)
                await self._response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")

    def _wants_usage(self) -> bool:
        return bool((self._body.get("stream_options") or {}).get("include_usage"))

    def _payload(self, step: Step) -> Any:
        match step:
            case Chunk(payload=payload):
                return payload
            case Text(text=text):
                return self._chunk({"content": text})
            case Reasoning(text=text, key=key):
                return self._chunk({key: text})
            case Tool():
                return self._chunk({"tool_calls": [tool_call(step)]})
            case Finish(reason=reason):
                return self._chunk({}, finish_reason=reason)
            case Usage():
                usage = usage_of(step, self._body, "".join(self._sent))
                return {**self._chunk({}), "choices": [], "usage": usage}
        raise TypeError(f"not a step of a stream: {step!r}")

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._body.get("model", ""),
            "choices": [choice],
        }


def _whole(script: Script) -> web.Response:
    headers = {"Content-Type": script.content_type, **script.headers}
    return web.Response(status=script.status, headers=headers, body=script.body)


def tool_call(tool: Tool) -> Json:
    """A tool call as it stands in a delta."""
    return {
        "index": tool.index,
        "id": tool.id,
        "type": "function",
        "function": {"name": tool.name, "arguments": tool.arguments},
    }


def usage_of(step: Usage, request: Json, sent: str) -> Json:
    """The ``usage`` object: the given counts, or honest ones."""
    asked = prompt_tokens(request) if step.prompt_tokens is None else step.prompt_tokens
    said = tokens(sent) if step.completion_tokens is None else step.completion_tokens
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "prompt_tokens_details": {"cached_tokens": step.cached_tokens},
    }


def whole_reply(request: Json, script: Script) -> Json:
    """The same script as one ``chat.completion`` object, for a request that streams nothing."""
    text = "".join(step.text for step in script.steps if isinstance(step, Text))
    calls = [tool_call(step) for step in script.steps if isinstance(step, Tool)]
    reasons = [step.reason for step in script.steps if isinstance(step, Finish)]
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": reasons[0] if reasons else None}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", ""),
        "choices": [choice],
        "usage": usage_of(Usage(), request, text),
    }


async def serve(port: int, models: tuple[Json, ...]) -> None:
    """Serve until the process is ended; the first line of output is the base URL."""
    async with FakeUpstream(port=port, models=models) as upstream:
        print(upstream.base_url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument(
        "--models", type=json.loads, default=DEFAULT_MODELS, help="as it lists them"
    )
    options = parser.parse_args()
    asyncio.run(serve(options.port, tuple(options.models)))
