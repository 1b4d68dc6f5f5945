"""The control: what Channels and Daphne cost alone. ``python -m tests.benchmarks._relay sdk|raw``.

One frame in, ``{"model": …}``; a frame out for each token; nothing is stored or rendered. ``sdk``
reads the model's stream with the openai SDK's objects, ``raw`` line by line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import urlsplit

import django
from django.conf import settings

settings.configure(SECRET_KEY="benchmark", ALLOWED_HOSTS=["*"], DATABASES={})
django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from daphne.server import Server  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from twisted.internet import reactor  # noqa: E402

UPSTREAM = os.environ["OPENAI_BASE_URL"]
QUESTION = {"messages": [{"role": "user", "content": "hi"}], "stream": True}


class Relay(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Relays one reply after the other."""

    client: AsyncOpenAI | None = None

    async def receive(self, text_data: str = "", bytes_data: bytes | None = None) -> None:
        """Begin a reply."""
        model = json.loads(text_data)["model"]
        await (self.with_sdk(model) if sys.argv[1] == "sdk" else self.without(model))
        await self.send(text_data='{"type":"turn-finished"}')

    async def tell(self, text: str) -> None:
        """One token to the viewer."""
        await self.send(text_data=json.dumps({"type": "delta", "text": text}))

    async def with_sdk(self, model: str) -> None:
        """As the SDK's documentation has it."""
        Relay.client = Relay.client or AsyncOpenAI(base_url=UPSTREAM, api_key="none", timeout=600)
        stream = await Relay.client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                await self.tell(chunk.choices[0].delta.content)

    async def without(self, model: str) -> None:
        """The least that can be done: a line of the socket, decoded."""
        address = urlsplit(UPSTREAM)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        body = json.dumps({"model": model, **QUESTION}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        async for line in reader:
            if line.startswith(b"data: {") and (event := json.loads(line[6:]))["choices"]:
                if text := event["choices"][0]["delta"].get("content"):
                    await self.tell(text)
            elif line == b"data: [DONE]\n":
                break
        writer.close()


def ready() -> None:
    print(f"Serving on http://127.0.0.1:{server.listening_addresses[0][1]}", flush=True)


server = Server(Relay.as_asgi(), endpoints=["tcp:0:interface=127.0.0.1"], ready_callable=ready)
server.websocket_timeout = -1
assert reactor
server.run()
