"""The person's settings as they apply to their conversations."""

from __future__ import annotations

import asyncio

from chatapp import wiring
from chatapp.actions.connections.offered import choice
from chatapp.context.instructions import own_part
from chatapp.conversations import people
from chatapp.conversations.projects.rows import aview
from chatapp.llm.servers.names import server_of


async def default_model(user_id: int, *, project: str = "") -> str:
    """The model for the person's new conversations, or for those of a project with this slug.

    Empty for the default of the chat's server. One that its server no longer has is not used: then
    the project's gives way to the person's, and that to the default. Raises NotFound for a foreign
    project.
    """
    wished = (await aview(user_id, project)).model if project else ""
    own, offered = await people.adefault_model(user_id), await choice(user_id)
    default = offered.default if server_of(offered.default) else ""
    return offered.first_there(wished, own) or default


async def instructions_tokens(own: str) -> int:
    """Ruler tokens that a person's own instructions take of each request."""
    return await asyncio.to_thread(wiring.services().counter.count, own_part(own))
