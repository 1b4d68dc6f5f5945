"""The admin's site, with the chat's own sign-in and unambiguous addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

View = TypeVar("View", bound=Callable[..., Any])


@runtime_checkable
class OnFrontPage(Protocol):
    """A model's admin with a part of the front page."""

    def front_page(self, request: HttpRequest) -> dict[str, Any]:
        """What the template of the front page needs for it, by a number of queries that does not
        depend on the rows. Called for people who may see the model."""
        ...


class ReviewSite(AdminSite):
    """Django's admin with the chat's sign-in, which limits attempts."""

    site_header = "Palimpsest"
    site_title = "Palimpsest"
    index_title = "Overview"

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """The front page: what is to be done and seen, as far as permitted, then the lists."""
        context: dict[str, Any] = {}
        for one in self._registry.values():
            if isinstance(one, OnFrontPage) and one.has_view_permission(request):
                context |= one.front_page(request)
        return super().index(request, {**context, **(extra_context or {})})

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
