"""A person's actions on a whole conversation: settings, flags, continuing in a new one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from chatapp import wiring
from chatapp.actions.messages import stop
from chatapp.actions.subject import conversation_of
from chatapp.conversations import branching, lifecycle
from chatapp.conversations.messages.reading import aowned_snapshot_without_tail
from chatapp.errors import NothingToStop
from chatapp.turns.fitting import compression_settings
from compression import services as compression_services


async def continue_in_new(user_id: int, code: str) -> str:
    """A new conversation with the summary and the last turns of this one. Returns its code.

    Raises NotFound.
    """
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    tokens = wiring.services().counter.count(snapshot.summary)
    turns = compression_settings(snapshot).keep_turns
    return await branching.acontinue_in_new(user_id, code, turns, tokens)


async def set_flag(user_id: int, code: str, field: str, *, on: bool) -> None:
    """Set or clear one of a conversation's timestamps, and announce it. Raises NotFound.

    Deleting also stops what runs, since nobody waits for it and it may cost money.
    """
    if field == "deleted_at" and on:
        await compression_services.cancel(await conversation_of(user_id, code))
        with suppress(NothingToStop):
            await stop(user_id, code)
    await wiring.bus().nudge(await lifecycle.aset_flag(user_id, code, field, on=on))


async def change(user_id: int, code: str, changes: dict[str, Any]) -> None:
    """Change settings of a conversation and announce it. Raises NotFound."""
    event_no = await lifecycle.achange(user_id, code, changes)
    conversation_id = await conversation_of(user_id, code)
    if "title" in changes:
        await wiring.announcer().title(conversation_id, event_no, changes["title"])
    await wiring.bus().nudge(conversation_id)
