"""Catching up: what a viewer has to be told that no event brought, read from the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from chatapp.consumers.outlet import Outlet
from chatapp.conversations.viewer_checks import ahow_it_ended
from chatapp.live import events
from chatapp.live.view_models import PageView, TurnView
from chatapp.live.viewer import Viewer
from chatapp.live.viewer_state import OUTCOME, Run
from chatapp.turns.announcer import common
from chatapp.turns.services import Services
from compression.types import Trigger

# Seconds to wait for the event of an end that a state has shown already; then it is made up.
END_IS_TOLD = 1.0


class CatchUp:
    """Reads a conversation and tells one viewer of it. Every method may raise NotFound."""

    def __init__(
        self, conversation_id: int, viewer: Viewer, outlet: Outlet, services: Services
    ) -> None:
        self._conversation_id = conversation_id
        self._viewer = viewer
        self._outlet = outlet
        self._services = services
        self._revision = -1
        """What was known of models when the viewer was told of its context."""

    @property
    def figures_changed(self) -> bool:
        """Whether something has been learned of a model since the viewer was told its figures."""
        return self._revision != self._services.catalogue.revision

    async def tell_state(self) -> None:
        """Send one ``state``: all that changed since what the viewer has been told."""
        viewer = self._viewer
        after = viewer.after
        self._revision = self._services.catalogue.revision
        change = await self._services.achanges(self._conversation_id, after)
        event_no = change.conversation.event_no
        if viewer.seen > event_no:
            # As after a restored backup.
            viewer.start_over()
            change = await self._services.achanges(self._conversation_id, 0)
        turn = viewer.at_least(change.turn)
        state = events.State(
            after=viewer.seen,
            conversation=change.conversation,
            messages=_with_text_of(change, turn),
            turn=turn,
            turns=change.turns,
            compression=change.compression,
            context=change.context,
            **common(self._conversation_id, event_no),
        )
        tell_by = asyncio.get_running_loop().time() + END_IS_TOLD
        viewer.shown(event_no, turn=turn, compression=change.compression, tell_by=tell_by)
        await self._outlet.send_event(state)

    async def tell_context(self) -> None:
        """Send the figures again: another conversation has taught something of a model."""
        self._revision = self._services.catalogue.revision
        context = await self._services.acontext(self._conversation_id)
        await self._outlet.send_event(events.Context(context=context, **self._about()))

    async def tell_end(self, facts: dict[str, Any], *, made_up: bool = False) -> None:
        """Send how a run ended, with the conversation as it is by now."""
        _, compression, context = await self._services.aoverview(self._conversation_id)
        self._viewer.compressions.ended(
            running=compression.running, version=compression.version, made_up=made_up
        )
        await self._outlet.send_event(
            events.CompressionCompleted(
                **facts, compression=compression, context=context, **self._about()
            )
        )

    async def tell_owed_end(self, run: Run) -> None:
        """Send the end of a run whose own event did not come, from what is stored."""
        outcome = await ahow_it_ended(
            self._conversation_id,
            trigger=Trigger(run.trigger),
            version=run.version,
            since=run.since,
        )
        await self.tell_end({name: getattr(outcome, name) for name in OUTCOME}, made_up=True)

    def _about(self) -> dict[str, Any]:
        # Not a newer number than the viewer has been told of: it would come back behind it.
        return common(self._conversation_id, self._viewer.seen)


def _with_text_of(change: PageView, turn: TurnView | None) -> list[Any]:
    """The changed messages; the reply that is being written has its text so far."""
    if turn is None:
        return change.messages
    return [
        replace(message, text=turn.text, reasoning=turn.reasoning)
        if message.seq == turn.seq
        else message
        for message in change.messages
    ]
