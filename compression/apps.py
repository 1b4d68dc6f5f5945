"""The reusable compression application."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig


class CompressionConfig(AppConfig):
    """Registers the system checks."""

    name = "compression"
    verbose_name = "Compression"
    # The package may also have the standard library's folder; templates are only in this one.
    path = str(Path(__file__).resolve().parent)

    def ready(self) -> None:
        """Import the checks, which registers them."""
        from compression import checks  # noqa: F401
