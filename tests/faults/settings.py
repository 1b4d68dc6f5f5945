"""Settings of a server that a test breaks: its leases are short, and it may kill itself."""

from tests.faults import failpoints

failpoints.install()

from tests.server_settings import *  # noqa: E402, F403
from tests.server_settings import COMPRESSION as _COMPRESSION  # noqa: E402
from tests.server_settings import INSTALLED_APPS as _INSTALLED_APPS  # noqa: E402

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.faults.apps.Hastened"]
COMPRESSION = {**_COMPRESSION, "LEASE_SECONDS": 2.0, "RENEW_SECONDS": 0.5}
