"""What people can do to a conversation: check, store, run. Views and other doors call these."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from chatapp import wiring
from chatapp.actions.limits import check_size, count, profile_of, require_fit, sizes_of
from chatapp.catalogue import PINNED_SHARE
from chatapp.context import build
from chatapp.conversations import access, beginning, branching, pins, replacing, sending
from chatapp.conversations.reading import abasis, aowned_frame, aspoken
from chatapp.conversations.spending import arequire_within_limit
from chatapp.errors import MessageTooLarge, NothingToContinue, NothingToStop
from chatapp.llm import activity_log
from chatapp.turns.fitting import compression_settings
from compression import services
from compression.exceptions import CompressionRunning
from compression.types import Trigger

# Not every server takes an unfinished reply as a beginning; every model takes this.
CONTINUE = "Continue exactly where you stopped."


async def send(
    user_id: int,
    code: str,
    text: str,
    client_msg_id: uuid.UUID,
    *,
    last_seen_seq: int | None = None,
    frame: build.Basis | None = None,
) -> sending.Accepted | sending.Queued:
    """Store a message and begin its turn; only then answer. ``frame``: from ``aowned_frame``.

    Raises NotFound, MessageTooLarge before anything is stored, TurnOpen, MovedOn, TooManyReplies
    and DailyLimit.
    """
    frame = frame or await aowned_frame(user_id, code)
    profile = await profile_of(frame.model)
    tokens = await count(text)
    try:
        await check_size(frame, profile, tokens)
    except MessageTooLarge:
        # What was accepted once is answered as then, whatever the room is now.
        before = await sending.arepeated(user_id, code, client_msg_id)
        if before is None:
            raise
        return before
    runner = wiring.runner()
    acceptance = sending.aaccept(
        user_id,
        code,
        text=text,
        client_msg_id=client_msg_id,
        tokens=tokens,
        model=profile.name,
        holder=runner.holder,
        last_seen_seq=last_seen_seq,
    )
    result = await runner.begin(acceptance)
    if isinstance(result, sending.Queued):
        await wiring.bus().nudge(result.conversation_id)
    return result


async def _first(text: str, client_msg_id: uuid.UUID, model: str) -> beginning.First:
    profile, tokens = await profile_of(model), await count(text)
    return beginning.First(
        text=text,
        client_msg_id=client_msg_id,
        tokens=tokens,
        model=profile.name,
        holder=wiring.runner().holder,
        require_fit=partial(require_fit, profile, tokens),
    )


async def begin(user_id: int, text: str, client_msg_id: uuid.UUID, settings: dict[str, str]) -> str:
    """A new conversation that begins with a message; its code.

    A repeated ``client_msg_id`` leads to the first one. Raises as :func:`send`, and then there is
    no conversation.
    """
    first = await _first(text, client_msg_id, settings["model"])
    accepted = await wiring.runner().begin(beginning.abegin(user_id, first, settings))
    return accepted.code


async def begin_branch(
    user_id: int,
    code: str,
    seq: int,
    text: str,
    client_msg_id: uuid.UUID,
    *,
    clears_draft: bool = False,
) -> str:
    """A branch after message ``seq`` that goes on with a message; its code. As :func:`begin`."""
    frame = await aowned_frame(user_id, code)
    first = await _first(text, client_msg_id, frame.model)
    branched = beginning.abegin_branch(user_id, code, seq, first, clears_draft=clears_draft)
    return (await wiring.runner().begin(branched)).code


async def regenerate(user_id: int, code: str, seq: int | None) -> sending.Accepted:
    """Answer the last user message, or the one at or before ``seq``, again.

    Raises NotFound, TurnOpen, TooManyReplies, Summarised.
    """
    frame = await aowned_frame(user_id, code)
    profile = await profile_of(frame.model)
    runner = wiring.runner()
    acceptance = replacing.aregenerate(
        user_id, code, model=profile.name, holder=runner.holder, seq=seq
    )
    return await runner.begin(acceptance)


async def edit_message(user_id: int, code: str, seq: int, text: str) -> sending.Accepted:
    """Send another text in place of a user message. Raises as :func:`send`, and Summarised."""
    frame = await aowned_frame(user_id, code)
    profile = await profile_of(frame.model)
    tokens = await count(text)
    await check_size(frame, profile, tokens)
    runner = wiring.runner()
    acceptance = replacing.aedit(
        user_id,
        code,
        seq,
        text=text,
        tokens=tokens,
        model=profile.name,
        holder=runner.holder,
    )
    return await runner.begin(acceptance)


async def proceed(
    user_id: int, code: str, client_msg_id: uuid.UUID
) -> sending.Accepted | sending.Queued:
    """Ask the model to go on where its reply ended: a message of the person's like any other.

    Raises as :func:`send`, and NothingToContinue.
    """
    frame = await aowned_frame(user_id, code)
    if not await aspoken(frame.conversation_id):
        # What was accepted once is answered as then: its own reply may be the one without text.
        before = await sending.arepeated(user_id, code, client_msg_id)
        if before is None:
            raise NothingToContinue
        return before
    return await send(user_id, code, CONTINUE, client_msg_id, frame=frame)


async def edit_queued(user_id: int, code: str, text: str) -> None:
    """Put another text in place of the one that waits. Raises as :func:`send`, NothingQueued."""
    frame = await aowned_frame(user_id, code)
    await check_size(frame, await profile_of(frame.model), await count(text))
    await sending.achange_queue(user_id, code, "edit", text)


async def send_now(user_id: int, code: str) -> None:
    """Stop the open turn, so that the message that waits is sent. Raises NotFound."""
    try:
        await stop(user_id, code)
    except NothingToStop:
        # The turn has just ended, and with its process perhaps: then nobody else sends it.
        await wiring.runner().send_stranded()


async def stop(user_id: int, code: str) -> None:
    """End the open turn, whichever process runs it. Raises NotFound, NothingToStop."""
    _, turn = await sending.arequest_stop(user_id, code)
    wiring.runner().stop(turn)


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


async def pin(user_id: int, code: str, seq: int, *, on: bool) -> None:
    """Pin or unpin a message and tell the viewers. Raises NotFound, InvalidInput."""
    frame = await aowned_frame(user_id, code)
    most = sizes_of(frame, await profile_of(frame.model)).ruler(PINNED_SHARE)
    conversation_id, event_no, message = await pins.apin(
        user_id, code, seq, on=on, most_tokens=most
    )
    await wiring.announcer().message_changed(conversation_id, event_no, message)


async def continue_in_new(user_id: int, code: str) -> str:
    """A new conversation that carries the summary and the last turns over; its code.

    Raises NotFound.
    """
    frame = await aowned_frame(user_id, code)
    tokens = wiring.machinery().counter.count(frame.summary)
    turns = compression_settings(frame).keep_turns
    return await branching.acontinue_in_new(user_id, code, turns, tokens)


async def set_flag(user_id: int, code: str, field: str, *, on: bool) -> None:
    """Set or clear one of a conversation's times and tell its viewers. Raises NotFound.

    Deleting ends what runs: nobody waits for it any more, and it may cost money.
    """
    if field == "deleted_at" and on:
        await services.cancel((await aowned_frame(user_id, code)).conversation_id)
        with suppress(NothingToStop):
            await stop(user_id, code)
    await wiring.bus().nudge(await access.aset_flag(user_id, code, field, on=on))


async def change(user_id: int, code: str, changes: dict[str, Any]) -> None:
    """Write settings of a conversation and tell its viewers. Raises NotFound."""
    event_no = await access.achange(user_id, code, changes)
    frame = await aowned_frame(user_id, code)
    if "title" in changes:
        await wiring.announcer().title(frame.conversation_id, event_no, changes["title"])
    await wiring.bus().nudge(frame.conversation_id)
