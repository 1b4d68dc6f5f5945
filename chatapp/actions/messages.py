"""A person's actions on messages: check, store, run. Every door calls these."""

from __future__ import annotations

import uuid
from functools import partial

from chatapp import wiring
from chatapp.actions.limits import check_size, count, profile_of, require_fit, sizes_of
from chatapp.context import build
from chatapp.conversations.messages import pins
from chatapp.conversations.messages.reading import alast_reply_has_text, aowned_frame
from chatapp.conversations.turns import beginning, replacing, sending
from chatapp.errors import MessageTooLarge, NothingToContinue, NothingToStop
from chatapp.llm.profiles import PINNED_SHARE

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
    if not await alast_reply_has_text(frame.conversation_id):
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


async def pin(user_id: int, code: str, seq: int, *, on: bool) -> None:
    """Pin or unpin a message and tell the viewers. Raises NotFound, InvalidInput."""
    frame = await aowned_frame(user_id, code)
    most = sizes_of(frame, await profile_of(frame.model)).ruler(PINNED_SHARE)
    conversation_id, event_no, message = await pins.apin(
        user_id, code, seq, on=on, most_tokens=most
    )
    await wiring.announcer().message_changed(conversation_id, event_no, message)
