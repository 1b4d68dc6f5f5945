"""Excerpts of older messages that come along with a user's message.

They are looked up once, when the first request of its turn is made, and stored with the message: a
model without tools cannot look for itself, and no model can know that a name which it no longer
sees was spoken of before.
"""

from __future__ import annotations

import asyncio
import logging
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

logger = logging.getLogger(__name__)

# Seconds that a reply waits for excerpts, which nobody has asked for.
LONGEST = 1.5
# Ruler tokens below which no excerpt says anything.
LEAST_TOKENS = 80
# Those that joining two texts may add.
_JOINT = 4


async def add_excerpts(
    snapshot: ConversationSnapshot,
    sizes: Sizes,
    counter: TokenCounter,
    *,
    has_tools: bool,
    room: float,
) -> tuple[int, MessageView] | None:
    """Store excerpts with the message that the next request answers, if there is cause.

    ``room``: the share of the budget that they may take besides what is in use. A message that is
    accepted without them is accepted with them. Returns ``event_no`` and the changed message; None
    if nothing was added.
    """
    question = _question(snapshot)
    most_tokens = sizes.ruler(min(SHARE, room)) - _JOINT
    if question is None or most_tokens < LEAST_TOKENS:
        return None
    text = await _looked_up(snapshot, question, counter, most_tokens, has_tools)
    if not text:
        return None
    tokens = await asyncio.to_thread(message_tokens, counter, f"{question.text}\n\n{text}")
    return await aadd_context(snapshot.conversation_id, question.seq, text, tokens=tokens)


async def _looked_up(
    snapshot: ConversationSnapshot,
    question: StoredMessage,
    counter: TokenCounter,
    most_tokens: int,
    has_tools: bool,
) -> str:
    """The excerpts; empty if there are none, or if they do not come soon."""
    if has_tools and not await asyncio.to_thread(names_in, question.text):
        return ""
    work = partial(
        excerpts,
        message=question.text,
        seen=_seen(snapshot, question),
        any_words=not has_tools,
        count=counter.count,
        most_tokens=most_tokens,
    )
    try:
        # Other people's searches may be before this one.
        async with asyncio.timeout(LONGEST):
            return await alook_up(snapshot.conversation_id, work, seconds=LONGEST)
    except (ToolFailed, TimeoutError):
        return ""
    except Exception:
        # The reply does not fail for what nobody asked for.
        logger.exception("Excerpts for conversation %s were not found", snapshot.conversation_id)
        return ""


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
