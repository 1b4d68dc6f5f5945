"""Settings of a server that a test starts: the product's own, static files in the tests' folder."""

import os
from pathlib import Path

from chatapp.settings import *  # noqa: F403
from tests import kept_prices

STATIC_ROOT = Path(os.environ["TESTS_STATIC_ROOT"])
kept_prices.keep_in(STATIC_ROOT.with_name("prices.json"))
