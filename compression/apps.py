"""The reusable compression application."""

from __future__ import annotations

from django.apps import AppConfig


class CompressionConfig(AppConfig):
    """Registers the system checks."""

    name = "compression"
    verbose_name = "Compression"

    def ready(self) -> None:
        """Import for registration only."""
        from compression import checks  # noqa: F401
