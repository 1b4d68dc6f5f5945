"""The one place that builds real objects from the settings, once per process."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from channels.layers import get_channel_layer
from django.conf import settings

from chatapp.actions.connections.finding import Finder
from chatapp.actions.import_jobs import Importer
from chatapp.activity.log import ActivityLog
from chatapp.activity.upkeep import LogUpkeep
from chatapp.context.request import ConversationSnapshot
from chatapp.conversations.imports import jobs
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.tools.servers import ServerAccess
from chatapp.conversations.turns import progress
from chatapp.deployment.process_lock import ProcessLock
from chatapp.live.bus import Bus
from chatapp.llm.activity_log import RecordedClient
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.client import LLMClient, TokenUsage
from chatapp.llm.demo import DemoClient
from chatapp.llm.openai_compatible.adaptation import Learned
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.llm.prices import PriceList
from chatapp.llm.servers.names import SUMMARIES, qualified
from chatapp.llm.servers.pool import Clients, Server
from chatapp.llm.servers.routing import RoutingClient
from chatapp.profile_store import StoredProfiles
from chatapp.rendering import fragments
from chatapp.rendering.pool import RenderingPool
from chatapp.tools import registry
from chatapp.tools.approvals import Approvals
from chatapp.tools.mcp.connection import Session
from chatapp.tools.mcp.toolset import McpTools
from chatapp.turns.announcer import Announcer
from chatapp.turns.metering import MeteredClient
from chatapp.turns.pacing import Pace
from chatapp.turns.runner import Runner
from chatapp.turns.services import Services
from compression import signals, store
from compression.database import AWAY, database_file, drop, in_database_thread
from compression.tokens import default_counter
from compression.tools.tool import Tool
from compression.types import Sizes

logger = logging.getLogger(__name__)


def demo() -> bool:
    """Whether the built-in demo model answers, because no server and no key are set."""
    return not settings.OPENAI_BASE_URL and not settings.OPENAI_API_KEY


def _client(summaries: LLMClient | None) -> LLMClient:
    """The client for all servers; ``summaries`` is the one of ``SUMMARY_BASE_URL``."""
    return RoutingClient(
        _chat_client(),
        summaries={summary_model(): summaries} if summaries else {},
        find=Finder(),
        clients=Clients(connection_client),
    )


def _chat_client() -> LLMClient:
    if demo():
        return DemoClient(counter=default_counter())
    # Imported late, because the SDK takes a third of a second and 25 MB; pages are served first.
    from chatapp.llm.openai_compatible.client import OpenAIClient

    return OpenAIClient(
        base_url=settings.OPENAI_BASE_URL or "https://api.openai.com/v1",
        api_key=settings.OPENAI_API_KEY,
        on_learned=partial(_learned, ""),
        gather=lambda: pace().interval,
    )


def _summary_client() -> LLMClient | None:
    """The client of the server for summaries, which never gets the chat's key or headers."""
    if not settings.SUMMARY_BASE_URL:
        return None
    from chatapp.llm.openai_compatible.client import OpenAIClient

    return OpenAIClient(
        base_url=settings.SUMMARY_BASE_URL,
        api_key=settings.SUMMARY_API_KEY,
        on_learned=partial(_learned, SUMMARIES),
        of_the_chat=False,
    )


async def connection_client(server: Server, limits: Limits | None = None) -> LLMClient:
    """A client for a connection. Raises WrongKey if its stored key cannot be read."""
    # With the demo model, nobody has imported the SDK yet; and not in the event loop.
    making = await asyncio.to_thread(import_module, "chatapp.llm.servers.making")
    made = making.client_of(
        server,
        limits=limits,
        on_learned=partial(_learned, server.name),
        gather=lambda: pace().interval,
    )
    activity_log().hide(made.secrets)
    client: LLMClient = made
    return client


def prices(address: str) -> PriceList:
    """The price data for the server at an address."""
    return PriceList(address)


def summary_model() -> str:
    """The model that settings name for summaries; empty for the conversation's own."""
    if settings.SUMMARY_BASE_URL:
        # Unless it is named, it is called as the chat's.
        return qualified(settings.SUMMARY_MODEL or settings.CHAT_MODEL, SUMMARIES)
    return "" if demo() else settings.SUMMARY_MODEL


def _cost_of(model: str, usage: TokenUsage) -> float | None:
    profile = services().catalogue.known_profile(model)
    return profile.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


async def _learned(server: str, model: str, fact: str, value: Learned) -> None:
    """Pass a lesson to the catalogue, so that the next request follows it."""
    await services().catalogue.learn(qualified(model, server), fact, value)


@cache
def pace() -> Pace:
    """The pace at which this process shows replies."""
    return Pace()


@cache
def activity_log() -> ActivityLog:
    """The log of this process's model calls."""
    return ActivityLog(
        settings.ACTIVITY_LOG_DIR,
        most_bytes=settings.ACTIVITY_LOG_MAX_BYTES,
        content=settings.ACTIVITY_LOG_CONTENT,
        secrets=lambda: (settings.OPENAI_API_KEY, settings.SUMMARY_API_KEY, settings.SECRET_KEY),
    )


@cache
def log_upkeep() -> LogUpkeep | None:
    """The upkeep of the log of model calls; None if there is no log."""
    files = activity_log().files
    return LogUpkeep(files, settings.ACTIVITY_LOG_DAYS) if files is not None else None


@cache
def services() -> Services:
    """The services that turns run on."""
    summaries = _summary_client()
    others = {SUMMARIES: (summaries.models, prices(settings.SUMMARY_BASE_URL))} if summaries else {}
    recorded = RecordedClient(_client(summaries), activity_log(), _cost_of)
    client = MeteredClient(recorded, default_counter(), _cost_of)
    return Services(
        client=client,
        catalogue=Catalogue(
            client,
            StoredProfiles(
                window=None if demo() else settings.CONTEXT_WINDOW,
                tools=settings.TOOL_ROUNDS > 0,
                demo=demo(),
            ),
            chat_model="" if demo() else settings.CHAT_MODEL,
            window=None if demo() else settings.CONTEXT_WINDOW,
            prices=None if demo() else PriceList(settings.OPENAI_BASE_URL),
            others=others,
        ),
        counter=default_counter(),
        transcript=StoredTranscript(),
        masks=StoredMasks(),
        demo=demo(),
        summary_model=summary_model(),
        automatic_titles=settings.AUTOMATIC_TITLES,
        tools=registry.all_of((registry.built_in, registry.recall(default_counter()), _mcp_tools)),
        tool_rounds=settings.TOOL_ROUNDS,
        end_tools=_end_tools,
        approve=lambda conversation_id, turn: approvals().port(conversation_id, turn),
    )


@cache
def bus() -> Bus:
    """The bus of events; other processes exist only with Redis."""
    layer = get_channel_layer() if settings.REDIS_URL else None
    return Bus(layer, fragments.render_event, rendering_pool())


@cache
def rendering_pool() -> RenderingPool:
    """The threads in which pages and states are rendered."""
    return RenderingPool()


@cache
def announcer() -> Announcer:
    """The announcer to viewers, which also receives compression's signals of runs and changes.

    Every process that viewers look at has made it: a viewer's socket has its process run turns.
    """
    made = Announcer(services(), bus())
    signals.compression_started.connect(made.compression_started, weak=False)
    signals.compression_progress.connect(made.compression_progress, weak=False)
    signals.compression_completed.connect(made.compression_completed, weak=False)
    signals.compression_withdrawn.connect(made.compression_withdrawn, weak=False)
    signals.summary_changed.connect(made.summary_changed, weak=False)
    signals.masks_changed.connect(made.masks_changed, weak=False)
    return made


@cache
def mcp_tools() -> McpTools:
    """The connections to tool servers."""
    return McpTools(_open_session)


async def _mcp_tools(conversation: ConversationSnapshot, sizes: Sizes) -> tuple[Tool, ...]:
    if not conversation.tool_servers:
        return ()
    return await mcp_tools().tools(conversation.conversation_id)


async def _end_tools(conversation_id: int) -> None:
    if mcp_tools.cache_info().currsize:
        await mcp_tools().release(conversation_id)


def _open_session(server: ServerAccess) -> AbstractAsyncContextManager[Session]:
    # Imported late, as the client above: the SDK takes long, and most processes need none.
    from chatapp.tools.mcp.client import open_session

    return open_session(server)


@cache
def approvals() -> Approvals:
    """The calls of this process's turns that wait for a person's answer."""
    return Approvals(announcer().approval)


@cache
def process_lock() -> ProcessLock:
    """The lock that tells whether other processes serve the same database; SQLite only."""
    file = database_file()
    return ProcessLock(Path(f"{file}-serving") if file else None)


@cache
def importer() -> Importer:
    """The imports of this process."""
    process_lock().acquire()
    return Importer(
        Path(settings.IMPORT_DIR),
        counter=services().counter,
        most_pinned=lambda model: services().catalogue.known_profile(model).most_pinned,
    )


def register_process() -> None:
    """Take the process lock. If no other process lives, end what dead ones held.

    Call it before this process holds a lease, which would be taken for a dead process's.
    """
    process_lock().acquire(_take_over)


_aregister_process = in_database_thread(register_process)


def _take_over() -> None:
    try:
        progress.expire_open_turns()
        jobs.expire_open_jobs()
        store.release_all()
    except AWAY as error:
        # Not migrated, or away; the leases then expire by themselves.
        logger.warning("The leases of dead processes could not be taken over: %s", error)


@cache
def runner() -> Runner:
    """The turns of this process."""
    # For servers without a startup hook; with one the lock is already held.
    process_lock().acquire()
    return Runner(services(), bus(), announcer(), pace(), rendering_pool())


def started() -> bool:
    """Whether this process has ever run or swept a turn."""
    return bool(runner.cache_info().currsize)


async def start() -> None:
    """Begin to sweep what crashed processes left, and ask for the models."""
    await _aregister_process()
    if not demo():
        # In a thread, so that pages are served meanwhile.
        await asyncio.to_thread(import_module, "chatapp.llm.openai_compatible.client")
    runner().keep()
    importer().keep()
    if (upkeep := log_upkeep()) is not None:
        upkeep.begin()
    runner().spawn(services().catalogue.warm(services().summary_model), "asking for the models")
    if settings.SUMMARY_BASE_URL:
        runner().spawn(
            services().catalogue.others.await_list(SUMMARIES), "asking for the summary models"
        )


async def shutdown() -> None:
    """End everything that this process runs, in order; nothing if it never ran anything."""
    # Waiting searches would otherwise be done one after another before the process ends.
    drop("slow")
    if importer.cache_info().currsize:
        await importer().shutdown()
    if log_upkeep.cache_info().currsize and (upkeep := log_upkeep()) is not None:
        await upkeep.aclose()
    if started():
        await runner().shutdown()
    if mcp_tools.cache_info().currsize:
        await mcp_tools().aclose()
    if services.cache_info().currsize:
        await services().client.aclose()
    # Last, because the ends of turns are rendered there.
    rendering_pool().shutdown()
