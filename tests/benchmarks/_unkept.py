"""Settings of the product with checkpoints left out, to see what they cost."""

from __future__ import annotations

from django.apps import AppConfig

from tests.server_settings import *  # noqa: F403
from tests.server_settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.benchmarks._unkept.Unkept"]


class Unkept(AppConfig):
    """Nothing is stored of a reply before its end."""

    name = "tests.benchmarks"

    def ready(self) -> None:
        """Change the constant of this process."""
        from chatapp import keeper

        keeper.CHECKPOINT_INTERVAL = 3600.0
