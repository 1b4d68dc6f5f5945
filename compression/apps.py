"""The reusable compression application."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig


class CompressionConfig(AppConfig):
    """Registers the system checks."""

    name = "compression"
    verbose_name = "Compression"
    # The package may have a second folder, the standard library's: templates are looked for here.
    path = str(Path(__file__).resolve().parent)

    def ready(self) -> None:
        """Import for registration only."""
        from compression import checks  # noqa: F401
