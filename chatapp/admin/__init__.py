"""The admin's pages for staff; importing this package registers them."""

from chatapp.admin import conversations, people, profiles, summaries, tools

__all__ = ["conversations", "people", "profiles", "summaries", "tools"]
