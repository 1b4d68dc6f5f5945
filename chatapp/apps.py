"""The chat application."""

from __future__ import annotations

from django.apps import AppConfig


class ChatConfig(AppConfig):
    """Registers the system checks."""

    name = "chatapp"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        """Import for registration only."""
        from chatapp import checks  # noqa: F401
