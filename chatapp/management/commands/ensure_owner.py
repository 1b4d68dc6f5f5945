"""Create the first account."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand

from chatapp.accounts import signin_links


class Command(BaseCommand):
    """``manage.py ensure_owner``: creates a superuser if there is none."""

    help = "Creates the owner, a superuser without a password, when there is no superuser yet."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print who the owner is; fail if all superusers are inactive."""
        owner, created = signin_links.ensure_owner()
        if owner is None:
            raise CommandError("Every superuser is inactive. See manage.py createsuperuser.")
        state = "was created" if created else "exists already"
        self.stdout.write(f"{owner.get_username()} {state}.")
