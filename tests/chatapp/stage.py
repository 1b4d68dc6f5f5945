"""Everything that turns run on, in the test's own process, before a fake model server."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from django.contrib.auth.models import User

from chatapp.activity.log import ActivityLog
from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages import reading
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.profiles import alearn
from chatapp.conversations.turns import sending
from chatapp.live.bus import Bus, Published, Subscription
from chatapp.llm.activity_log import RecordedClient
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.openai_compatible.client import OpenAIClient
from chatapp.models import Conversation, Message, Turn
from chatapp.profile_store import StoredProfiles
from chatapp.rendering import fragments
from chatapp.turns.announcer import Announcer
from chatapp.turns.runner import Runner
from chatapp.turns.services import Services
from compression import signals
from compression.database import in_database_thread
from compression.tokens import CharacterCounter
from tests.chatapp.talking import by, new
from tests.fake_upstream import FakeUpstream

R = TypeVar("R")
# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 30
COUNTER = CharacterCounter()


async def stored(work: Callable[[], R]) -> R:
    """One unit of work of the test's own, in the database's threads."""
    return await in_database_thread(work)()


async def until(holds: Callable[[], bool], *, within: float = PATIENCE) -> float:
    """Look at the database until this holds; the seconds that it took."""
    begun = time.monotonic()
    async with asyncio.timeout(within):
        while not await stored(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return time.monotonic() - begun


def turn_of(accepted: sending.Accepted) -> Turn:
    return Turn.objects.get(pk=accepted.turn)


def reply_of(accepted: sending.Accepted) -> Message:
    return Message.objects.get(pk=accepted.reply_id)


@dataclass(kw_only=True)
class Stage:
    """One process's runner and what it stands on."""

    upstream: FakeUpstream
    owner: User
    code: str
    services: Services
    bus: Bus
    announcer: Announcer
    runner: Runner
    seen: list[Published] = field(default_factory=list)
    """What a viewer of ``code`` was told so far."""
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def rest(self) -> None:
        """Wait until no turn runs, and nothing is done any more that follows one."""
        while True:
            # What has just ended is followed by its callbacks in the loop's next round.
            await asyncio.sleep(0)
            turns = (stream.task for stream in self.runner._streams.values())
            work = [one for one in (*turns, *self.runner._jobs) if one and not one.done()]
            if not work:
                return
            await asyncio.wait(work)

    def acceptance(self, text: str, **more: Any) -> Any:
        """The unit of work that stores a message."""
        return sending.aaccept(
            self.owner.pk,
            self.code,
            **{
                "text": text,
                "client_msg_id": uuid.uuid4(),
                "tokens": message_tokens(COUNTER, text),
                "admit": by("fake-model"),
                "process_id": self.runner.process_id,
                **more,
            },
        )

    async def send(self, text: str = "Hello", **more: Any) -> sending.Accepted:
        accepted = await self.runner.begin(self.acceptance(text, **more))
        assert isinstance(accepted, sending.Accepted)
        return accepted

    async def say(self, text: str = "Hello", **more: Any) -> Turn:
        """Send, and wait for the end."""
        return await self.ended(await self.send(text, **more))

    async def ended(self, accepted: sending.Accepted) -> Turn:
        """The turn as stored, once it has ended and the viewers know."""
        await self.told("turn-finished", turn=accepted.turn)
        return await stored(lambda: turn_of(accepted))

    async def reply(self, accepted: sending.Accepted) -> Message:
        return await stored(lambda: reply_of(accepted))

    async def told(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The first event of this kind with these fields, as soon as a viewer is told."""

        def found() -> dict[str, Any] | None:
            for one in self.seen:
                if one.type == kind and fields.items() <= one.json.items():
                    return one.json
            return None

        async with asyncio.timeout(PATIENCE), self._came:
            await self._came.wait_for(lambda: found() is not None)
        told = found()
        assert told is not None
        return told

    def told_of(self, kind: str) -> list[dict[str, Any]]:
        return [one.json for one in self.seen if one.type == kind]

    async def snapshot(self) -> Any:
        row = await stored(lambda: Conversation.objects.get(code=self.code))
        return await reading.asnapshot_with_tail(row.pk)

    async def watch(self, viewer: Subscription) -> None:
        while True:
            published = await viewer.next()
            async with self._came:
                if published is not None:
                    self.seen.append(published)
                self._came.notify_all()


def services_for(upstream: FakeUpstream, folder: Path, **more: Any) -> Services:
    """The real objects, with a ruler that needs no file."""
    client = RecordedClient(
        OpenAIClient(base_url=upstream.base_url, api_key="key-of-the-tests", on_learned=alearn),
        ActivityLog(str(folder)),
    )
    return Services(
        client=client,
        catalogue=Catalogue(client, StoredProfiles()),
        counter=COUNTER,
        transcript=StoredTranscript(),
        masks=StoredMasks(),
        demo=False,
        **more,
    )


@asynccontextmanager
async def staged(
    owner: User,
    folder: Path,
    *,
    window: int = 8192,
    upstream: FakeUpstream | None = None,
    **services_have: Any,
) -> AsyncIterator[Stage]:
    """A conversation of ``owner`` that one viewer looks at."""
    served = upstream or FakeUpstream()
    served.models = ({"id": "fake-model", "object": "model", "max_model_len": window},)
    code = await stored(lambda: new(owner))
    row = await stored(lambda: Conversation.objects.get(code=code))
    async with served:
        services = services_for(served, folder, **services_have)
        bus = Bus(None, fragments.render_event)
        announcer = Announcer(services, bus)
        receivers = (
            (signals.compression_started, announcer.compression_started),
            (signals.compression_progress, announcer.compression_progress),
            (signals.compression_completed, announcer.compression_completed),
            (signals.compression_withdrawn, announcer.compression_withdrawn),
        )
        for signal, receiver in receivers:
            signal.connect(receiver)
        stage = Stage(
            upstream=served,
            owner=owner,
            code=code,
            services=services,
            bus=bus,
            announcer=announcer,
            runner=Runner(services, bus, announcer),
        )
        async with bus.subscribe(row.pk) as viewer:
            watching = asyncio.create_task(stage.watch(viewer))
            try:
                yield stage
            finally:
                await stage.runner.shutdown()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                for signal, receiver in receivers:
                    signal.disconnect(receiver)
                await services.client.aclose()
