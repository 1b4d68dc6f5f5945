"""The example conversation of the demo model, which is about to be compressed."""

from __future__ import annotations

import tomllib
import uuid
from functools import cache
from pathlib import Path
from typing import Any

from chatapp import wiring
from chatapp.actions.importing import Storing
from chatapp.context.tokens import message_tokens
from chatapp.conversations.drafts import asave_draft
from chatapp.errors import NotFound
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression import conf
from compression.ports import TokenCounter


async def begin_example(user_id: int) -> str:
    """Store a new copy of the example, its next message as the draft. Returns its code.

    It has as many turns as reach the threshold, so that any next message has it compressed. Raises
    NotFound unless the demo model answers.
    """
    services = wiring.services()
    if not services.demo:
        raise NotFound
    # Only the demo model itself knows how large its window is.
    await services.catalogue.ask()
    profile = services.catalogue.known_profile(services.catalogue.known_name())
    enough = profile.sizes.ruler(conf.settings().threshold)
    source = ForeignConversation(
        messages=_reaching(services.counter, enough),
        title=_text()["title"],
        # An id of its own, or the second example would be taken for an import of the first.
        source="example",
        source_id=uuid.uuid4().hex,
    )
    stored = await Storing(owner_id=user_id, counter=services.counter).store(source)
    code = stored.conversation.code
    await asave_draft(user_id, code, _text()["draft"])
    return code


@cache
def _text() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "example.toml").read_text("utf-8"))


def _reaching(counter: TokenCounter, enough: int) -> list[ForeignMessage]:
    """The messages of the first turns that together have ``enough`` ruler tokens."""
    messages: list[ForeignMessage] = []
    tokens = 0
    for turn in _text()["turns"]:
        messages.append(ForeignMessage(role="user", text=turn["question"]))
        messages.append(ForeignMessage(role="assistant", text=turn["answer"]))
        tokens += sum(message_tokens(counter, one.text) for one in messages[-2:])
        if tokens >= enough:
            break
    return messages
