"""The product in the test's own process and event loop: its real objects, made anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit
from uuid import uuid4

from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.llm.prices import PriceList
from chatapp.llm.profiles import PriceFigures
from compression import signals
from compression.database import drain

JSON = {"Accept": "application/json"}
HTMX = {"HX-Request": "true"}

_priced: dict[str, PriceFigures | None] = {}


class _KeptPrices(PriceList):
    """The price data, whose answers outlive one product: a look-up takes a process of its own.

    They are those for an address that is no provider's. Fake servers have no other, whatever
    their port.
    """

    def __init__(self, base_url: str = "") -> None:
        super().__init__(base_url)
        if urlsplit(base_url).hostname == "127.0.0.1":
            self._known = _priced


def _forget() -> None:
    for made in (
        wiring.services,
        wiring.activity_log,
        wiring.log_upkeep,
        wiring.bus,
        wiring.announcer,
        wiring.runner,
        wiring.rendering_pool,
        wiring.importer,
        wiring.mcp_tools,
        wiring.approvals,
    ):
        made.cache_clear()
    for signal in (
        signals.compression_started,
        signals.compression_progress,
        signals.compression_completed,
        signals.compression_withdrawn,
        signals.summary_changed,
        signals.masks_changed,
    ):
        signal.receivers.clear()
        signal.sender_receivers_cache.clear()


@asynccontextmanager
async def fresh_product() -> AsyncIterator[None]:
    """What :mod:`chatapp.wiring` builds belongs to this event loop, and ends with the block.

    A block in a block begins with new ones, as another process would.
    """
    await wiring.shutdown()
    _forget()
    with patch.object(wiring, "PriceList", _KeptPrices):
        try:
            yield
        finally:
            await wiring.shutdown()
            # Units whose awaiters were cancelled just now: emptying the tables must not meet them.
            drain()
            _forget()


async def signed_in(user: User, **options: Any) -> AsyncClient:
    """A browser of this person."""
    client = AsyncClient(**options)
    await client.aforce_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


async def new_conversation(client: AsyncClient, **fields: str) -> str:
    """A conversation of the client's person; its code."""
    answer = await client.post("/c/", fields, headers=JSON)
    return str(answer.json()["code"])


async def send(client: AsyncClient, code: str, text: str = "Hello") -> dict[str, Any]:
    """Send a message; the answer's JSON."""
    fields = {"text": text, "client_msg_id": str(uuid4())}
    answer = await client.post(f"/c/{code}/messages/", fields, headers=JSON)
    assert answer.status_code == 202, answer.content
    return dict(answer.json())


async def settle(turn: int | None = None) -> None:
    """Wait until no turn, or not this one, runs in this process, and what follows them is done."""
    runner = wiring.runner()
    for stream in list(runner._streams.values()):
        if stream.task is not None and turn in {None, stream.job.turn}:
            await stream.task
    while runner._jobs:
        # A job that has just ended is in there until the loop's next round, which this waits for.
        await asyncio.gather(*runner._jobs)
    # The index of the log is filled behind the turns.
    await wiring.activity_log().settled()
