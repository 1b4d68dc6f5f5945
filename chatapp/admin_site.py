"""The admin's site, with the chat's own sign-in and unambiguous addresses."""

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
    """Django's admin with the chat's sign-in, which limits attempts."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Review"

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Wrap a page of the admin, to refuse an address that gives a parameter twice.

        Django's lists use both values, while ``GET`` returns the last, so that a page would not
        show what it claims to. Raises BadRequest.
        """

        def once(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if any(len(values) > 1 for _, values in request.GET.lists()):
                raise BadRequest("a parameter is given twice")
            return view(request, *args, **kwargs)

        # Inside Django's own check of who this is.
        return super().admin_view(cast(View, update_wrapper(once, view)), cacheable)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the chat's sign-in; 403 for people who are signed in but not staff."""
        index = reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(index)
        if request.user.is_authenticated:
            raise PermissionDenied
        following = request.GET.get(REDIRECT_FIELD_NAME, index)
        return redirect_to_login(following)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        """Refuse: no form here needs completion, which would search messages without a record.

        Raises PermissionDenied.
        """
        raise PermissionDenied
