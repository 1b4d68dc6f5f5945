"""The product with its half minutes made seconds, and with a bus that may lose everything."""

from __future__ import annotations

import os
from datetime import timedelta

from django.apps import AppConfig

LEASE = timedelta(seconds=2)
RENEWAL = 0.5
SWEEP = 0.5
PING_INTERVAL = 1
PING_TIMEOUT = 2


class Hastened(AppConfig):
    """``TESTS_BUS=lost`` makes the bus deliver nothing at all, within the process neither."""

    name = "tests.faults"

    def ready(self) -> None:
        """Change the constants of this process, which is a test's own."""
        from chatapp import bus, keeper, server
        from chatapp.conversations import progress, sending

        sending.LEASE = progress.LEASE = LEASE
        keeper.RENEWAL_INTERVAL, keeper.SWEEP_INTERVAL = RENEWAL, SWEEP
        server.PING_INTERVAL, server.PING_TIMEOUT = PING_INTERVAL, PING_TIMEOUT
        if os.environ.get("TESTS_BUS") == "lost":
            bus.Bus.publish = bus.Bus.nudge = _lose  # type: ignore[method-assign,assignment]


async def _lose(*_args: object) -> None:
    return
