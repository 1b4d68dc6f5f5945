"""The admin's own site: one way to sign in, not two, and one reading of an address."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

View = TypeVar("View", bound=Callable[..., Any])


class ReviewSite(AdminSite):
    """Django's admin, signed into where everybody signs in: guessing is bounded there."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Review"

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Every page of the admin goes through here.

        Of a parameter that an address has twice, Django's lists take both values and ``GET``
        answers the last: what a page asks for would not be what it shows. Raises BadRequest.
        """

        def once(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if any(len(values) > 1 for _, values in request.GET.lists()):
                raise BadRequest("a parameter is given twice")
            return view(request, *args, **kwargs)

        # After Django's own question who this is.
        return super().admin_view(cast(View, update_wrapper(once, view)), cacheable)

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
