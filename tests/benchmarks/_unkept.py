"""Settings of the product with checkpoints left out, to see what they cost."""

from __future__ import annotations

from django.apps import AppConfig

from chatapp.conversations.turns.progress import Checkpoint
from chatapp.turns.checkpoints import Checkpoints
from tests.server_settings import *  # noqa: F403
from tests.server_settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.benchmarks._unkept.Unkept"]


class Unkept(AppConfig):
    """Nothing is stored of a reply before its end."""

    name = "tests.benchmarks"

    def ready(self) -> None:
        """Have every text taken for stored."""
        setattr(Checkpoints, "store", _taken_for_stored)  # noqa: B010


async def _taken_for_stored(_self: Checkpoints, _one: Checkpoint) -> bool:
    return True
