"""The person's settings as they apply to new conversations."""

from __future__ import annotations

from chatapp import wiring
from chatapp.conversations import people


async def default_model(user_id: int) -> str:
    """The model of the person's new conversations; empty when the server no longer has it."""
    chosen = await people.adefault_model(user_id)
    if not chosen:
        return ""
    names = await wiring.services().catalogue.names()
    # A server that did not say what it has may have it.
    return chosen if chosen in names or not names else ""
