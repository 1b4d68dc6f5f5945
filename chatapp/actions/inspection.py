"""The next request of a conversation, part by part, as the model would see it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any

from chatapp import wiring
from chatapp.actions.limits import profile_of, sizes_of
from chatapp.context.request import (
    BuiltRequest,
    ConversationSnapshot,
    build_request,
    instructions,
    pinned_block,
    summary_block,
    visible_tail,
    wire_of,
)
from chatapp.conversations.messages.reading import aowned_snapshot_without_tail, asnapshot_with_tail
from chatapp.errors import InvalidInput
from chatapp.live.view_models import ContextView
from chatapp.llm.profiles import Profile
from compression.planning.truncation import truncate


async def context_parts(user_id: int, code: str) -> ContextParts:
    """The next request as it would be sent now. Raises NotFound."""
    owned = await aowned_snapshot_without_tail(user_id, code)
    profile = await profile_of(owned.model)
    snapshot = await asnapshot_with_tail(owned.conversation_id)
    return await asyncio.to_thread(_context_parts, snapshot, profile)


async def figures_with(user_id: int, code: str, model: str) -> ContextView:
    """The usage of the next request with another model. Raises NotFound, InvalidInput."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    services = wiring.services()
    # Looking up a name would store it, so only known names are looked up.
    if model not in await services.catalogue.names():
        raise InvalidInput.of("model", "There is no such model here.")
    await profile_of(model)
    return await services.acontext(snapshot.conversation_id, model=model)


async def left_out(user_id: int, code: str) -> list[dict[str, Any]]:
    """The messages left out of requests, or else those that a first truncation would leave out.

    Each has seq, role, text and tokens. Raises NotFound.
    """
    owned = await aowned_snapshot_without_tail(user_id, code)
    profile = await profile_of(owned.model)
    snapshot = await asnapshot_with_tail(owned.conversation_id)
    return await asyncio.to_thread(_left_out, snapshot, profile)


def _left_out(snapshot: ConversationSnapshot, profile: Profile) -> list[dict[str, Any]]:
    sized = sizes_of(snapshot, profile)
    visible = visible_tail(replace(snapshot, truncated_through=0))
    items = [one.as_item() for one in visible]
    through = snapshot.truncated_through or truncate(items, sized, truncated_through=0)
    return [
        {
            "seq": item.seq,
            "role": item.role,
            "text": item.text,
            "tokens": item.tokens,
        }
        for item in items
        if item.seq <= through
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParts:
    """The next request, by part and message by message."""

    groups: list[dict[str, Any]]
    """name, tokens, messages: [{role, text, tokens}]; messages of the tail also have pinned and
    seq (0 if the program inserted them)."""
    built: BuiltRequest

    def as_json(self) -> dict[str, Any]:
        """The parts, the exact messages, and the manifest."""
        return {
            "parts": self.groups,
            "messages": list(self.built.messages),
            "manifest": self.built.manifest,
        }


def _context_parts(snapshot: ConversationSnapshot, profile: Profile) -> ContextParts:
    sized = sizes_of(snapshot, profile)
    built = build_request(snapshot, sized, system_role=profile.supports_system_role)
    tokens = built.manifest["tokens"]
    heads = (
        ("system", instructions(snapshot)),
        ("summary", summary_block(snapshot)),
        ("pinned", pinned_block(snapshot)),
    )
    groups = [
        {
            "name": name,
            "tokens": tokens[name],
            "messages": [{"role": "system", "text": text, "tokens": tokens[name]}] if text else [],
        }
        for name, text in heads
    ]
    visible = visible_tail(snapshot)
    pinned = {one.seq for one in visible if one.pinned}
    tail = [
        {
            "role": one.message["role"],
            "text": _wire_text(one.message),
            "tokens": one.tokens,
            "seq": one.seq,
            "pinned": one.seq in pinned,
        }
        for one in wire_of(visible)
    ]
    groups.append({"name": "tail", "tokens": tokens["tail"], "messages": tail})
    return ContextParts(groups=groups, built=built)


def _wire_text(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls")
    text = str(message.get("content") or "")
    return f"{text}\n{json.dumps(calls, ensure_ascii=False)}".strip() if calls else text
