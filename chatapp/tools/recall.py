"""The two tools by which a model looks things up in its own conversation."""

from __future__ import annotations

from functools import partial

from chatapp.context.looked_up import looked_up_texts
from chatapp.context.request import ConversationSnapshot, visible_tail
from chatapp.conversations.messages.originals import alook_up
from compression.ports import TokenCounter
from compression.recall.tools import SHARE, recall_tools
from compression.tools.tool import Tool
from compression.types import Sizes


def recall_tools_of(
    conversation: ConversationSnapshot, counter: TokenCounter, sizes: Sizes
) -> tuple[Tool, Tool]:
    """``search_history`` and ``read_messages`` of one conversation, and of no other.

    They find nothing while nothing lies before its boundary, and a search passes over what the next
    request quotes already; each result has at most the share ``SHARE`` of the budget.
    """
    return recall_tools(
        partial(alook_up, conversation.conversation_id),
        counter,
        most_tokens=sizes.ruler(SHARE),
        quoted=looked_up_texts(visible_tail(conversation)),
    )
