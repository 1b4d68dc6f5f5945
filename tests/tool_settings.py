"""Settings of a server whose models are offered the tests' own tools."""

from tests.server_settings import *  # noqa: F403
from tests.server_settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.tooling"]
