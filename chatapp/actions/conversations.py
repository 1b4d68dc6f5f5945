"""A person's actions on a whole conversation: settings, flags, continuing in a new one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from chatapp import wiring
from chatapp.actions.limits import count
from chatapp.actions.messages import stop
from chatapp.actions.subject import conversation_of, subject
from chatapp.conversations import continuing, lifecycle
from chatapp.conversations.continuing import LeftBehind
from chatapp.errors import NothingToStop
from chatapp.llm.profiles import Profile
from chatapp.turns.fitting import compression_settings
from compression import services as compression_services
from compression import store
from compression.exceptions import DraftRejected
from compression.judging.standing_rules import with_missed
from compression.ledger.ledger import render
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.types import Ledger

# Share of the budget that the last turns may have in a continuation.
MOST_CARRIED = 0.5


async def continue_in_new(user_id: int, code: str) -> str:
    """The next part, with summary, rules, pins and last turns of this one. Returns its code.

    Messages that neither the summary nor the last turns hold are extracted into the new summary,
    without a model, so that it also works when no model answers. Raises NotFound, and StaleVersion
    when the summary changes meanwhile.
    """
    owned = await subject(user_id, code)
    turns = compression_settings(owned.snapshot).keep_turns
    room = owned.sizes.ruler(MOST_CARRIED)
    left = await continuing.aleft_behind(user_id, code, turns, room)
    text, ledger = left.text, left.ledger
    if left.items:
        ledger = await _carried(left, owned.profile)
        text = render(ledger)
    tokens = await count(text)
    return await continuing.acontinue_in_new(
        user_id, code, left, text=text, ledger=ledger, summary_tokens=tokens
    )


async def _carried(left: LeftBehind, profile: Profile) -> Ledger:
    """The summary with what the messages say that do not come along: first of all, every rule."""
    services = wiring.services()
    cap, ledger = services.most_of_summary(profile), left.ledger
    extract = ExtractiveSummarizer(services.counter, cap, shortens=False)
    # Without any text in them, there is nothing to extract.
    with suppress(DraftRejected):
        ledger = (await extract.draft(left.items, ledger, focus="", on_tokens=_unheard)).ledger
    ledger, _ = await asyncio.to_thread(
        with_missed, ledger, left.items, cap_tokens=cap, count=services.counter.count
    )
    return ledger


async def _unheard(tokens: int) -> None:
    """Nobody is told how far the extract is."""


async def set_flag(user_id: int, code: str, field: str, *, on: bool) -> None:
    """Set or clear one of a conversation's timestamps, and announce it. Raises NotFound.

    Deleting also stops what runs, since nobody waits for it and it may cost money.
    """
    deletes = field == "deleted_at" and on
    if deletes:
        with suppress(NothingToStop):
            await stop(user_id, code)
    conversation_id = await lifecycle.aset_flag(user_id, code, field, on=on)
    if deletes:
        # Only now: the end of a turn that is not deleted yet may begin a summary.
        await compression_services.cancel(conversation_id)
    await wiring.bus().nudge(conversation_id)


async def change(user_id: int, code: str, changes: dict[str, Any]) -> None:
    """Change settings of a conversation and announce it. Raises NotFound."""
    event_no = await lifecycle.achange(user_id, code, changes)
    conversation_id = await conversation_of(user_id, code)
    if changes.get("preview_first"):
        # It would be applied unseen.
        await store.adiscard_ready(conversation_id, "Its owner looks at each summary first.")
    if "title" in changes:
        await wiring.announcer().title(conversation_id, event_no, changes["title"])
    await wiring.bus().nudge(conversation_id)
