"""Changing and deleting a project, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from chatapp import wiring
from chatapp.context.project import LINES_SHARE, ProjectPart, as_manifest, quoted
from chatapp.conversations.projects import rows
from chatapp.conversations.projects.request_part import aowned_part
from chatapp.live.project_views import ProjectCost
from chatapp.llm.profiles import Profile

# As long as the mark of any conversation.
_MARK = f"=== {'0' * 18} ==="


async def change(user_id: int, slug: str, changes: dict[str, Any]) -> None:
    """Change the given settings, and tell open pages of its conversations. Raises NotFound."""
    await tell(await rows.achange(user_id, slug, changes))


async def remove(user_id: int, slug: str) -> None:
    """Delete the project; its conversations stay. Raises NotFound."""
    await tell(await rows.aremove(user_id, slug))


async def tell(conversation_ids: Iterable[int]) -> None:
    """Have the open pages of these conversations read what the model sees again."""
    for one in conversation_ids:
        await wiring.bus().nudge(one)


async def cost(user_id: int, slug: str, model: str) -> ProjectCost:
    """The tokens that the project takes of each request to this model. Raises NotFound."""
    part = await aowned_part(user_id, slug)
    profile = wiring.services().catalogue.known_profile(model)
    return await asyncio.to_thread(_cost, part, profile)


def _cost(part: ProjectPart, profile: Profile) -> ProjectCost:
    window, reserve = profile.window, profile.reserve
    lines = quoted(part, _MARK, window=window, reserve=reserve, calibration=profile.calibration)
    figures = as_manifest(part, lines, wiring.services().counter)
    return ProjectCost(
        model=profile.name,
        lines=figures["tokens"],
        instructions=figures["instructions"],
        left_out=figures["left_out"],
        most=int(LINES_SHARE * (window - reserve)),
    )
