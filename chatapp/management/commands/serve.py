"""Serve the chat in this process."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatapp import wiring
from chatapp.accounts import signin_links
from chatapp.deployment import daphne
from chatapp.version import VERSION

LOOPBACK = {"127.0.0.1", "localhost"}


def _number_of_proxies(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


class Command(BaseCommand):
    """``manage.py serve``: migrates, creates the owner, prints a sign-in link, and serves."""

    help = (
        "Brings the database up to date, creates the owner on the first start, prints one "
        "sign-in link, and serves the chat with Daphne in this process."
    )

    def get_version(self) -> str:
        """The chat's version, where other commands give Django's."""
        return f"Palimpsest {VERSION}"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address to listen on, and whether to prepare anything first."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port to listen on; 0 takes a free one"
        )
        parser.add_argument(
            "--no-prepare",
            action="store_true",
            help="only serve: no migrations, no owner's account, no link (for many processes)",
        )
        parser.add_argument(
            "--behind-proxy",
            type=_number_of_proxies,
            nargs="?",
            const=1,
            default=0,
            metavar="PROXIES",
            help="number of proxies in front of this process (1 if not given). The client's "
            "address is taken from X-Forwarded-For, which each of them must set or append to",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until SIGTERM or SIGINT. Exit 1 with one sentence if the port is taken."""
        host, port = options["host"], options["port"]
        try:
            listener = daphne.listen(host, port)
        except daphne.PortInUse:
            raise CommandError(
                f"Port {port} on {host} is in use: stop the other program or choose another PORT."
            ) from None
        except (OSError, OverflowError) as error:
            raise CommandError(f"Cannot listen on {host} port {port}: {error}.") from None
        with listener:
            here = f"http://{host}:{listener.getsockname()[1]}"
            lines = [f"Serving on {here}"]
            if not options["no_prepare"]:
                lines.append(
                    self.prepare(here if host in LOOPBACK else settings.ALLOWED_ORIGINS[0])
                )
            # Before anybody can be answered.
            wiring.register_process()
            daphne.serve(
                listener,
                ready=lambda: self.announce(lines),
                proxies=options["behind_proxy"],
            )

    def prepare(self, base_url: str) -> str:
        """Migrate and create the owner. Returns the line to print once the server listens."""
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            # By another process: the models of each migration would take 70 MB of this one.
            connection.close()
            manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
            command = [*manage, "migrate", "--noinput", "-v", "0"]
            if subprocess.run(command, check=False).returncode:
                raise CommandError("The database could not be brought up to date.")
        owner, _created = signin_links.ensure_owner()
        if owner is None:
            return "No sign-in link: every superuser is inactive. See manage.py createsuperuser."
        return f"Sign in: {signin_links.signin_link(owner, base_url)}"

    def announce(self, lines: list[str]) -> None:
        """Print at once, even into a pipe."""
        for line in lines:
            self.stdout.write(line)
        self.stdout.flush()
