"""A person's actions on the summary of a conversation: check, run, announce."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from chatapp import wiring
from chatapp.actions.limits import profile_of, sizes_of
from chatapp.conversations.messages.reading import aowned_snapshot_without_tail, asnapshot_with_tail
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
    owned = await aowned_snapshot_without_tail(user_id, code)
    await arequire_within_limit(user_id)
    profile = await profile_of(owned.model)
    snapshot = await asnapshot_with_tail(owned.conversation_id)
    runner, begins = wiring.runner(), asyncio.Event()
    sized = sizes_of(snapshot, profile)
    run = compression_services.compress(
        snapshot.conversation_id,
        engine=wiring.services().engine(replace(profile, calibration=sized.calibration)),
        sizes=sized,
        trigger=Trigger.MANUAL,
        focus=focus,
        through_seq=through_seq,
        settings=compression_settings(snapshot),
        on_started=begins.set,
    )
    try:
        with activity_log.about(conversation=snapshot.conversation_id):
            await runner.begin_compression(snapshot.conversation_id, run, begins)
    except CompressionRunning:
        return "running"
    return "started"


async def cancel_compression(user_id: int, code: str) -> bool:
    """Cancel a running compression; False if there is none. Raises NotFound."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    cancelled = await compression_services.cancel(snapshot.conversation_id)
    if cancelled:
        await wiring.bus().nudge(snapshot.conversation_id)
    return cancelled


async def undo(user_id: int, code: str) -> int:
    """Undo the last change. Raises NotFound, NothingToUndo, StaleSource, StaleVersion."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    transcript = wiring.services().transcript
    version = await compression_services.undo(
        snapshot.conversation_id, transcript=transcript, author_id=user_id
    )
    await wiring.announcer().summary(snapshot.conversation_id)
    return version


async def redo(user_id: int, code: str) -> int:
    """Redo what was undone last. Raises as :func:`undo`."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    transcript = wiring.services().transcript
    version = await compression_services.redo(
        snapshot.conversation_id, transcript=transcript, author_id=user_id
    )
    await wiring.announcer().summary(snapshot.conversation_id)
    return version


async def restore(user_id: int, code: str, version: int) -> int:
    """Make an older version active; 0 means no summary. Raises as :func:`undo`."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    restored = await compression_services.restore(
        snapshot.conversation_id,
        version,
        transcript=wiring.services().transcript,
        author_id=user_id,
    )
    await wiring.announcer().summary(snapshot.conversation_id)
    return restored


async def edit_summary(user_id: int, code: str, text: str, version: int) -> int:
    """Replace version ``version`` by a person's text.

    Raises NotFound, StaleVersion with both texts, and SummaryInvalid naming the line.
    """
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    profile = await profile_of(snapshot.model)
    edited = await compression_services.edit(
        snapshot.conversation_id,
        text,
        expected_version=version,
        author_id=user_id,
        counter=wiring.services().counter,
        sizes=sizes_of(snapshot, profile),
        settings=compression_settings(snapshot),
    )
    await wiring.announcer().summary(snapshot.conversation_id)
    return edited


async def clear(user_id: int, code: str) -> int:
    """Move the boundary to the end, with no summary. Can be undone. Raises NothingToCompress."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    version = await compression_services.clear(
        snapshot.conversation_id, transcript=wiring.services().transcript, author_id=user_id
    )
    await wiring.announcer().summary(snapshot.conversation_id)
    return version
