"""A person's actions on messages: check, store, run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from chatapp import wiring
from chatapp.actions.limits import admitted, check_size, count
from chatapp.actions.subject import conversation_of, subject
from chatapp.conversations.messages import pins
from chatapp.conversations.messages.reading import alast_reply_has_text
from chatapp.conversations.turns import beginning, replacing, sending
from chatapp.errors import NothingToContinue
from chatapp.llm.profiles import PINNED_SHARE
from compression import services as compression_services

Begun = Coroutine[Any, Any, sending.Accepted]

# Not every server continues an unfinished reply, but every model understands this message.
CONTINUE = "Continue exactly where you stopped."


async def send(
    user_id: int,
    code: str,
    text: str,
    client_msg_id: uuid.UUID,
    *,
    last_seen_seq: int | None = None,
    beside_held: bool = False,
) -> sending.Accepted | sending.Queued:
    """Store a message and begin its turn; return only then.

    ``beside_held``: a held message stays held. Raises NotFound, MessageTooLarge before anything is
    stored, TurnOpen, MovedOn, TooManyReplies and DailyLimit.
    """
    runner = wiring.runner()

    async def begin(admit: sending.Admit, tokens: int) -> sending.Accepted | sending.Queued:
        acceptance = sending.aaccept(
            user_id,
            code,
            text=text,
            client_msg_id=client_msg_id,
            tokens=tokens,
            admit=admit,
            process_id=runner.process_id,
            last_seen_seq=last_seen_seq,
            beside_held=beside_held,
        )
        return await runner.begin(acceptance)

    result = await admitted(text, begin)
    if isinstance(result, sending.Queued):
        await wiring.bus().nudge(result.conversation_id)
    return result


async def _begun(
    text: str, client_msg_id: uuid.UUID, acceptance: Callable[[beginning.First], Begun]
) -> str:
    """The code of the conversation that begins with this message."""
    runner = wiring.runner()

    async def begin(admit: sending.Admit, tokens: int) -> sending.Accepted:
        first = beginning.First(
            text=text,
            client_msg_id=client_msg_id,
            tokens=tokens,
            process_id=runner.process_id,
            admit=admit,
        )
        return await runner.begin(acceptance(first))

    return (await admitted(text, begin)).code


async def begin(user_id: int, text: str, client_msg_id: uuid.UUID, settings: dict[str, str]) -> str:
    """A new conversation that begins with a message. Returns its code.

    A repeated ``client_msg_id`` returns the first one's. Raises as :func:`send`; no conversation is
    made then.
    """
    return await _begun(
        text, client_msg_id, lambda first: beginning.abegin(user_id, first, settings)
    )


async def begin_branch(
    user_id: int,
    code: str,
    seq: int,
    text: str,
    client_msg_id: uuid.UUID,
    *,
    clears_draft: bool = False,
) -> str:
    """A branch after message ``seq`` that continues with a message; as :func:`begin`."""
    return await _begun(
        text,
        client_msg_id,
        lambda first: beginning.abegin_branch(user_id, code, seq, first, clears_draft=clears_draft),
    )


async def regenerate(user_id: int, code: str, seq: int | None) -> sending.Accepted:
    """Answer the last user message, or the one at or before ``seq``, again.

    Raises NotFound, TurnOpen, TooManyReplies, Summarised.
    """
    owned = await subject(user_id, code)
    runner = wiring.runner()
    acceptance = replacing.aregenerate(
        user_id, code, model=owned.profile.name, process_id=runner.process_id, seq=seq
    )
    return await runner.begin(acceptance)


async def edit_message(user_id: int, code: str, seq: int, text: str) -> sending.Accepted:
    """Send another text in place of a user message. Raises as :func:`send`, and Summarised."""
    owned = await subject(user_id, code)
    tokens = await count(text)
    await check_size(owned.snapshot, owned.profile, tokens)
    runner = wiring.runner()
    acceptance = replacing.aedit(
        user_id,
        code,
        seq,
        text=text,
        tokens=tokens,
        model=owned.profile.name,
        process_id=runner.process_id,
    )
    return await runner.begin(acceptance)


async def continue_reply(
    user_id: int, code: str, client_msg_id: uuid.UUID
) -> sending.Accepted | sending.Queued:
    """Ask the model to continue its last reply, with a message of the person's.

    Raises as :func:`send`, and NothingToContinue.
    """
    if not await alast_reply_has_text(await conversation_of(user_id, code)):
        # A repeated request is answered as the first time: the last reply may now be its own.
        before = await sending.arepeated(user_id, code, client_msg_id)
        if before is None:
            raise NothingToContinue
        return before
    return await send(user_id, code, CONTINUE, client_msg_id, beside_held=True)


async def edit_queued(user_id: int, code: str, text: str) -> None:
    """Replace the text of the queued message. Raises as :func:`send`, and NothingQueued."""
    owned = await subject(user_id, code)
    await check_size(owned.snapshot, owned.profile, await count(text))
    await sending.achange_queue(user_id, code, "edit", text)


async def send_now(user_id: int, code: str) -> None:
    """Send the queued or held message; the open turn is stopped for it. Raises NotFound."""
    turn = await sending.arelease(user_id, code)
    if turn is not None:
        wiring.runner().stop(turn)
    else:
        # It has just ended, or its process died and left the message queued, or it was held.
        await wiring.runner().send_orphaned_queues()


async def stop(user_id: int, code: str) -> None:
    """End the open turn, whichever process runs it. Raises NotFound, NothingToStop.

    A queued message is not sent then, but held until its writer decides.
    """
    conversation_id, turn, holds = await sending.arequest_stop(user_id, code, hold=True)
    wiring.runner().stop(turn)
    if holds:
        await wiring.bus().nudge(conversation_id)


async def pin(user_id: int, code: str, seq: int, *, on: bool) -> None:
    """Pin or unpin a message and announce it. Raises NotFound and InvalidInput."""
    most = (await subject(user_id, code)).sizes.ruler(PINNED_SHARE)
    conversation_id, event_no, message = await pins.apin(
        user_id, code, seq, on=on, most_tokens=most
    )
    await wiring.announcer().message_changed(conversation_id, event_no, message)


async def unmask(user_id: int, code: str, batch: int) -> tuple[int, ...]:
    """Take a batch of masks off. Returns the seqs. Raises NotFound and NothingToUndo."""
    conversation_id = await conversation_of(user_id, code)
    wiring.announcer()
    change = await compression_services.unmask(
        conversation_id, batch, masks=wiring.services().masks
    )
    return change.seqs
