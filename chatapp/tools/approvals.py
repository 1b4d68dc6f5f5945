"""The approval of calls by the person whose conversation it is, on any of their pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from chatapp.conversations.tools import approvals
from chatapp.conversations.tools.approvals import Change, Question
from chatapp.models import ApprovalState
from compression.database import AWAY
from compression.exceptions import ToolFailed
from compression.tools.approval import Approve, exact, fingerprint
from compression.tools.tool import Tool

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Seconds between two looks at the database, for answers that another process stored.
LOOK_EVERY = 1.0

WITHDRAWN = "The call no longer waits for an answer, so it did not run."
_REFUSALS = {
    ApprovalState.REFUSED: "The person refused this call, so it did not run.",
    ApprovalState.EXPIRED: "Nobody allowed this call within ten minutes, so it did not run.",
}

Announce = Callable[[Change], Awaitable[None]]


class Approvals:
    """The questions of this process's turns. ``announce`` tells the viewers of a change."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._answered: dict[int, asyncio.Event] = {}

    def port(self, conversation_id: int, turn: int) -> Approve:
        """What the calls of one turn are approved by."""

        async def approve(tool: Tool, call_id: str, arguments: Mapping[str, Any]) -> bool:
            given = dict(arguments)
            return await self._approve(
                Question(
                    conversation_id=conversation_id,
                    turn=turn,
                    call_id=call_id,
                    tool=tool.name,
                    definition_sha256=fingerprint(tool.definition()),
                    arguments=exact(given),
                    arguments_sha256=fingerprint(given),
                )
            )

        return approve

    def answered(self, approval: int) -> None:
        """Look for the answer at once, if one of this process's turns waits for it."""
        if event := self._answered.get(approval):
            event.set()

    async def _approve(self, question: Question) -> bool:
        asked = await _patiently(partial(approvals.aask, question))
        if asked is None:
            return True
        event = self._answered[asked.approval] = asyncio.Event()
        try:
            await self._told(asked)
            state = await _answer(asked.approval, event)
        except BaseException:
            # Stop, or an error: nobody has to decide any more. The turn waits, so that its end
            # comes after this.
            await asyncio.shield(self._close(asked.approval, ApprovalState.WITHDRAWN))
            raise
        finally:
            del self._answered[asked.approval]
        if state is ApprovalState.EXPIRED:
            await self._close(asked.approval, state)
        if state is not ApprovalState.ALLOWED:
            raise ToolFailed(_REFUSALS.get(state, WITHDRAWN))
        return True

    async def _close(self, approval: int, state: ApprovalState) -> None:
        """End a question. Never raises: no answer counts after its time, or after its turn."""
        try:
            change = await approvals.aclose(approval, state)
        except Exception:
            logger.exception("The question %s could not be closed.", approval)
        else:
            if change is not None:
                await self._told(change)

    async def _told(self, change: Change) -> None:
        """Announce what is stored. Never raises: viewers look for changes by themselves."""
        try:
            await self._announce(change)
        except Exception:
            logger.exception("The question %s could not be announced.", change.approval)


async def _answer(approval: int, event: asyncio.Event) -> ApprovalState:
    """The state of a question once it no longer waits."""
    while True:
        event.clear()
        state = await _patiently(partial(approvals.astate_of, approval))
        if state is not ApprovalState.WAITING:
            return state
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY):
                await event.wait()


async def _patiently(unit: Callable[[], Awaitable[R]]) -> R:
    """The result of a unit of work, which is tried again while the database is away.

    Raises what the unit raises, once a question would have expired.
    """
    for _ in range(int(approvals.LIFETIME.total_seconds() / LOOK_EVERY)):
        try:
            return await unit()
        except AWAY as error:
            logger.warning("A question about a call waits for the database: %s", error)
            await asyncio.sleep(LOOK_EVERY)
    return await unit()
