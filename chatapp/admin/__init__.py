"""What the staff reviews and sets; importing registers it."""

from chatapp.admin import conversations, people, profiles, summaries

__all__ = ["conversations", "people", "profiles", "summaries"]
