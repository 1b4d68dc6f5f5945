"""A reviewer's wish for another summary of somebody's conversation.

Whether the reviewer may is for the caller to say. All else is as if the owner had asked: the models
that the owner is offered, the owner's limits, and the owner's open pages learn of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from chatapp import wiring
from chatapp.actions.connections.offered import choice
from chatapp.actions.limits import profile_of
from chatapp.actions.subject import subject
from chatapp.conversations.turns.spending import arequire_within_limit
from chatapp.errors import InvalidInput
from chatapp.llm import activity_log
from chatapp.turns.fitting import compression_settings
from compression import services as compression_services


async def models_for(owner_id: int) -> list[str]:
    """The models that may be sent the messages: those that their owner can choose."""
    return (await choice(owner_id)).names


async def compress_again(owner_id: int, code: str, *, version: int, model: str) -> None:
    """Have ``model`` write the active ``version`` anew. Returns once it has begun.

    Raises NotFound, InvalidInput for a model that the owner is not offered, DailyLimit, and as
    :func:`compression.services.compress_again` before any model is called.
    """
    if model not in await models_for(owner_id):
        raise InvalidInput.of("model", "Choose one of the models of this conversation's owner.")
    owned = await subject(owner_id, code)
    await arequire_within_limit(owner_id)
    # Its window has to be known before it is asked.
    await profile_of(model)
    runner, begins = wiring.runner(), asyncio.Event()
    sized = owned.sizes
    run = compression_services.compress_again(
        owned.conversation_id,
        version,
        engine=wiring.services().engine(
            replace(owned.profile, calibration=sized.calibration), only=model
        ),
        sizes=sized,
        settings=compression_settings(owned.snapshot),
        on_started=begins.set,
    )
    with activity_log.about(conversation=owned.conversation_id):
        await runner.begin_compression(owned.conversation_id, run, begins)
