"""The person's settings as they apply to new conversations."""

from __future__ import annotations

from chatapp import wiring
from chatapp.conversations import people


async def default_model(user_id: int) -> str:
    """The model for the person's new conversations; empty if the server no longer has it."""
    chosen = await people.adefault_model(user_id)
    if not chosen:
        return ""
    names = await wiring.services().catalogue.names()
    # If the server's list is unknown, the model may still exist.
    return chosen if chosen in names or not names else ""
