"""The admin's own site: one way to sign in, not two."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse


class ReviewSite(AdminSite):
    """Django's admin, signed into where everybody signs in: guessing is bounded there."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Review"

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """To the chat's own sign-in; 403 for who is signed in and not of the staff."""
        index = reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(index)
        if request.user.is_authenticated:
            raise PermissionDenied
        following = request.GET.get(REDIRECT_FIELD_NAME, index)
        return redirect_to_login(following)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        """Closed: no form here completes names, and it would search messages unrecorded.

        Raises PermissionDenied.
        """
        raise PermissionDenied
