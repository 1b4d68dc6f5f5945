"""The catalogue of models: which there are, and what is known of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chatapp.llm.client import LLMClient, ModelInfo
from chatapp.llm.errors import LLMError, ModelUnknown
from chatapp.llm.figures import PriceLookup, resolved
from chatapp.llm.known_profiles import KnownProfiles
from chatapp.llm.model_list import ModelList
from chatapp.llm.profiles import (
    DEFAULT_WINDOW,
    Profile,
    ProfileStore,
)
from chatapp.llm.servers.names import parted, server_of
from chatapp.llm.servers.others import Asked, OtherServers
from compression.planning.projection import Report
from compression.tokens import calibrate

logger = logging.getLogger(__name__)


class Catalogue:
    """The models behind one client, and what is known of them, kept in ``store``.

    ``window`` is the operator's for the models of the chat's own server. ``others`` are the other
    servers that settings name, see :class:`OtherServers`. ``prices`` looks models up in the price
    data, all at once, which may take a second; ``clock`` gives seconds that never run backwards.
    """

    def __init__(
        self,
        client: LLMClient,
        store: ProfileStore,
        *,
        chat_model: str = "",
        window: int | None = None,
        prices: PriceLookup | None = None,
        others: Mapping[str, Asked] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._chat_model = chat_model
        self._window = window
        self._prices = prices
        self._list = ModelList(client.models, self._heard, clock)
        self.store_usage = store.astore_usage
        """Stores what was learned from reports. Never raises for the database."""
        self.known = KnownProfiles(store, clock)
        """What is known without asking anybody."""
        self.others = OtherServers(others or {}, store, self.known, clock)

    @property
    def revision(self) -> int:
        """Rises whenever what is known of a model changes, and with it the figures of screens."""
        return self.known.revision

    async def default_name(self) -> str:
        """The model of a conversation that names none: the setting, else the server's first.

        Raises LLMError when the server must be asked and does not answer.
        """
        if self._chat_model:
            return self._chat_model
        await self._list.ask()
        if not self._list.default:
            raise ModelUnknown(
                "The model server lists no model. Set CHAT_MODEL to the name of one."
            )
        return self._list.default

    async def names(self) -> list[str]:
        """The models to choose from, as last heard; asks nobody."""
        await self.known.arecall()
        names = self._list.names or await self._store.anames()
        if self._chat_model and self._chat_model not in names:
            names.insert(0, self._chat_model)
        return names

    def known_name(self) -> str:
        """The default model if it is known without asking, else empty."""
        return self._chat_model or self._list.default

    def known_profile(self, name: str) -> Profile:
        """The profile of a model without asking; the defaults for one never heard of."""
        name = name or self._presumed_name()
        window = None if server_of(name) else self._window
        return self.known.get(name) or Profile(name=name, window=window or DEFAULT_WINDOW)

    def recall(self) -> None:
        """Know what is stored of each model; see :meth:`KnownProfiles.recall`."""
        self.known.recall()

    def reread(self, name: str) -> None:
        """Know what is stored of one model by now; see :meth:`KnownProfiles.reread`."""
        self.known.reread(name or self._presumed_name())

    async def profile(self, name: str) -> Profile:
        """The profile of a model; with its server silent, the stored one or the defaults."""
        name = name or await self.default_name()
        if believed := self.known.believed(name):
            return believed
        model, server = parted(name)
        await (self.others.ask(server) if server else self.ask())
        stored = await self._store.aprofile(name)
        if stored is None:
            # The server does not list it, or does not answer.
            prices = None if server else self._prices
            figures = await resolved([ModelInfo(name=model)], prices, server=server)
            await self._store.astore_figures(figures)
            stored = await self._store.aprofile(name)
        assert stored is not None
        self.known.believe(stored)
        return stored

    async def ask(self) -> None:
        """Have the server's list, with the windows of all that is on it, if it answers."""
        try:
            await self._list.ask()
        except LLMError:
            logger.info("The model server did not list its models; using the ones already known.")

    async def warm(self, *more: str) -> None:
        """Ask for the models once, so that the first page can name them. Never raises.

        ``more`` are models to know of besides the default one; empty names are passed over.
        """
        try:
            await self.known.arecall()
            for name in (await self.default_name(), *filter(None, more)):
                await self.profile(name)
        except LLMError as error:
            logger.warning("The model server is not ready: %s", error.message)

    async def learn(self, name: str, fact: str, value: Any, *, named: bool = True) -> None:
        """Note what a server taught us: what it refuses, or its window; ``named``: in figures."""
        # Reports that came before must not soften what is learned now.
        await self._store.astore_usage()
        await self._store.alearn(name, fact, value, named=named)
        self.known.doubt(name)
        await self.profile(name)

    async def calibrate(self, profile: Profile, *, reported: int, counted: int) -> None:
        """Learn from the prompt tokens that the provider reported for ``counted`` ruler tokens.

        This process counts with it at once; :meth:`store_usage` stores it. Never raises for the
        database: a reply that has come whole is not lost for a figure.
        """
        if reported <= 0 or counted <= 0:
            return
        self._store.note_usage(profile.name, Report(counted=counted, reported=reported))
        # Screens count with what is known without asking: what they are told next is right.
        known = self.known.get(profile.name) or profile
        factor = calibrate(known.calibration, reported, counted)
        self.known.know(replace(known, calibration=factor))
        if reported > known.window:
            # The window must be larger, which the next request should know.
            await self._store.astore_usage()

    def _presumed_name(self) -> str:
        """The default model, or before that is known the one that it was when last asked."""
        return self.known_name() or self.known.first_stored

    async def _heard(self, listed: Sequence[ModelInfo]) -> None:
        """Store the figures of a new list, and know what is stored of its models."""
        await self._store.astore_figures(await resolved(listed, self._prices), complete=True)
        names = {one.name for one in listed}
        for stored in await self._store.aprofiles():
            if stored.name in names:
                self.known.know(stored)
