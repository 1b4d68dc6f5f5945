"""Limits on the size of a message, checked before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import ceil
from typing import TypeVar

from chatapp import wiring
from chatapp.context.request import ConversationSnapshot
from chatapp.context.tokens import INLINE_CHARACTERS, MESSAGE_OVERHEAD, message_tokens
from chatapp.conversations.turns.sending import Admit
from chatapp.errors import MessageTooLarge
from chatapp.llm.errors import LLMError
from chatapp.llm.profiles import Profile
from chatapp.turns.fitting import sizes_for
from compression import store
from compression.database import in_database_thread
from compression.tokens import default_counter
from compression.types import EntryState, Section, Sizes

T = TypeVar("T")


def sizes_of(snapshot: ConversationSnapshot, profile: Profile) -> Sizes:
    """The tokens of the next request besides its messages."""
    return sizes_for(snapshot, wiring.services().counter, profile)


async def profile_of(model: str) -> Profile:
    """The model's profile; if the server is silent, what is known of the model, or the defaults.

    The turn reports problems of the server, since a message is stored before the server is asked.
    Also loads the ruler, so that counting short texts in the event loop takes no time.
    """
    await _load_ruler()
    catalogue = wiring.services().catalogue
    try:
        return await catalogue.profile(model)
    except LLMError:
        return catalogue.known_profile(model)


async def _load_ruler() -> None:
    if not default_counter().loaded:
        await asyncio.to_thread(default_counter().load)


async def count(text: str) -> int:
    """Ruler tokens of a message with this text; a long one is counted in a thread."""
    counter = wiring.services().counter
    if len(text) <= INLINE_CHARACTERS:
        return message_tokens(counter, text)
    return await asyncio.to_thread(message_tokens, counter, text)


def _fits_whole(sized: Sizes, tokens: int) -> bool:
    """Whether there is room besides the whole summary."""
    return sized.share(sized.fixed + sized.summary + tokens) <= 1.0


def require_fit(profile: Profile, tokens: int, snapshot: ConversationSnapshot) -> None:
    """Check that fixed parts, live constraints and the message fit into the budget together.

    ``tokens`` are the message's ruler tokens. Reads the lines of the summary only if it is a close
    call. Raises MessageTooLarge with the figures.
    """
    sized = sizes_of(snapshot, profile)
    if _fits_whole(sized, tokens):
        return
    constraints = 0
    if snapshot.version:
        counter = wiring.services().counter
        base = store.read_base(snapshot.conversation_id)
        constraints = sum(
            counter.count(entry.text) + MESSAGE_OVERHEAD
            for entry in base.ledger.entries
            if entry.section is Section.CONSTRAINTS and entry.state is EntryState.LIVE
        )
    if sized.share(sized.fixed + constraints + tokens) > 1.0:
        factor = sized.calibration
        raise MessageTooLarge.from_figures(
            window=sized.window,
            reserve=sized.reserve,
            fixed=ceil(sized.fixed * factor),
            constraints=ceil(constraints * factor),
            message=ceil(tokens * factor),
        )


class _NotAsked(Exception):
    """What a message is judged by must be asked first: the profile of this model."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


def _admit(tokens: int, asked: Mapping[str, Profile], snapshot: ConversationSnapshot) -> str:
    """The name of the model that answers a message of so many tokens.

    ``asked`` are profiles by the name that a conversation has for the model. What is known without
    asking is enough for a message that fits. Raises MessageTooLarge, and :class:`_NotAsked`.
    """
    catalogue = wiring.services().catalogue
    known = catalogue.known.get(snapshot.model or catalogue.known_name())
    profile = asked.get(snapshot.model) or known
    if profile is None:
        raise _NotAsked(snapshot.model)
    try:
        require_fit(profile, tokens, snapshot)
    except MessageTooLarge:
        if snapshot.model in asked:
            raise
        raise _NotAsked(snapshot.model) from None
    return profile.name


async def admitted(text: str, begin: Callable[[Admit, int], Awaitable[T]]) -> T:
    """What ``begin`` returns, which accepts a message with this text of so many ruler tokens.

    It is called once more if the message's model has to be asked for first.
    """
    await _load_ruler()
    tokens = await count(text)
    asked: dict[str, Profile] = {}
    while True:
        try:
            return await begin(partial(_admit, tokens, asked), tokens)
        except _NotAsked as wanted:
            asked[wanted.model] = await profile_of(wanted.model)


_arequire_fit = in_database_thread(require_fit)


async def check_size(snapshot: ConversationSnapshot, profile: Profile, tokens: int) -> None:
    """:func:`require_fit` outside a transaction; for most messages without a thread."""
    if not _fits_whole(sizes_of(snapshot, profile), tokens):
        await _arequire_fit(profile, tokens, snapshot)
