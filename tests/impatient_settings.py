"""Settings of a server that waits for half a second where the product waits for twenty."""

from chatapp.deployment import entrance
from tests.server_settings import *  # noqa: F403

entrance.PATIENCE = entrance.Patience(headers=0.5, idle=0.5, window=0.5, rate=1000, linger=0.5)
