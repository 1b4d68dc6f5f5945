"""The texts of a shared conversation as HTML, from the same cache as everybody's pages."""

from __future__ import annotations

from collections.abc import Iterable

from chatapp.live.share_views import SharedMessage
from chatapp.rendering import kept
from chatapp.rendering.own_words import has_markup


def body_of(message: SharedMessage) -> kept.Body:
    """The text of a message in the way in which it is shown."""
    is_markdown = message.role == "assistant" or (
        message.role == "user" and has_markup(message.text)
    )
    return kept.Body(kept.markdown if is_markdown else kept.verbatim, message.text)


def bodies_of(messages: Iterable[SharedMessage]) -> list[kept.Body]:
    """The texts of messages that are worth rendering ahead."""
    found = (body_of(one) for one in messages)
    return [body for body in found if len(body.text) >= kept.SHORT]
