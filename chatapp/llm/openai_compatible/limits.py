"""Time limits of a call, and the clock that keeps to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from chatapp.llm.errors import ServerTimeout

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one call. Times in seconds."""

    connect: float = 10.0
    """For a connection, and for a free place in the pool."""
    first_token: float = 120.0
    """From asking to the first content; comments and empty pieces do not count."""
    between_tokens: float = 60.0
    """From one piece of content to the next."""
    closing: float = 2.0
    """From the finish reason to the end, for usage and ``[DONE]``."""
    total: float = 300.0
    """For everything, retries included."""
    max_reply_characters: int = 400_000
    """Text, reasoning and tool arguments together."""
    retry_budget: float = 20.0
    """In which a busy server is asked again."""
    attempts: int = 3
    """Most tries, the first one included."""
    retry_wait: float = 0.5
    """Before the second attempt; longer before the third, unless the server says how long."""


class Clock:
    """The time of one call. Create it when the call begins, inside the event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        self._end = self._started + limits.total
        self._phase = "first_token"
        self._phase_seconds = limits.first_token
        self._phase_end = self._started + limits.first_token

    @property
    def retry_budget_left(self) -> float:
        """Seconds in which the server may still be asked again."""
        return self._started + self._limits.retry_budget - self._now()

    def asking(self) -> None:
        """A request is about to be sent."""
        self._enter("first_token", self._limits.first_token)

    def content_came(self) -> None:
        """A piece of content has come."""
        self._enter("between_tokens", self._limits.between_tokens)

    def finish_came(self) -> None:
        """The finish reason has come; little may follow."""
        if self._phase != "closing":
            self._enter("closing", self._limits.closing)

    async def within(self, awaitable: Awaitable[T]) -> T:
        """The awaited value. Raises ServerTimeout, naming the limit that has passed."""
        timer = asyncio.timeout_at(min(self._end, self._phase_end))
        try:
            async with timer:
                return await awaitable
        except TimeoutError:
            if not timer.expired():
                raise
        if self._end <= self._phase_end:
            raise ServerTimeout.of("total", self._limits.total)
        raise ServerTimeout.of(self._phase, self._phase_seconds)

    def _enter(self, phase: str, seconds: float) -> None:
        self._phase = phase
        self._phase_seconds = seconds
        self._phase_end = self._now() + seconds
