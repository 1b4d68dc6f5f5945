"""A person's actions on the summary of a conversation.

Viewers learn of each change through :mod:`compression.signals`, wherever it was made.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from chatapp import wiring
from chatapp.actions.subject import conversation_of, subject
from chatapp.conversations.turns.spending import arequire_within_limit
from chatapp.llm import activity_log
from chatapp.turns.fitting import compression_settings
from compression import services as compression_services
from compression.exceptions import CompressionRunning
from compression.types import Trigger


async def compact(
    user_id: int, code: str, *, focus: str = "", through_seq: int | None = None
) -> str:
    """Compress now. Returns ``"started"``, or ``"running"`` if a run is under way already.

    Raises NotFound, and NothingToCompress and DailyLimit before any model is called.
    """
    without_tail = await subject(user_id, code)
    await arequire_within_limit(user_id)
    owned = await without_tail.with_tail()
    runner, begins = wiring.runner(), asyncio.Event()
    sized = owned.sizes
    run = compression_services.compress(
        owned.conversation_id,
        engine=wiring.services().engine(replace(owned.profile, calibration=sized.calibration)),
        sizes=sized,
        trigger=Trigger.MANUAL,
        focus=focus,
        through_seq=through_seq,
        settings=compression_settings(owned.snapshot),
        on_started=begins.set,
    )
    try:
        with activity_log.about(conversation=owned.conversation_id):
            await runner.begin_compression(owned.conversation_id, run, begins)
    except CompressionRunning:
        return "running"
    return "started"


async def cancel_compression(user_id: int, code: str) -> bool:
    """Cancel a running compression; False if there is none. Raises NotFound."""
    conversation_id = await conversation_of(user_id, code)
    cancelled = await compression_services.cancel(conversation_id)
    if cancelled:
        await wiring.bus().nudge(conversation_id)
    return cancelled


def _by(user_id: int) -> dict[str, Any]:
    """Whose change it is, and the messages that it is held against."""
    # The announcer hears of the change only once it is made.
    wiring.announcer()
    return {"author_id": user_id, "transcript": wiring.services().transcript}


async def undo(user_id: int, code: str, version: int | None = None) -> int:
    """Undo the last change, or refuse if ``version`` is not the active one.

    Raises NotFound, NothingToUndo, StaleSource, StaleVersion.
    """
    return await compression_services.undo(
        await conversation_of(user_id, code), expected_version=version, **_by(user_id)
    )


async def redo(user_id: int, code: str) -> int:
    """Redo what was undone last. Raises as :func:`undo`."""
    return await compression_services.redo(await conversation_of(user_id, code), **_by(user_id))


async def restore(user_id: int, code: str, version: int) -> int:
    """Make an older version active; 0 means no summary. Raises as :func:`undo`."""
    conversation_id = await conversation_of(user_id, code)
    return await compression_services.restore(conversation_id, version, **_by(user_id))


async def clear(user_id: int, code: str) -> int:
    """Move the boundary to the end, with no summary. Can be undone. Raises NothingToCompress."""
    return await compression_services.clear(await conversation_of(user_id, code), **_by(user_id))


async def edit_summary(user_id: int, code: str, text: str, version: int) -> int:
    """Replace version ``version`` by a person's text.

    Raises NotFound, StaleVersion with both texts, and SummaryInvalid naming the line.
    """
    owned = await subject(user_id, code)
    wiring.announcer()
    return await compression_services.edit(
        owned.conversation_id,
        text,
        expected_version=version,
        author_id=user_id,
        counter=wiring.services().counter,
        sizes=owned.sizes,
        settings=compression_settings(owned.snapshot),
    )
