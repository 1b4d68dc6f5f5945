"""What is known of the models of other servers than the chat's own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import LLMError
from chatapp.llm.figures import PriceLookup, resolved
from chatapp.llm.known_profiles import KnownProfiles
from chatapp.llm.model_list import ModelList
from chatapp.llm.profiles import ProfileStore
from chatapp.llm.servers.names import qualified

logger = logging.getLogger(__name__)

#: Seconds between two questions to a server that has not answered yet.
PATIENCE = 30.0
#: Asks a server for its list; and what looks up the prices at its address.
Asked = tuple[Callable[[], Awaitable[tuple[ModelInfo, ...]]], PriceLookup | None]


class OtherServers:
    """The servers that settings name, by name, each asked now and then; and those of connections.

    What is heard is stored in ``store`` and known to ``known``.
    """

    def __init__(
        self,
        asked: Mapping[str, Asked],
        store: ProfileStore,
        known: KnownProfiles,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._known = known
        self._lists = {
            name: ModelList(fetch, partial(self._heard, name, prices), clock)
            for name, (fetch, prices) in asked.items()
        }

    async def ask(self, server: str) -> None:
        """Have the list of a server that settings name, if it answers; others are not asked."""
        if server not in self._lists:
            return
        try:
            await self._lists[server].ask()
        except LLMError:
            logger.info("The server for %s did not list its models.", server)

    async def await_list(self, server: str) -> None:
        """Ask a server that settings name until it has answered once. Never raises LLMError."""
        await self.ask(server)
        while not self._lists[server].names:
            await asyncio.sleep(PATIENCE)
            await self.ask(server)

    async def hear(
        self, server: str, listed: Sequence[ModelInfo], prices: PriceLookup | None
    ) -> dict[str, int | None]:
        """Store the figures of a server's models. Returns the windows that are known, by name."""
        figures = await resolved(listed, prices, server=server)
        await self._store.astore_figures(figures)
        await self.recall()
        found = {one.name: figures[qualified(one.name, server)] for one in listed}
        return {
            name: None if one["sources"].get("window") == "default" else one["window"]
            for name, one in found.items()
        }

    async def recall(self) -> None:
        """Know what is stored by now, as other processes heard or learned it."""
        for stored in await self._store.aprofiles():
            self._known.know(stored)

    async def _heard(
        self, server: str, prices: PriceLookup | None, listed: Sequence[ModelInfo]
    ) -> None:
        await self.hear(server, listed, prices)
