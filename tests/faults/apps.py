"""The product with its half minutes made seconds, and with a bus that may lose everything."""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta

from channels_redis.pubsub import RedisPubSubLoopLayer
from django.apps import AppConfig

LEASE = timedelta(seconds=float(os.environ.get("TESTS_LEASE", "3")))
RENEWAL = 0.5
SWEEP = 0.5
PING_INTERVAL = 1
PING_TIMEOUT = 2


class Hastened(AppConfig):
    """``TESTS_BUS=lost`` makes the bus deliver nothing at all, within the process neither.

    ``TESTS_BUS=some`` has Redis lose every other message that this process publishes.
    """

    name = "tests.faults"

    def ready(self) -> None:
        """Change the constants of this process, which is a test's own."""
        from chatapp import bus, catalogue, keeper, server
        from chatapp.conversations import progress, sending

        sending.LEASE = LEASE
        progress.LEASE = LEASE  # type: ignore[attr-defined]
        keeper.RENEWAL_INTERVAL, keeper.SWEEP_INTERVAL = RENEWAL, SWEEP
        server.PING_INTERVAL, server.PING_TIMEOUT = PING_INTERVAL, PING_TIMEOUT
        # What one conversation teaches of a model changes the figures of all others, which are told
        # at their next look: each comparison of a screen would wait for it.
        catalogue.Catalogue.calibrate = _do_nothing  # type: ignore[method-assign]
        if os.environ.get("TESTS_BUS") == "lost":
            bus.Bus.publish = bus.Bus.nudge = _do_nothing  # type: ignore[method-assign]
        if os.environ.get("TESTS_BUS") == "some":
            RedisPubSubLoopLayer.group_send = _every_other(RedisPubSubLoopLayer.group_send)


def _every_other(send: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    turns = itertools.cycle([True, False])

    async def sometimes(*args: object) -> None:
        if next(turns):
            await send(*args)

    return sometimes


async def _do_nothing(*_args: object, **_named: object) -> None:
    return
