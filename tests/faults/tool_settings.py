"""Settings of a server that a test breaks, and whose models are offered the tests' own tools."""

from tests.faults.settings import *  # noqa: F403
from tests.faults.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.tooling"]
