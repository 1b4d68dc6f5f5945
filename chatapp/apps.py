"""The chat application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps

from chatapp.deployment.log_redaction import redact_records


class ChatConfig(AppConfig):
    """Registers the system checks, and keeps tokens out of the log."""

    name = "chatapp"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        """Import the checks, which registers them, and redact the log."""
        from chatapp import checks  # noqa: F401

        redact_records()


class ReviewConfig(admin_apps.AdminConfig):
    """Django's admin with the chat's own site."""

    # So that "chatapp" in the settings means ChatConfig.
    default = False
    default_site = "chatapp.admin_site.ReviewSite"
