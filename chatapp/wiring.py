"""The one place that builds real objects from the settings, once a process."""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from importlib import import_module
from pathlib import Path

from channels.layers import get_channel_layer
from django.conf import settings

from chatapp.actions.import_jobs import Importer
from chatapp.conversations.imports import jobs
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.turns import progress
from chatapp.live.bus import Bus
from chatapp.llm.activity_log import ActivityLog, RecordedClient
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.client import LLMClient, TokenUsage
from chatapp.llm.demo import DemoClient
from chatapp.llm.openai_compatible.adaptation import Learned
from chatapp.llm.prices import PriceList
from chatapp.profile_store import StoredProfiles
from chatapp.rendering import fragments
from chatapp.rendering.pool import RenderingPool
from chatapp.turns.announcer import Announcer
from chatapp.turns.metering import MeteredClient
from chatapp.turns.pacing import Pace
from chatapp.turns.process_lock import Presence
from chatapp.turns.runner import Runner
from chatapp.turns.services import Machinery
from compression import signals, store
from compression.database import AWAY, across, database_file, drop
from compression.tokens import default_counter

logger = logging.getLogger(__name__)


def demo() -> bool:
    """Whether the built-in demo model answers: no server and no key are set."""
    return not settings.OPENAI_BASE_URL and not settings.OPENAI_API_KEY


def _client() -> LLMClient:
    if demo():
        return DemoClient(counter=default_counter())
    # The SDK takes a third of a second and 25 MB to import: not before the pages can be served.
    from chatapp.llm.openai_compatible.client import OpenAIClient

    return OpenAIClient(
        base_url=settings.OPENAI_BASE_URL or "https://api.openai.com/v1",
        api_key=settings.OPENAI_API_KEY,
        on_learned=_learned,
        gather=lambda: pace().interval,
    )


def _cost_of(model: str, usage: TokenUsage) -> float | None:
    profile = machinery().catalogue.known_profile(model)
    return profile.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


async def _learned(model: str, fact: str, value: Learned) -> None:
    """By the catalogue, so that it counts from the next request on."""
    await machinery().catalogue.learn(model, fact, value)


@cache
def pace() -> Pace:
    """How often this process shows a reply."""
    return Pace()


@cache
def machinery() -> Machinery:
    """What turns run on."""
    recorded = RecordedClient(_client(), ActivityLog(settings.ACTIVITY_LOG_DIR))
    client = MeteredClient(recorded, default_counter(), _cost_of)
    return Machinery(
        client=client,
        catalogue=Catalogue(
            client,
            StoredProfiles(window=None if demo() else settings.CONTEXT_WINDOW),
            chat_model="" if demo() else settings.CHAT_MODEL,
            window=None if demo() else settings.CONTEXT_WINDOW,
            prices=None if demo() else PriceList(settings.OPENAI_BASE_URL),
        ),
        counter=default_counter(),
        transcript=StoredTranscript(),
        demo=demo(),
        summary_model="" if demo() else settings.SUMMARY_MODEL,
        automatic_titles=settings.AUTOMATIC_TITLES and not demo(),
    )


@cache
def bus() -> Bus:
    """Who looks at what. Other processes exist only with Redis."""
    layer = get_channel_layer() if settings.REDIS_URL else None
    return Bus(layer, fragments.render_event, rendering_pool())


@cache
def rendering_pool() -> RenderingPool:
    """Where pages and catch-ups are rendered."""
    return RenderingPool()


@cache
def announcer() -> Announcer:
    """What viewers are told; it hears of compressions by their signals."""
    made = Announcer(machinery(), bus())
    signals.compression_started.connect(made.compression_started, weak=False)
    signals.compression_progress.connect(made.compression_progress, weak=False)
    signals.compression_completed.connect(made.compression_completed, weak=False)
    signals.compression_withdrawn.connect(made.compression_withdrawn, weak=False)
    return made


@cache
def presence() -> Presence:
    """This process among those of the same database; nobody is counted but on SQLite."""
    file = database_file()
    return Presence(Path(f"{file}-serving") if file else None)


@cache
def importer() -> Importer:
    """The imports of this process."""
    presence().arrive()
    return Importer(
        Path(settings.IMPORT_DIR),
        counter=machinery().counter,
        most_pinned=lambda model: machinery().catalogue.known_profile(model).most_pinned,
    )


def arrive() -> None:
    """Be counted, and end what dead processes held if no other one lives.

    Before this process can hold a lease: what is found would be taken for a dead one's.
    """
    presence().arrive(_take_over)


_aarrive = across(arrive)


def _take_over() -> None:
    try:
        progress.abandon()
        jobs.abandon()
        store.release_all()
    except AWAY as error:
        # Not migrated, or away: what was held expires by itself.
        logger.warning("What dead processes held could not be taken over: %s", error)


@cache
def runner() -> Runner:
    """The turns of this process."""
    # For servers that tell no beginning; the others have arrived.
    presence().arrive()
    return Runner(machinery(), bus(), announcer(), pace(), rendering_pool())


def started() -> bool:
    """Whether this process has ever run or swept a turn."""
    return bool(runner.cache_info().currsize)


async def start() -> None:
    """Begin to sweep what crashed processes left, and ask which models there are."""
    await _aarrive()
    if not demo():
        # In a thread: what is served already is not to wait for it.
        await asyncio.to_thread(import_module, "chatapp.llm.openai_compatible.client")
    runner().keep()
    importer().keep()
    runner().spawn(machinery().catalogue.warm(machinery().summary_model), "asking for the models")


async def shutdown() -> None:
    """End in order what this process runs; nothing if it never ran anything."""
    # Searches that wait would be done one after the other before the process ends.
    drop("slow")
    if importer.cache_info().currsize:
        await importer().shutdown()
    if started():
        await runner().shutdown()
        await machinery().client.aclose()
    # Last: the ends of turns are rendered there.
    rendering_pool().shutdown()
