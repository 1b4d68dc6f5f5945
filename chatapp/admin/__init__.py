"""The admin's pages for staff; importing this package registers them."""

from chatapp.admin import (
    calls,
    connections,
    conversations,
    people,
    profiles,
    sharing,
    summaries,
    tools,
)

__all__ = [
    "calls",
    "connections",
    "conversations",
    "people",
    "profiles",
    "sharing",
    "summaries",
    "tools",
]
