"""The catalogue of models: which there are, and what is known of each."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from chatapp.llm.client import LLMClient, ModelInfo
from chatapp.llm.errors import LLMError, ModelUnknown
from chatapp.llm.profiles import (
    DEFAULT_WINDOW,
    PriceFigures,
    Profile,
    ProfileFigures,
    resolve_profile,
)

logger = logging.getLogger(__name__)

#: Seconds for which a server's list of models is believed, and for which its silence is.
LIST_LIVES = 300.0
SILENCE_LIVES = 5.0
#: Seconds for which a profile is believed without a look at the database: an operator's change, or
#: what another process has learned, counts so soon.
PROFILE_LIVES = 5.0


class ProfileStore(Protocol):
    """The store of profiles. Methods that are not awaited run where the database may be read."""

    def profile(self, name: str) -> Profile | None:
        """The stored profile of a model."""

    def profiles(self) -> list[Profile]:
        """All stored profiles, in the order in which their models were first heard of."""

    async def anames(self) -> list[str]:
        """The models that the server listed when last asked."""

    async def aprofile(self, name: str) -> Profile | None:
        """As :meth:`profile`."""

    async def aprofiles(self) -> list[Profile]:
        """As :meth:`profiles`."""

    async def astore_figures(
        self, figures: Mapping[str, Mapping[str, Any]], *, complete: bool = False
    ) -> None:
        """Store figures by model; ``complete``: the server has no other models."""

    async def alearn(self, name: str, fact: str, value: Any, *, named: bool) -> None:
        """Note what a refusal taught of a model."""

    async def alearn_usage(self, name: str, *, reported: int, counted: int) -> float | None:
        """Calibrate a model; the new factor, or None where that cannot be stored now."""


class Catalogue:
    """The models behind one client, and what is known of them, kept in ``store``.

    ``prices`` looks models up in the price data, all at once, which may take a second; ``clock``
    gives seconds that never run backwards.
    """

    def __init__(
        self,
        client: LLMClient,
        store: ProfileStore,
        *,
        chat_model: str = "",
        window: int | None = None,
        prices: Callable[[Iterable[str]], Mapping[str, PriceFigures]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.revision = 0
        """Rises whenever what is known of a model changes, and with it the figures of screens."""
        self._client = client
        self._store = store
        self._chat_model = chat_model
        self._window = window
        self._prices = prices
        self._clock = clock
        self._listed: tuple[ModelInfo, ...] = ()
        self._known_until = 0.0
        self._failure: LLMError | None = None
        self._asking = asyncio.Lock()
        self._profiles: dict[str, Profile] = {}
        self._recalled = False
        self._stored_first = ""
        """Of the stored models that the server had when last asked, the first."""
        self._read_until: dict[str, float] = {}
        self._seen_until: dict[str, float] = {}

    async def default_name(self) -> str:
        """The model of a conversation that names none: the setting, else the server's first.

        Raises LLMError when the server must be asked and does not answer.
        """
        if self._chat_model:
            return self._chat_model
        listed = await self._models()
        if not listed:
            raise ModelUnknown(
                "The model server lists no model. Set CHAT_MODEL to the name of one."
            )
        return listed[0].name

    async def names(self) -> list[str]:
        """The models to choose from, as last heard; asks nobody."""
        await self._arecall()
        names = [one.name for one in self._listed] or await self._store.anames()
        if self._chat_model and self._chat_model not in names:
            names.insert(0, self._chat_model)
        return names

    def known_name(self) -> str:
        """The default model if it is known without asking, else empty."""
        return self._chat_model or (self._listed[0].name if self._listed else "")

    def known_profile(self, name: str) -> Profile:
        """The profile of a model without asking; the defaults for one never heard of."""
        name = name or self.known_name() or self._stored_first
        return self._profiles.get(name) or Profile(name=name, window=self._window or DEFAULT_WINDOW)

    def recall(self) -> None:
        """Know what is stored of each model: before the server has been asked, that is what counts.

        Reads once in the life of the process, and only where the database may be read.
        """
        if self._recalled:
            return
        self._remember(self._store.profiles())

    async def _arecall(self) -> None:
        if not self._recalled:
            self._remember(await self._store.aprofiles())

    def _remember(self, stored: Iterable[Profile]) -> None:
        for one in stored:
            # What was found out meanwhile is newer.
            self._profiles.setdefault(one.name, one)
            if one.available:
                self._stored_first = self._stored_first or one.name
        self._recalled = True

    def reread(self, name: str) -> None:
        """Know what is stored of one model by now: screens do not wait for its next request.

        An operator may have changed or reset a figure, or another process learned one. Reads one
        row at most every ``PROFILE_LIVES`` seconds, and only where the database may be read.
        """
        name = name or self.known_name() or self._stored_first
        if self._clock() < self._seen_until.get(name, 0.0):
            return
        self._seen_until[name] = self._clock() + PROFILE_LIVES
        before, stored = self._profiles.get(name), self._store.profile(name)
        # What was found out while that was read is newer.
        if stored is not None and self._profiles.get(name) is before:
            self._know(stored)

    async def profile(self, name: str) -> Profile:
        """The profile of a model; with its server silent, the stored one or the defaults."""
        name = name or await self.default_name()
        if self._clock() < self._read_until.get(name, 0.0):
            return self._profiles[name]
        await self.ask()
        stored = await self._store.aprofile(name)
        if stored is None:
            # The server does not list it, or does not answer.
            await self._store.astore_figures(await self._resolved([ModelInfo(name=name)]))
            stored = await self._store.aprofile(name)
        assert stored is not None
        self._know(stored)
        self._read_until[name] = self._clock() + PROFILE_LIVES
        return stored

    async def ask(self) -> None:
        """Have the server's list, with the windows of all that is on it, if it answers."""
        try:
            await self._models()
        except LLMError:
            logger.info("The model server did not list its models; using the ones already known.")

    async def warm(self, *more: str) -> None:
        """Ask for the models once, so that the first page can name them. Never raises.

        ``more`` are models to know of besides the default one; empty names are passed over.
        """
        try:
            await self._arecall()
            for name in (await self.default_name(), *filter(None, more)):
                await self.profile(name)
        except LLMError as error:
            logger.warning("The model server is not ready: %s", error.message)

    async def learn(self, name: str, fact: str, value: Any, *, named: bool = True) -> None:
        """Note what a server taught us: what it refuses, or its window; ``named``: in figures."""
        await self._store.alearn(name, fact, value, named=named)
        self._read_until.pop(name, None)
        await self.profile(name)

    async def calibrate(self, profile: Profile, *, reported: int, counted: int) -> None:
        """Learn from the prompt tokens that the provider reported for ``counted`` ruler tokens.

        Never raises for the database: a reply that has come whole is not lost for a figure.
        """
        if reported <= 0 or counted <= 0:
            return
        factor = await self._store.alearn_usage(profile.name, reported=reported, counted=counted)
        # Screens count with what is known without asking: what they are told next is right.
        if factor is not None:
            known = self._profiles.get(profile.name, profile)
            self._know(replace(known, calibration=factor))

    def _know(self, profile: Profile) -> None:
        if self._profiles.get(profile.name) != profile:
            self._profiles[profile.name] = profile
            self.revision += 1

    async def _models(self) -> tuple[ModelInfo, ...]:
        """The server's list, asked for at most every few minutes. Raises LLMError."""
        async with self._asking:
            if self._clock() < self._known_until:
                if self._failure is not None:
                    raise self._failure
                return self._listed
            try:
                listed = await self._client.models()
            except LLMError as failure:
                self._failure = failure
                self._known_until = self._clock() + SILENCE_LIVES
                raise
            # A page names them at once. Who asks for figures waits: looking them up may take a
            # second, in which the rows hold defaults, and a request for these may be too long.
            self._listed, self._failure = listed, None
            await self._store.astore_figures(await self._resolved(listed), complete=True)
            names = {one.name for one in listed}
            for stored in await self._store.aprofiles():
                if stored.name in names:
                    self._know(stored)
            self._known_until = self._clock() + LIST_LIVES
            return listed

    async def _resolved(self, models: Sequence[ModelInfo]) -> dict[str, dict[str, Any]]:
        """The figures of these models as they are stored, by name."""
        names = [one.name for one in models]
        prices = await asyncio.to_thread(self._prices, names) if self._prices and names else {}
        return {
            one.name: _fields(resolve_profile(one.name, one, prices=prices.get(one.name)))
            for one in models
        }


def _fields(figures: ProfileFigures) -> dict[str, Any]:
    return {
        "window": figures.window,
        "max_output_tokens": figures.max_output_tokens,
        "input_price": figures.input_price,
        "cached_input_price": figures.cached_input_price,
        "output_price": figures.output_price,
        "sources": dict(figures.sources),
    }
