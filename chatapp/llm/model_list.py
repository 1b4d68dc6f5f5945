"""The list of models that a server has, asked for now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import LLMError

#: Seconds for which a server's list of models is believed, and for which its silence is.
LIST_LIVES = 300.0
SILENCE_LIVES = 5.0


class ModelList:
    """The models that one server lists.

    ``fetch`` asks the server and may raise LLMError; ``heard`` takes in a new list; ``clock`` gives
    seconds that never run backwards.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[tuple[ModelInfo, ...]]],
        heard: Callable[[Sequence[ModelInfo]], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._fetch = fetch
        self._heard = heard
        self._clock = clock
        self._listed: tuple[ModelInfo, ...] = ()
        self._believed_until = 0.0
        self._failure: LLMError | None = None
        self._asking = asyncio.Lock()

    @property
    def names(self) -> list[str]:
        """The models as last heard; asks nobody."""
        return [one.name for one in self._listed]

    @property
    def default(self) -> str:
        """The server's first model as last heard; empty before that."""
        return self._listed[0].name if self._listed else ""

    async def ask(self) -> None:
        """Have the list, asked for at most every few minutes. Raises LLMError."""
        async with self._asking:
            if self._clock() < self._believed_until:
                if self._failure is not None:
                    raise self._failure
                return
            try:
                listed = await self._fetch()
            except LLMError as failure:
                self._failure = failure
                self._believed_until = self._clock() + SILENCE_LIVES
                raise
            # A page names them at once. Who asks for figures waits: looking them up may take a
            # second, in which the rows hold defaults, and a request for these may be too long.
            self._listed, self._failure = listed, None
            await self._heard(listed)
            self._believed_until = self._clock() + LIST_LIVES
