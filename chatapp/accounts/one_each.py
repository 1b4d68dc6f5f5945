"""One piece of work at a time for each person: whoever asks for much waits behind their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from chatapp.errors import RateLimited

T = TypeVar("T")

#: Pieces of work of one person, the one that is done included.
MOST: Final = 8
#: Seconds until who has more may try again.
TRY_AGAIN: Final = 5.0


@dataclass(slots=True)
class _Share:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked: int = 0


class OneEach:
    """Lets the work of different people go on side by side, and of one person one at a time."""

    def __init__(self) -> None:
        self._shares: dict[Hashable, _Share] = {}

    async def run(self, person: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What ``work`` returns. Work that has begun ends, even if who waits for it is cancelled.

        Raises RateLimited when too much of theirs waits, and what ``work`` raises.
        """
        share = self._shares.setdefault(person, _Share())
        if share.asked >= MOST:
            raise RateLimited(retry_after=TRY_AGAIN)
        share.asked += 1
        try:
            await share.lock.acquire()
        except BaseException:
            self._leave(person, share)
            raise
        task = asyncio.create_task(work())
        task.add_done_callback(lambda _: self._next(person, share))
        # The next one waits for this one's thread, not for whoever wanted it.
        return await asyncio.shield(task)

    def _next(self, person: Hashable, share: _Share) -> None:
        share.lock.release()
        self._leave(person, share)

    def _leave(self, person: Hashable, share: _Share) -> None:
        share.asked -= 1
        if not share.asked:
            del self._shares[person]
