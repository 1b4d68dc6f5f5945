"""Print a sign-in link."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand

from chatapp.accounts import signin_links


class Command(BaseCommand):
    """``manage.py signin_link [NAME]``: prints one link for one person."""

    help = "Prints an address that signs one person in, once, within 15 minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the person, and the address at which the chat is reached."""
        parser.add_argument("name", nargs="?", default="", help="who signs in (default: the owner)")
        parser.add_argument(
            "--base-url",
            default=settings.ALLOWED_ORIGINS[0],
            help="scheme, host and port of the link (default: the first of ALLOWED_ORIGINS)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the bare link. Fail with a sentence if there is no such person."""
        name = options["name"]
        person = signin_links.find_person(name)
        if person is None and name:
            raise CommandError(f"There is no active person named {name}.")
        if person is None:
            raise CommandError("There is no owner yet: manage.py ensure_owner creates one.")
        self.stdout.write(signin_links.signin_link(person, options["base_url"]))
