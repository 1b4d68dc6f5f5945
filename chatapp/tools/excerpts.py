"""Excerpts of older messages that come along with a user's message.

They are looked up once, when the first request of its turn is made, and stored with the message: a
model without tools cannot look for itself, and no model can know that a name which it no longer
sees was spoken of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from chatapp.context.request import ConversationSnapshot, StoredMessage, visible_tail
from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages.added_context import aadd_context
from chatapp.conversations.messages.originals import alook_up
from chatapp.live.view_models import MessageView
from compression.exceptions import ToolFailed
from compression.ports import TokenCounter
from compression.recall.excerpts import excerpts, names_in
from compression.recall.tools import SHARE
from compression.types import Sizes


async def add_excerpts(
    snapshot: ConversationSnapshot, sizes: Sizes, counter: TokenCounter, *, has_tools: bool
) -> tuple[int, MessageView] | None:
    """Store excerpts with the message that the next request answers, if there is cause.

    Returns ``event_no`` and the changed message; None if nothing was added.
    """
    question = _question(snapshot)
    if question is None:
        return None
    if has_tools and not await asyncio.to_thread(names_in, question.text):
        return None
    work = partial(
        excerpts,
        message=question.text,
        seen=_seen(snapshot, question),
        any_words=not has_tools,
        count=counter.count,
        most_tokens=sizes.ruler(SHARE),
    )
    try:
        text = await alook_up(snapshot.conversation_id, work)
    except ToolFailed:
        # The reply does not wait for what nobody asked for.
        return None
    if not text:
        return None
    tokens = await asyncio.to_thread(message_tokens, counter, f"{question.text}\n\n{text}")
    return await aadd_context(snapshot.conversation_id, question.seq, text, tokens=tokens)


def _question(snapshot: ConversationSnapshot) -> StoredMessage | None:
    """The user's message that ends the request, if older messages are left out of it."""
    tail = visible_tail(snapshot)
    if not tail or not max(snapshot.boundary, snapshot.truncated_through):
        return None
    last = tail[-1]
    asked = last.role == "user" and last.turn_open and not last.added_context
    return last if asked else None


def _seen(snapshot: ConversationSnapshot, question: StoredMessage) -> Sequence[str]:
    """The texts that the model sees besides this message and the summary."""
    tail = [one.content for one in visible_tail(snapshot) if one.seq != question.seq]
    return [*(one.text for one in snapshot.pinned), *tail]
