"""A person's actions on lines of a summary, and on previews of the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from chatapp import wiring
from chatapp.actions.subject import Subject, conversation_of, subject
from chatapp.conversations.messages import pins
from chatapp.conversations.turns.spending import arequire_within_limit
from chatapp.errors import InvalidInput
from chatapp.live.view_models import MessageView
from chatapp.llm import activity_log
from chatapp.llm.profiles import PINNED_SHARE
from chatapp.turns.fitting import compression_settings
from compression import services as compression_services
from compression import store
from compression.exceptions import CompressionError, CompressionRunning
from compression.ledger.lines import LineChange

# Pins that are announced one by one; of more, viewers fetch the state.
MOST_AT_ONCE = 50


async def change_line(user_id: int, code: str, change: LineChange, version: int) -> int:
    """Change a line of version ``version`` of the summary. Returns the new version.

    Raises NotFound, StaleVersion when that is not the active one, and SummaryInvalid.
    """
    owned = await subject(user_id, code)
    wiring.announcer()
    return await compression_services.edit_lines(
        owned.conversation_id,
        [change],
        expected_version=version,
        author_id=user_id,
        counter=wiring.services().counter,
        sizes=owned.sizes,
        settings=compression_settings(owned.snapshot),
    )


async def make(
    user_id: int,
    code: str,
    *,
    focus: str = "",
    from_seq: int | None = None,
    through_seq: int | None = None,
) -> str:
    """Write a preview. Returns ``"started"``, or ``"running"`` if a run is under way already.

    With ``from_seq``, the messages between the boundary and that message are to stay word for word.
    Raises NotFound, and InvalidInput, NothingToCompress and DailyLimit before any model is called.
    """
    without_tail = await subject(user_id, code)
    await arequire_within_limit(user_id)
    if from_seq is not None:
        if through_seq is not None and through_seq < from_seq:
            raise InvalidInput.of("through_seq", "The range must not end before it begins.")
        await _pin_before(user_id, code, without_tail, from_seq, try_only=True)
    owned = await without_tail.with_tail()
    runner, begins = wiring.runner(), asyncio.Event()
    run = compression_services.preview(
        owned.conversation_id,
        engine=wiring.services().engine(
            replace(owned.profile, calibration=owned.sizes.calibration)
        ),
        sizes=owned.sizes,
        focus=focus,
        from_seq=from_seq,
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


async def apply(
    user_id: int, code: str, preview_id: int, changes: Sequence[LineChange] = ()
) -> int:
    """Apply the preview that waits, with these changes. Returns the new version.

    Raises NotFound, StaleVersion when another one waits or the summary has changed since,
    StaleSource, SummaryInvalid, CompressionRunning, and InvalidInput when what is to stay word for
    word has become too long.
    """
    owned = await subject(user_id, code)
    conversation_id = owned.conversation_id
    wiring.announcer()
    held = await store.apreview(conversation_id)
    pinned: list[MessageView] = []
    if held is not None and held.id == preview_id and held.current and held.from_seq is not None:
        # Before the boundary moves over them: at no time are they missing in a request.
        pinned = await _pin_before(user_id, code, owned, held.from_seq)
    try:
        outcome = await compression_services.apply_preview(
            conversation_id,
            preview_id,
            changes,
            engine=wiring.services().engine(
                replace(owned.profile, calibration=owned.sizes.calibration)
            ),
            sizes=owned.sizes,
            author_id=user_id,
            settings=compression_settings(owned.snapshot),
        )
    except CompressionError:
        if pinned:
            await pins.aunpin_all(conversation_id, [one.seq for one in pinned])
            await wiring.bus().nudge(conversation_id)
        raise
    return outcome.version


async def discard(user_id: int, code: str, preview_id: int) -> None:
    """Discard the preview that waits. Raises NotFound, and StaleVersion when it is over."""
    conversation_id = await conversation_of(user_id, code)
    wiring.announcer()
    await compression_services.discard_preview(conversation_id, preview_id)


async def _pin_before(
    user_id: int, code: str, owned: Subject, before_seq: int, *, try_only: bool = False
) -> list[MessageView]:
    """Pin the messages from the boundary to ``before_seq`` and announce it."""
    conversation_id, event_no, changed = await pins.apin_between(
        user_id,
        code,
        after_seq=owned.snapshot.boundary,
        before_seq=before_seq,
        most_tokens=owned.sizes.ruler(PINNED_SHARE),
        try_only=try_only,
    )
    if len(changed) > MOST_AT_ONCE:
        await wiring.bus().nudge(conversation_id)
    else:
        for message in changed:
            await wiring.announcer().message_changed(conversation_id, event_no, message)
    return changed
