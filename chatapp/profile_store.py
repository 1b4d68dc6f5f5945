"""The profiles of models in the database, for :mod:`chatapp.llm.catalogue`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from chatapp.conversations import profiles
from chatapp.conversations.profiles import asave
from chatapp.llm.profiles import Profile
from chatapp.llm.servers.names import server_of
from chatapp.models import ModelProfile
from compression.database import AWAY
from compression.planning.projection import Report

logger = logging.getLogger(__name__)

# The figures that a refusal may teach.
TAUGHT = (
    "window",
    "max_output_tokens",
    "supports_tools",
    "supports_system_role",
    "supports_json_schema",
    "supports_usage",
    "supports_temperature",
    "supports_reasoning_effort",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfiles:
    """A :class:`chatapp.llm.profiles.ProfileStore` in the database."""

    window: int | None = None
    """The operator's window, in tokens, which overrides every other source for the models of the
    chat's own server."""
    tools: bool = True
    """Whether the operator lets models call tools."""
    demo: bool = False
    """Whether the chat's own server is the demo model, which knows no tools."""
    _noted: dict[str, tuple[Report, ...]] = field(default_factory=dict, init=False)
    # What providers reported and is not stored yet. Threads read it, so its values do not change.
    _storing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def profile(self, name: str) -> Profile | None:
        """The stored profile of a model."""
        return self._or_none(profiles.profile(name))

    def profiles(self) -> list[Profile]:
        """All stored profiles, in the order in which the models were first seen."""
        return [self._profile(row) for row in profiles.profiles()]

    async def anames(self) -> list[str]:
        """The models that the server listed last."""
        return await profiles.anames()

    async def aprofile(self, name: str) -> Profile | None:
        """As :meth:`profile`."""
        return self._or_none(await profiles.aprofile(name))

    async def aprofiles(self) -> list[Profile]:
        """As :meth:`profiles`."""
        return [self._profile(row) for row in await profiles.aprofiles()]

    async def astore_figures(
        self, figures: Mapping[str, Mapping[str, Any]], *, complete: bool = False
    ) -> None:
        """Store figures by model; ``complete``: the server has no other models."""
        await asave(figures, complete=complete)

    async def alearn(self, name: str, fact: str, value: Any, *, named: bool) -> None:
        """Store what a refusal taught about a model."""
        await profiles.alearn(name, fact, value, named=named)

    def note_usage(self, name: str, report: Report) -> None:
        """Calibrate a model by a report, for this process at once."""
        self._noted[name] = (*self._noted.get(name, ()), report)

    async def astore_usage(self) -> None:
        """Store what was noted; while the database is away it stays noted. Never raises for it."""
        async with self._storing:
            for name, reports in list(self._noted.items()):
                try:
                    await profiles.alearn_usage(name, reports)
                except AWAY as error:
                    logger.warning("The token count of %s is not yet stored: %s", name, error)
                    continue
                # More may have been noted meanwhile.
                if later := self._noted[name][len(reports) :]:
                    self._noted[name] = later
                else:
                    del self._noted[name]

    def _or_none(self, row: ModelProfile | None) -> Profile | None:
        return None if row is None else self._profile(row)

    def _profile(self, row: ModelProfile) -> Profile:
        # The operator's figure overrides the server's, unless it was refused.
        own = not server_of(row.name)
        window = self.window if own else None
        learned = profiles.in_force(row, window=window)
        figures = {name: getattr(row, name) for name in TAUGHT}
        figures |= {"window": window or row.window} | learned
        tools = self.tools and not (self.demo and own)
        figures["supports_tools"] = tools and figures["supports_tools"]
        return Profile(
            name=row.name,
            **figures,
            reasoning_back=row.reasoning_back,
            calibration=profiles.calibrated(row.calibration, self._noted.get(row.name, ())),
            input_price=_price(row.input_price),
            cached_input_price=_price(row.cached_input_price),
            output_price=_price(row.output_price),
            sources={**row.sources, **dict.fromkeys(learned, "learned")},
            available=row.available,
        )


def _price(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
