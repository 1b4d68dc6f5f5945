"""Storing conversations from a foreign file: read, count, store; each completely or not at all."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, ParamSpec, TypeVar

from chatapp.context.tokens import message_tokens
from chatapp.conversations.imports.jobs import adiscard
from chatapp.conversations.imports.portions import Counted, aadd_portion
from chatapp.conversations.imports.storing import (
    VERSIONS_AT_ONCE,
    ImportedConversation,
    aadd_versions,
    abegin_import,
    afind_imported,
    afinish_import,
    astore_import,
)
from chatapp.errors import ImportInvalid
from chatapp.models import TitleSource
from chatapp.rendering.titles import first_words
from chatapp.text.lengths import TITLE_LENGTH
from chatapp.text.safety import problems
from chatapp.transfer import openai_messages
from chatapp.transfer.values import ForeignConversation, ForeignMessage, Identity
from compression.ports import TokenCounter

P = ParamSpec("P")
R = TypeVar("R")

# Seconds that storing a portion should take: a small part of what others may have to wait.
PORTION_SECONDS = 0.03
# Factor of that time for which the database is then left to others.
REST = 1.0
# A portion is measured by the number of its messages plus their characters divided by this.
CHARACTERS = 500
FIRST_WEIGHT = 200.0
LEAST_WEIGHT = 10.0
MOST_WEIGHT = 5_000.0
READERS = 2


@functools.cache
def _readers() -> ThreadPoolExecutor:
    """Threads of their own, so that a file does not delay the rendering of pages."""
    return ThreadPoolExecutor(READERS, thread_name_prefix="import")


class Reading:
    """Calls to a reader in a thread, one at a time, which can be awaited after a cancellation."""

    def __init__(self) -> None:
        self._call: asyncio.Future[Any] | None = None

    async def do(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a call made in the thread."""
        work = functools.partial(function, *args, **kwargs)
        call = asyncio.get_running_loop().run_in_executor(_readers(), work)
        self._call = call
        return await asyncio.shield(call)

    async def settle(self) -> None:
        """Wait until no call runs; the file may then be closed."""
        if self._call is not None:
            await asyncio.wait([self._call])
            self._call.exception()


class Pace:
    """How much is stored at once, and how long the database is then left to others.

    SQLite has one writer, and those who wait for it only look from time to time whether it is
    free. An import that never paused would hardly let them in.
    """

    def __init__(self) -> None:
        self.weight = FIRST_WEIGHT
        self._free_at = 0.0

    async def unit(self, work: Callable[[], Awaitable[R]], weight: float) -> R:
        """Do one unit of work, after the pause that the last one requires."""
        await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
        begun = time.monotonic()
        try:
            return await work()
        finally:
            taken = time.monotonic() - begun
            self._free_at = begun + (1 + REST) * taken
            if weight >= self.weight / 2:
                fitting = weight * PORTION_SECONDS / max(taken, 1e-4)
                self.weight = min(
                    MOST_WEIGHT, max(LEAST_WEIGHT, self.weight / 2, min(self.weight * 2, fitting))
                )


def _weight(one: ForeignMessage) -> float:
    return 1 + (len(one.text) + len(one.reasoning)) / CHARACTERS


class Portions:
    """The messages of a conversation, counted, in portions.

    Pins are kept as long as together they have at most ``most_pinned`` ruler tokens, and never on a
    tool's message: the same rules as for a person's pins.
    """

    def __init__(
        self, source: ForeignConversation, counter: TokenCounter, most_pinned: int | None
    ) -> None:
        self._messages = iter(source.messages)
        self._counter = counter
        self._room = most_pinned
        self._left = len(source.messages)
        self.tokens = 0
        self.pins_left_out = 0

    @property
    def ended(self) -> bool:
        """Whether all messages were taken."""
        return not self._left

    def take(self, weight: float) -> list[Counted]:
        """The next messages of about this weight; empty at the end."""
        portion: list[Counted] = []
        while self._left and weight > 0:
            one = next(self._messages)
            self._left -= 1
            tokens = message_tokens(self._counter, one.text, one.tool_calls)
            self.tokens += tokens
            weight -= _weight(one)
            portion.append(Counted(message=self._within_room(one, tokens), tokens=tokens))
        return portion

    def _within_room(self, one: ForeignMessage, tokens: int) -> ForeignMessage:
        # Superseded messages are in no request, so their pins take no room.
        if not one.pinned or one.superseded or self._room is None:
            return one
        if one.role != "tool" and tokens <= self._room:
            self._room -= tokens
            return one
        self.pins_left_out += 1
        return replace(one, pinned=False)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The result for one conversation."""

    conversation: ImportedConversation
    title: str
    tokens: int = 0
    """Ruler tokens of all messages; 0 if nothing was created."""
    pins_left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Storing:
    """Stores the conversations of one file."""

    owner_id: int
    counter: TokenCounter
    most_pinned: Callable[[str], int] = lambda model: 0
    """Gives the ruler tokens that the pins of a model's conversation may have."""
    model: str = ""
    """The model of the conversations, unless a file names another; empty for the default."""
    job_id: int | None = None
    on_portion: Callable[[int], None] = lambda messages: None
    """Called with the number of messages of each stored portion."""
    reading: Reading = field(default_factory=Reading)
    pace: Pace = field(default_factory=Pace)

    async def store(
        self, source: ForeignConversation, *, title: str = "", keep_system_prompt: bool = False
    ) -> Stored:
        """Store one conversation unless it was imported before; if that fails, store nothing of it.

        After a cancellation a hidden part may be left, which the sweep deletes.
        """
        identity: Identity = await self.reading.do(lambda: source.identity)
        given = title or source.title
        shown = given or await self.reading.do(_title_of, source)
        found = await afind_imported(self.owner_id, identity)
        if found is not None:
            return Stored(conversation=found, title=shown)
        most = self.most_pinned((source.own and source.own.model) or self.model)
        portions = Portions(source, self.counter, most)
        options: dict[str, Any] = {
            "title": shown,
            "title_source": TitleSource.PERSON if given else TitleSource.FIRST_WORDS,
            "model": self.model,
            "keep_system_prompt": keep_system_prompt,
            "job_id": self.job_id,
        }
        first = await self.reading.do(portions.take, self.pace.weight)
        versions = source.own.versions if source.own else ()
        if portions.ended and len(versions) <= VERSIONS_AT_ONCE:
            stored = await self._at_once(source, identity, first, options)
        else:
            stored = await self._in_portions(source, identity, first, portions, options)
        return Stored(
            conversation=stored,
            title=shown,
            tokens=portions.tokens if stored.created else 0,
            pins_left_out=portions.pins_left_out,
        )

    async def _at_once(
        self,
        source: ForeignConversation,
        identity: Identity,
        portion: list[Counted],
        options: dict[str, Any],
    ) -> ImportedConversation:
        short = replace(source, messages=tuple(one.message for one in portion))
        tokens = [one.tokens for one in portion]
        stored = await self.pace.unit(
            lambda: astore_import(
                self.owner_id, short, tokens=tokens, identity=identity, **options
            ),
            sum(_weight(one.message) for one in portion),
        )
        self.on_portion(len(portion) if stored.created else 0)
        return stored

    async def _in_portions(
        self,
        source: ForeignConversation,
        identity: Identity,
        portion: list[Counted],
        portions: Portions,
        options: dict[str, Any],
    ) -> ImportedConversation:
        begun = await abegin_import(self.owner_id, source, identity, **options)
        unfinished = begun
        try:
            while portion:
                unfinished = await self.pace.unit(
                    functools.partial(aadd_portion, unfinished, portion),
                    sum(_weight(one.message) for one in portion),
                )
                self.on_portion(len(portion))
                portion = await self.reading.do(portions.take, self.pace.weight)
            brought = 0
            while (own := source.own) is not None and brought < len(own.versions):
                bring = functools.partial(aadd_versions, unfinished, own, brought)
                brought = await self.pace.unit(bring, 0)
            stored = await self.pace.unit(lambda: afinish_import(unfinished, source), 0)
        except Exception:
            await discard_all(begun.conversation_id, self.pace)
            raise
        if not stored.created:
            await discard_all(begun.conversation_id, self.pace)
        return stored


async def discard_all(conversation_id: int, pace: Pace) -> None:
    """Delete an unfinished conversation, in portions."""
    while await pace.unit(lambda: adiscard(conversation_id), 0):
        pass


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """The result for a file that is one conversation."""

    conversation: ImportedConversation
    source: ForeignConversation
    tokens: int
    """Ruler tokens of all messages; 0 if nothing was created."""
    kept_system_prompt: bool = False


def import_openai_messages(
    owner_id: int,
    stream: BinaryIO,
    *,
    counter: TokenCounter,
    title: str = "",
    model: str = "",
    keep_system_prompt: bool = False,
    max_bytes: int = openai_messages.MAX_BYTES,
    on_stored: Callable[[int, int], None] = lambda stored, messages: None,
) -> ImportReport:
    """Import a JSON list of OpenAI-style messages as one conversation of ``owner_id``.

    ``model`` is the one to talk to, empty for the default. ``on_stored`` is called after each
    portion with the stored and the total number of messages. Runs an event loop of its own; takes
    seconds for a large file. Raises ImportInvalid.
    """
    _check_title(title)
    source = openai_messages.read(stream, max_bytes=max_bytes)
    so_far = 0

    def on_portion(messages: int) -> None:
        nonlocal so_far
        so_far += messages
        on_stored(so_far, len(source.messages))

    storing = Storing(owner_id=owner_id, counter=counter, model=model, on_portion=on_portion)
    stored = asyncio.run(storing.store(source, title=title, keep_system_prompt=keep_system_prompt))
    created = stored.conversation.created
    return ImportReport(
        conversation=stored.conversation,
        source=source,
        tokens=stored.tokens,
        kept_system_prompt=created and keep_system_prompt and bool(source.system_prompt),
    )


def _check_title(title: str) -> None:
    if len(title) > TITLE_LENGTH:
        raise ImportInvalid(f"The title is longer than {TITLE_LENGTH} characters.")
    for sentence in problems(title):
        raise ImportInvalid(f"The title cannot be stored. {sentence}")


def _title_of(source: ForeignConversation) -> str:
    first = next((one.text for one in source.messages if one.role == "user" and one.text), "")
    return first_words(first)
