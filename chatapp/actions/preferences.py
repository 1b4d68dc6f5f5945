"""What a person's settings mean for what they begin."""

from __future__ import annotations

from chatapp import wiring
from chatapp.conversations import people


async def default_model(user_id: int) -> str:
    """What the person's new conversations begin with; empty when the server has it no more."""
    chosen = await people.adefault_model(user_id)
    if not chosen:
        return ""
    names = await wiring.services().catalogue.names()
    # A server that did not say what it has may have it.
    return chosen if chosen in names or not names else ""
