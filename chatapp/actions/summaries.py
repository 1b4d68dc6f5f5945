"""A person's actions on the summary of a conversation: check, run, tell the viewers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from chatapp import wiring
from chatapp.actions.limits import profile_of, sizes_of
from chatapp.conversations.messages.reading import abasis, aowned_frame
from chatapp.conversations.turns.spending import arequire_within_limit
from chatapp.llm import activity_log
from chatapp.turns.fitting import compression_settings
from compression import services
from compression.exceptions import CompressionRunning
from compression.types import Trigger


async def compact(
    user_id: int, code: str, *, focus: str = "", through_seq: int | None = None
) -> str:
    """Compress now: ``"started"``, or ``"running"`` when a run is under way already.

    Raises NotFound, and NothingToCompress and DailyLimit before any model is called.
    """
    frame = await aowned_frame(user_id, code)
    await arequire_within_limit(user_id)
    profile = await profile_of(frame.model)
    basis = await abasis(frame.conversation_id)
    machinery, runner, begins = wiring.machinery(), wiring.runner(), asyncio.Event()
    sized = sizes_of(basis, profile)
    run = services.compress(
        basis.conversation_id,
        engine=machinery.engine(replace(profile, calibration=sized.calibration)),
        sizes=sized,
        trigger=Trigger.MANUAL,
        focus=focus,
        through_seq=through_seq,
        settings=compression_settings(basis),
        on_started=begins.set,
    )
    try:
        with activity_log.about(conversation=basis.conversation_id):
            await runner.begin_compression(basis.conversation_id, run, begins)
    except CompressionRunning:
        return "running"
    return "started"


async def cancel_compression(user_id: int, code: str) -> bool:
    """End a running compression; False when none ran. Raises NotFound."""
    frame = await aowned_frame(user_id, code)
    cancelled = await services.cancel(frame.conversation_id)
    if cancelled:
        await wiring.bus().nudge(frame.conversation_id)
    return cancelled


async def undo(user_id: int, code: str) -> int:
    """Go back to the version before. Raises NotFound, NothingToUndo, StaleSource, StaleVersion."""
    frame = await aowned_frame(user_id, code)
    transcript = wiring.machinery().transcript
    version = await services.undo(frame.conversation_id, transcript=transcript, author_id=user_id)
    await wiring.announcer().summary(frame.conversation_id)
    return version


async def redo(user_id: int, code: str) -> int:
    """Take the last undo back. Raises as :func:`undo`."""
    frame = await aowned_frame(user_id, code)
    transcript = wiring.machinery().transcript
    version = await services.redo(frame.conversation_id, transcript=transcript, author_id=user_id)
    await wiring.announcer().summary(frame.conversation_id)
    return version


async def restore(user_id: int, code: str, version: int) -> int:
    """Make an older version active; 0 means no summary. Raises as :func:`undo`."""
    frame = await aowned_frame(user_id, code)
    restored = await services.restore(
        frame.conversation_id,
        version,
        transcript=wiring.machinery().transcript,
        author_id=user_id,
    )
    await wiring.announcer().summary(frame.conversation_id)
    return restored


async def edit_summary(user_id: int, code: str, text: str, version: int) -> int:
    """Put a person's text in place of version ``version``.

    Raises NotFound, StaleVersion with both texts, SummaryInvalid naming the line.
    """
    frame = await aowned_frame(user_id, code)
    profile = await profile_of(frame.model)
    edited = await services.edit(
        frame.conversation_id,
        text,
        expected_version=version,
        author_id=user_id,
        counter=wiring.machinery().counter,
        sizes=sizes_of(frame, profile),
        settings=compression_settings(frame),
    )
    await wiring.announcer().summary(frame.conversation_id)
    return edited


async def clear(user_id: int, code: str) -> int:
    """Start afresh: the boundary to the end, no summary; undoable. Raises NothingToCompress."""
    frame = await aowned_frame(user_id, code)
    version = await services.clear(
        frame.conversation_id, transcript=wiring.machinery().transcript, author_id=user_id
    )
    await wiring.announcer().summary(frame.conversation_id)
    return version
