"""The chat application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class ChatConfig(AppConfig):
    """Registers the system checks."""

    name = "chatapp"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        """Import for registration only."""
        from chatapp import checks  # noqa: F401


class ReviewConfig(admin_apps.AdminConfig):
    """Django's admin with the chat's own site."""

    # "chatapp" alone means ChatConfig.
    default = False
    default_site = "chatapp.admin_site.ReviewSite"
