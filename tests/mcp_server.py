"""An MCP server for tests: the official SDK's, over real HTTP, in a process of its own.

``python -m tests.mcp_server --port 0`` prints its address. ``POST /control`` takes a JSON object:
``fault`` and ``method`` say what goes wrong with the next request of that method, once or with
``always`` from now on; ``description`` is the new one of the tool ``write``; ``reset`` ends that.
``GET /control`` tells which methods were asked for, and with which headers.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import socket
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent, TextContent, ToolAnnotations
from starlette.types import Message, Receive, Scope, Send

READS = ToolAnnotations(read_only_hint=True)
DESCRIPTION = "Write a text."


class ToolServer:
    """The SDK's server behind what can go wrong."""

    def __init__(self) -> None:
        self.server: MCPServer = MCPServer("tests")
        self.written: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.faults: dict[str, tuple[str, bool]] = {}
        self._add_tools()
        self.app = self.server.streamable_http_app(stateless_http=False)

    def _add_tools(self) -> None:
        def echo(text: str) -> str:
            return text

        async def hang() -> str:
            await asyncio.Event().wait()
            return "never"

        def fail() -> str:
            raise ToolError("It did not work \u202ehere")

        def fail_at_length(megabytes: int) -> str:
            raise ToolError("x" * (megabytes * 2**20))

        def binary() -> list[ImageContent | TextContent]:
            data = base64.b64encode(bytes(range(256)) * 40).decode()
            picture = ImageContent(type="image", data=data, mime_type="image/png")
            return [picture, TextContent(type="text", text="a picture")]

        def big(megabytes: int) -> str:
            return "x" * (megabytes * 2**20)

        for reading in (echo, hang, fail, fail_at_length, binary, big):
            self.server.add_tool(reading, annotations=READS, structured_output=False)
        self.describe(DESCRIPTION)

    def describe(self, description: str) -> None:
        """Offer the tool ``write`` with this description."""

        def write(text: str) -> str:
            self.written.append(text)
            return "written"

        if self.written or self.asked:
            self.server.remove_tool("write")
        self.server.add_tool(write, description=description, structured_output=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == "/control":
            await self._control(scope, await _body(receive), send)
        elif scope["method"] != "POST":
            await self.app(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        method = str(json.loads(body).get("method"))
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append({"method": method, "headers": headers, "path": scope["path"]})
        fault, always = self.faults.get(method, ("", False))
        if fault and not always:
            del self.faults[method]
        if fault:
            await _go_wrong(fault, json.loads(body).get("id"), send)
            return
        came = False

        async def again() -> Message:
            nonlocal came
            if came:
                return await receive()
            came = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)

    async def _control(self, scope: Scope, body: bytes, send: Send) -> None:
        if scope["method"] == "POST":
            wanted = json.loads(body)
            if wanted.get("reset"):
                self.describe(DESCRIPTION)
                self.faults.clear()
                self.asked.clear()
                self.written.clear()
            if "description" in wanted:
                self.asked.append({"method": "control", "headers": {}})
                self.describe(wanted["description"])
            if "fault" in wanted:
                self.faults[wanted["method"]] = (wanted["fault"], bool(wanted.get("always")))
        told = {"asked": self.asked, "written": self.written}
        await _send(send, 200, "application/json", json.dumps(told).encode())


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(
    send: Send, status: int, kind: str, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    head = [(b"content-type", kind.encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def _go_wrong(fault: str, identity: Any, send: Send) -> None:
    match fault:
        case "500" | "502" | "401":
            await _send(send, int(fault), "text/plain", b"broken")
        case "html":
            await _send(send, 200, "text/html", b"<html><h1>Please sign in</h1></html>")
        case "garbage":
            await _send(send, 200, "application/json", b"\xff\xfe{" * 100)
        case "redirect":
            away = ((b"location", b"/elsewhere"),)
            await _send(send, 307, "text/plain", b"", away)
        case "long":
            result = {"jsonrpc": "2.0", "id": identity, "result": {"content": "x" * 10 * 2**20}}
            await _send(send, 200, "application/json", json.dumps(result).encode())
        case "hang":
            await asyncio.Event().wait()
        case "flood":
            head = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}
            line = b"data: " + json.dumps(note | {"level": "info"}).encode() + b"\n\n"
            for _ in range(2000):
                await send({"type": "http.response.body", "body": line * 100, "more_body": True})
                await asyncio.sleep(0)
        case "schema" | "pattern" | "wide" | "name":
            await _answer(send, identity, {"tools": _odd_tools(fault)})
        case "structured":
            await _answer(
                send,
                identity,
                {
                    "content": [{"type": "text", "text": "ran"}],
                    "structuredContent": {"a": "a" * 30 + "!"},
                },
            )
        case "words" | "mismatch":
            # Servers answer -32020 to a call that lacks a header, before they run it.
            error = {"code": -32020 if fault == "mismatch" else -32050, "message": "x" * 2**20}
            told = {"jsonrpc": "2.0", "id": identity, "error": error}
            await _send(send, 200, "application/json", json.dumps(told).encode())
        case "cut":
            head = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": b'{"jsonrpc"', "more_body": False})


async def _answer(send: Send, identity: Any, result: dict[str, Any]) -> None:
    newer = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    told = {"jsonrpc": "2.0", "id": identity, "result": {**newer, **result}}
    await _send(send, 200, "application/json", json.dumps(told).encode())


def _odd_tools(fault: str) -> list[dict[str, Any]]:
    takes_anything = {"type": "object"}
    backtracks = {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}
    match fault:
        case "pattern":
            return [{"name": "echo", "inputSchema": takes_anything, "outputSchema": backtracks}]
        case "wide":
            wide = {"name": "wide", "description": "x" * 100_000}
            return [{**wide, "inputSchema": takes_anything}]
        case "name":
            return [{"name": "x" * 201, "inputSchema": takes_anything}]
    return [{"name": "odd", "inputSchema": None}, {"name": "echo"}]


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    with socket.create_server(("127.0.0.1", parser.parse_args().port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(ToolServer(), log_level="critical")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
