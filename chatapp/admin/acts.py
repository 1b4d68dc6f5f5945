"""A record of each action on Django's own pages for accounts, groups and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp.conversations.access_log import record_act
from compression.admin import CHOOSE

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class Recorded(ModelAdmin):
    """A model whose changes are recorded permanently.

    Django's own log is deleted with the account of the person who acted. Somebody could set
    another's password, read as that person, delete their own account, and leave no trace.
    """

    actions_on_top, actions_on_bottom = False, True
    empty_value_display = "–"

    def get_action_choices(self, request: HttpRequest, default_choices: Any = CHOOSE) -> Any:
        """What can be done with chosen rows, after words in place of a row of dashes."""
        return super().get_action_choices(request, list(default_choices))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record it in both logs."""
        entry = super().log_addition(request, obj, message)
        self._record(request, obj, entry.get_change_message() or "Added.")
        return entry

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record it in both logs."""
        entry = super().log_change(request, obj, message)
        self._record(request, obj, entry.get_change_message() or "Changed nothing.")
        return entry

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Record it in both logs; ``queryset`` may also be a list of one row."""
        for row in queryset:
            self._record(request, row, "Deleted.")
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, obj: Any, act: str) -> None:
        assert isinstance(request.user, User)
        name = obj.get_username() if isinstance(obj, User) else obj.name
        record_act(actor=request.user, name=name, kind=str(self.opts.verbose_name), act=act)
