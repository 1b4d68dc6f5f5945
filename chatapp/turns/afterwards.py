"""The work after a turn: a title, the queued message, a summary prepared in the background."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from chatapp.context.tokens import message_tokens
from chatapp.conversations.turns.sending import Accepted, aaccept_queued, aorphaned_queues
from chatapp.errors import NotFound
from chatapp.turns.announcer import Announcer
from chatapp.turns.fitting import prepare_in_background
from chatapp.turns.running import Spawn, fitting_deps_for
from chatapp.turns.services import Services
from chatapp.turns.titles import name_by_first_words, name_by_model
from chatapp.turns.turn import Job
from compression.exceptions import UserFacingError

logger = logging.getLogger(__name__)


class Afterwards:
    """Does the work after a turn. ``start`` runs the turn of a queued message."""

    def __init__(
        self,
        *,
        process_id: str,
        services: Services,
        announcer: Announcer,
        start: Callable[[Accepted], Awaitable[None]],
        spawn: Spawn,
    ) -> None:
        self._process_id = process_id
        self._services = services
        self._announcer = announcer
        self._start = start
        self._spawn = spawn

    async def follow(self, job: Job) -> None:
        """Do the work after a turn. Never raises."""
        try:
            await self._name(job)
            if not await self._send_queued(job.conversation_id, job.model):
                await self._prepare(job)
        except NotFound:
            logger.info("Conversation %s was deleted meanwhile.", job.conversation_id)
        except UserFacingError as error:
            logger.info("After turn %s: %s", job.turn, error.message)
        except Exception:
            # The reply is stored and announced; the next turn does what was left undone here.
            logger.exception("The work after turn %s failed.", job.turn)

    async def _name(self, job: Job) -> None:
        named = await name_by_first_words(job.conversation_id, self._announcer)
        asked = self._services.automatic_titles and not self._services.by_demo(job.model)
        if named and asked:
            profile = await self._services.catalogue.profile(job.model)
            asking = name_by_model(
                job.conversation_id, self._services.client, profile, self._announcer
            )
            self._spawn(asking, f"title of conversation {job.conversation_id}")

    async def _send_queued(self, conversation_id: int, model: str) -> bool:
        accepted = await aaccept_queued(
            conversation_id, count=self.count, model=model, process_id=self._process_id
        )
        if accepted is None:
            return False
        await self._start(accepted)
        return True

    async def send_orphaned_queues(self) -> None:
        """Send queued messages whose turn ended without sending them."""
        for conversation_id in await aorphaned_queues():
            await self._send_queued(conversation_id, self._services.catalogue.known_name())

    async def _prepare(self, job: Job) -> None:
        await prepare_in_background(
            job.conversation_id, await fitting_deps_for(job, self._services, self._announcer)
        )

    def count(self, text: str) -> int:
        """Ruler tokens of a message; 0 for an empty one."""
        return message_tokens(self._services.counter, text) if text.strip() else 0
