"""A person's actions on the tools of a conversation: switches, keys, and approving calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from chatapp import wiring
from chatapp.actions.subject import subject
from chatapp.conversations.tools import approvals, servers
from chatapp.conversations.tools.approvals import Decision
from chatapp.conversations.tools.servers import ServerChoice
from chatapp.live.view_models import MUCH_FOR_TOOLS
from chatapp.tools import sealing
from compression.tools.approval import exact
from compression.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTools:
    """A server in the list, and the tools that it offers."""

    choice: ServerChoice
    tools: tuple[Tool, ...]
    tokens: int
    """Of their definitions, as the model's provider counts them; spent in every request."""

    def as_json(self) -> dict[str, Any]:
        """Everything but what is needed to connect."""
        return {
            "name": self.choice.name,
            "on": self.choice.on,
            "personal_keys": self.choice.personal_keys,
            "has_key": self.choice.has_key,
            "quarantined": self.choice.quarantined,
            "tokens": self.tokens,
            "tools": [
                {"name": one.name, "description": one.description, "read_only": one.read_only}
                for one in self.tools
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsPage:
    """The tools that a conversation can use."""

    servers: tuple[ServerTools, ...]
    always_allowed: tuple[str, ...]
    """Tools whose calls are not asked about here."""
    tokens: int
    """Of all definitions that the next request carries, those of built-in tools too."""
    budget: int

    @property
    def share(self) -> float:
        """The tokens as a share of the budget."""
        return round(self.tokens / self.budget, 4)

    @property
    def warning(self) -> str:
        """A sentence if they take too much of every request; empty otherwise."""
        if self.share <= MUCH_FOR_TOOLS:
            return ""
        return (
            f"The definitions of these tools take about {self.tokens:,} tokens of every request, "
            f"{self.share:.0%} of what the model can take. Switch off what is not needed here."
        )

    def as_json(self) -> dict[str, Any]:
        """The page for programs."""
        return {
            "servers": [one.as_json() for one in self.servers],
            "always_allowed": list(self.always_allowed),
            "tokens": self.tokens,
            "share": self.share,
            "warning": self.warning,
        }


async def tools_page(user_id: int, code: str) -> ToolsPage:
    """The tools that the person's conversation can use. Raises NotFound."""
    mine = await subject(user_id, code)
    found, always = await servers.achoices(user_id, code)
    listed = [(one, wiring.mcp_tools().tools_of(mine.conversation_id, one.access)) for one in found]
    offered = await wiring.services().tools(mine.snapshot, mine.sizes)
    counted = await asyncio.to_thread(_tokens, [*(tools for _, tools in listed), offered])
    *each, whole = (round(count * mine.profile.calibration) for count in counted)
    return ToolsPage(
        servers=tuple(
            ServerTools(choice=choice, tools=tools, tokens=tokens)
            for (choice, tools), tokens in zip(listed, each, strict=True)
        ),
        always_allowed=tuple(always),
        tokens=whole,
        budget=mine.sizes.budget,
    )


def _tokens(offers: list[tuple[Tool, ...]]) -> list[int]:
    """Ruler tokens of the definitions in each of several offers."""
    count = wiring.services().counter.count
    return [sum(count(exact(one.definition())) for one in tools) for tools in offers]


async def switch(user_id: int, code: str, server: str, *, on: bool) -> None:
    """Switch a server on or off in a conversation. Raises NotFound."""
    await wiring.bus().nudge(await servers.aswitch(user_id, code, server, on=on))


async def ask_again(user_id: int, code: str, tool: str) -> None:
    """Have calls of a tool approved one by one again. Raises NotFound."""
    await servers.aask_again(user_id, code, tool)


async def keep_key(user_id: int, server: str, key: str) -> None:
    """Store the person's own key for a server, encrypted. Raises NotFound, InvalidInput."""
    await servers.akeep_key(user_id, server, sealing.seal(key))


async def remove_key(user_id: int, server: str) -> None:
    """Delete the person's own key for a server. Raises NotFound, InvalidInput."""
    await servers.akeep_key(user_id, server, "")


async def decide(
    user_id: int, code: str, call_id: str, fingerprint: str, decision: Decision
) -> None:
    """Allow or refuse a call, and show that on every page.

    Raises NotFound, ApprovalOver, ApprovalChanged.
    """
    change = await approvals.adecide(user_id, code, call_id, fingerprint, decision)
    wiring.approvals().answered(change.approval)
    await wiring.announcer().approval(change)
