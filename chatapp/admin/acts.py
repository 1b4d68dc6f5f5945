"""Django's own pages, on which accounts, groups and figures are changed: a record of each act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp.conversations.access_log import record_act

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class Recorded(ModelAdmin):
    """A model whose changes are recorded for good.

    Django's own log goes with the account of who did it: whoever set another person's password,
    and could so read as that person, would leave no trace once their own account is deleted.
    """

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """In both."""
        entry = super().log_addition(request, obj, message)
        self._record(request, obj, entry.get_change_message() or "Added.")
        return entry

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """In both."""
        entry = super().log_change(request, obj, message)
        self._record(request, obj, entry.get_change_message() or "Changed nothing.")
        return entry

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """In both; a list of one row, or the rows of several."""
        for row in queryset:
            self._record(request, row, "Deleted.")
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, obj: Any, act: str) -> None:
        assert isinstance(request.user, User)
        name = obj.get_username() if isinstance(obj, User) else obj.name
        record_act(actor=request.user, name=name, kind=str(self.opts.verbose_name), act=act)
