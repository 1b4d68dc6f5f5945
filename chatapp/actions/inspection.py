"""The next request of a conversation, part by part, as the model would see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chatapp import wiring
from chatapp.actions.connections.offered import choice
from chatapp.actions.limits import profile_of
from chatapp.actions.subject import Subject, conversation_of, subject
from chatapp.context.instructions import parts as instruction_parts
from chatapp.context.request import (
    build_request,
    pinned_block,
    project_lines,
    summary_block,
    visible_tail,
)
from chatapp.context.sent_back import items_of
from chatapp.context.wire import wire_of
from chatapp.errors import InvalidInput
from chatapp.live.view_models import ContextView
from chatapp.llm.client import Message
from chatapp.turns.fitting import sent_back
from chatapp.turns.turn import sent_along
from compression.planning.truncation import truncate


async def context_parts(user_id: int, code: str) -> ContextParts:
    """The next request as it would be sent now. Raises NotFound."""
    owned = await (await subject(user_id, code)).with_tail()
    return await asyncio.to_thread(_context_parts, owned)


async def figures_with(user_id: int, code: str, model: str) -> ContextView:
    """The usage of the next request with another model. Raises NotFound, InvalidInput."""
    conversation_id = await conversation_of(user_id, code)
    services = wiring.services()
    # Looking up a name would store it, so only known names are looked up.
    if model not in (await choice(user_id)).names:
        raise InvalidInput.of("model", "There is no such model here.")
    await profile_of(model)
    return await services.acontext(conversation_id, model=model)


async def left_out(user_id: int, code: str) -> list[dict[str, Any]]:
    """The messages left out of requests, or else those that a first truncation would leave out.

    Each has seq, role, text and tokens. Raises NotFound.
    """
    owned = await (await subject(user_id, code)).with_tail()
    return await asyncio.to_thread(_left_out, owned)


def _left_out(owned: Subject) -> list[dict[str, Any]]:
    snapshot, sized = owned.snapshot, owned.sizes
    visible = visible_tail(replace(snapshot, truncated_through=0))
    items = items_of(visible, sent_back(owned.profile))
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


async def masked(user_id: int, code: str) -> list[dict[str, Any]]:
    """The masked messages of the next request: seq, role, text as it is sent, tokens of that.

    Raises NotFound.
    """
    owned = await (await subject(user_id, code)).with_tail()
    return await asyncio.to_thread(_masked, owned)


def _masked(owned: Subject) -> list[dict[str, Any]]:
    visible = visible_tail(owned.snapshot)
    seqs = {one.seq for one in visible if one.masked}
    return [
        {
            "seq": one.seq,
            "role": one.message["role"],
            "text": _wire_text(one.message),
            "tokens": one.tokens,
        }
        for one in wire_of(visible)
        if one.seq in seqs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParts:
    """The next request, by part and message by message."""

    groups: list[dict[str, Any]]
    """name, tokens, messages: [{role, text, tokens}]. Instructions also have their origin: chat,
    own or conversation. Messages of the tail also have pinned, masked, looked_up (excerpts of older
    messages come along) and seq (0 if the program inserted them)."""
    messages: tuple[Message, ...]
    """The exact messages, as they are sent."""
    manifest: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The parts, the exact messages, and the manifest."""
        return {
            "parts": self.groups,
            "messages": list(self.messages),
            "manifest": self.manifest,
        }


def _context_parts(owned: Subject) -> ContextParts:
    snapshot, counter = owned.snapshot, wiring.services().counter
    back = sent_back(owned.profile)
    recall = owned.profile.supports_tools
    built = build_request(snapshot, owned.sizes, back=back, recall=recall)
    tokens = built.manifest["tokens"]
    heads = (
        ("summary", summary_block(snapshot, recall=recall)),
        ("pinned", pinned_block(snapshot)),
    )
    groups: list[dict[str, Any]] = [
        {"name": "system", "tokens": tokens["system"], "messages": _instructions(owned, tokens)}
    ]
    groups += [
        {
            "name": name,
            "tokens": tokens[name],
            "messages": [{"role": "system", "text": text, "tokens": tokens[name]}] if text else [],
        }
        for name, text in heads
    ]
    if snapshot.tools:
        # Their definitions are known while a turn runs; this is their size in the last request.
        groups.append({"name": "tools", "tokens": tokens["tools"], "messages": []})
    visible = visible_tail(snapshot)
    pinned = {one.seq for one in visible if one.pinned}
    hidden = {one.seq for one in visible if one.masked}
    helped = {one.seq for one in visible if one.added_context}
    tail = [
        {
            "role": one.message["role"],
            "text": _wire_text(one.message),
            "tokens": one.tokens,
            "seq": one.seq,
            "pinned": one.seq in pinned,
            "masked": one.seq in hidden,
            "looked_up": one.seq in helped,
        }
        for one in wire_of(visible, back)
    ]
    groups.append({"name": "tail", "tokens": tokens["tail"], "messages": tail})
    return ContextParts(
        groups=groups,
        messages=owned.profile.messages(built.messages),
        manifest={**built.manifest, **sent_along(snapshot, owned.profile, counter, owned.sizes)},
    )


def _instructions(owned: Subject, tokens: Mapping[str, int]) -> list[dict[str, Any]]:
    """The instructions by origin. The chat's own part takes all tokens that no other takes."""
    counter = wiring.services().counter
    snapshot = owned.snapshot
    project = snapshot.project
    shared = project.instructions if project else ""
    found: list[dict[str, Any]] = [
        {"role": "system", "origin": origin, "text": text, "tokens": counter.count(text)}
        for origin, text in instruction_parts(
            snapshot.own_instructions, snapshot.system_prompt, project=shared
        )
    ]
    if project is not None:
        found += _project_lines(owned, project.slug)
        for one in found:
            if one["origin"] == "project":
                one["project"] = project.slug
    found[0]["tokens"] = tokens["system"] - sum(one["tokens"] for one in found[1:])
    return found


def _project_lines(owned: Subject, slug: str) -> list[dict[str, Any]]:
    """The lines that the conversation's project keeps, as one message; none without lines."""
    lines = project_lines(owned.snapshot, owned.sizes)
    if not lines.text and not lines.left_out:
        return []
    return [
        {
            "role": "system",
            "origin": "project-lines",
            "text": lines.text,
            "tokens": wiring.services().counter.count(lines.text),
            "project": slug,
            "left_out": lines.left_out,
        }
    ]


def _wire_text(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls")
    text = str(message.get("content") or "")
    return f"{text}\n{json.dumps(calls, ensure_ascii=False)}".strip() if calls else text
