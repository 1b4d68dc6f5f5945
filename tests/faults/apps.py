"""The product with its half minutes made seconds, and with a bus that may lose everything."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

from channels_redis.pubsub import RedisPubSubLoopLayer
from django.apps import AppConfig

LEASE = timedelta(seconds=float(os.environ.get("TESTS_LEASE", "3")))
RENEWAL = 0.5
SWEEP = 0.5
PING_INTERVAL = 1
PING_TIMEOUT = int(os.environ.get("TESTS_PING_TIMEOUT", "2"))
LIFETIME = float(os.environ.get("TESTS_LIFETIME", "3600"))


class Hastened(AppConfig):
    """``TESTS_BUS=lost`` makes the bus deliver nothing at all, within the process neither.

    ``TESTS_BUS=some`` has Redis lose every third event of each kind that this process publishes,
    ``TESTS_BUS=context`` all of that kind.
    """

    name = "tests.faults"

    def ready(self) -> None:
        """Change the constants of this process, which is a test's own."""
        from chatapp.consumers import conversation
        from chatapp.conversations.turns import progress, statements
        from chatapp.deployment import daphne
        from chatapp.live import bus
        from chatapp.llm import catalogue
        from chatapp.turns import upkeep

        statements.LEASE = LEASE
        progress.LEASE = LEASE  # type: ignore[attr-defined]
        upkeep.RENEWAL_INTERVAL, upkeep.SWEEP_INTERVAL = RENEWAL, SWEEP
        conversation.LIFETIME, conversation.LIFETIME_SPREAD = LIFETIME, LIFETIME / 2
        daphne.PING_INTERVAL, daphne.PING_TIMEOUT = PING_INTERVAL, PING_TIMEOUT
        # What one conversation teaches of a model changes the figures of all others, which are told
        # at their next look: each comparison of a screen would wait for it.
        catalogue.Catalogue.calibrate = _do_nothing  # type: ignore[method-assign]
        lost = os.environ.get("TESTS_BUS", "")
        if lost == "lost":
            bus.Bus.publish = bus.Bus.nudge = _do_nothing  # type: ignore[method-assign]
        elif lost:
            RedisPubSubLoopLayer.group_send = _losing(lost, RedisPubSubLoopLayer.group_send)


Send = Callable[..., Awaitable[None]]


def _losing(lost: str, send: Send) -> Send:
    turns: defaultdict[str, Iterator[bool]] = defaultdict(
        lambda: itertools.cycle([True, True, lost != "some"])
    )

    async def sometimes(layer: object, group: str, message: dict[str, Any]) -> None:
        kind = (message.get("event") or {}).get("type", "")
        if kind != lost and next(turns[kind]):
            await send(layer, group, message)

    return sometimes


async def _do_nothing(*_args: object, **_named: object) -> None:
    return
