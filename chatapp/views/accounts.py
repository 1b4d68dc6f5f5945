"""Signing in and out, and changing the password, with Django's own views.

These views are synchronous, as Django's are: hashing a password takes a tenth of a second and must
not happen on the event loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from chatapp.accounts import limits, signin_links
from chatapp.errors import InvalidInput, LinkExpired, RateLimited
from chatapp.views.answers import failure, wants_json
from compression.exceptions import UserFacingError


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def _wait_sentence(seconds: int) -> str:
    wait = f"{seconds} seconds" if seconds < 120 else f"{-(-seconds // 60)} minutes"
    return f"Too many attempts to sign in. Wait {wait} and try again, or use a sign-in link."


_BUSY = "Too many people are signing in right now. Wait a few seconds and try again."


class LimitedAuthenticationForm(AuthenticationForm):
    """Name and password, with a limit on attempts."""

    retry_after = 0
    """Seconds to wait after too many attempts; 0 if the attempt was checked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.data.get("username"):
            # The name is kept after a refusal, and the next thing to write is the password.
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True

    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        """Count the attempt, then authenticate.

        Raises :class:`ValidationError` for too many attempts and for a wrong name or password.
        """
        name = self.cleaned_data.get("username")
        with limits.place_to_wait() as taken:
            if not taken:
                self.retry_after = limits.BUSY_SECONDS
                raise ValidationError(_BUSY, code="rate_limited")
            if name is not None and self.request is not None:
                self.retry_after = limits.count_attempt(name, _address(self.request))
            if self.retry_after:
                raise ValidationError(_wait_sentence(self.retry_after), code="rate_limited")
            return super().clean()


class SignIn(LoginView):
    """``login``: a form; POST signs in and goes to ``next`` or to ``/``."""

    authentication_form = LimitedAuthenticationForm

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in after a correct password, and redirect."""
        limits.forget_attempts(form.cleaned_data["username"], _address(self.request))
        response = super().form_valid(form)
        if wants_json(self.request):
            return JsonResponse({"next": self.get_success_url()})
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The form again with its error; 429 with Retry-After after too many attempts."""
        if wants_json(self.request):
            return failure(self.request, _signin_error(form))
        response = super().form_invalid(form)
        wait = _seconds_to_wait(form)
        if wait:
            response.status_code = RateLimited.status
            response.headers["Retry-After"] = str(wait)
        return response


def _seconds_to_wait(form: AuthenticationForm) -> int:
    return form.retry_after if isinstance(form, LimitedAuthenticationForm) else 0


def _signin_error(form: AuthenticationForm) -> UserFacingError:
    wait = _seconds_to_wait(form)
    if wait:
        return RateLimited(" ".join(map(str, form.non_field_errors())), retry_after=wait)
    sentences = {
        name if name != "__all__" else "username": " ".join(str(part) for part in parts)
        for name, parts in form.errors.items()
    }
    return InvalidInput(next(iter(sentences.values())), fields=sentences)


class PasswordChange(PasswordChangeView):
    """``password_change``: a person without a password, who came by a link, sets a first one."""

    def get_form_class(self) -> type[Any]:
        """The form that asks for the old password, if there is one."""
        user = self.request.user
        if user.is_authenticated and not user.has_usable_password():
            return SetPasswordForm
        return super().get_form_class()


def _without_referrer(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Keep the page's path, which holds the token, out of the Referer header.

    Many proxies log that header. Not `no-referrer`: with that, a browser also hides the origin of
    a form, which Django's CSRF check needs.
    """

    @functools.wraps(view)
    def kept(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponse:
        response = view(request, *args, **kwargs)
        response.headers["Referrer-Policy"] = "strict-origin"
        return response

    return kept


@_without_referrer
@require_http_methods(["GET", "HEAD", "POST"])
def signin_link(request: HttpRequest, uidb64: str, token: str) -> HttpResponse:
    """GET shows a button and changes nothing, so that a mail scanner cannot use up the link.

    POST signs in, once, and goes to ``/``. A wrong, used or expired link is answered with 410 and
    how to get another one.
    """
    spending = request.method == "POST"
    user = (
        signin_links.use_link(uidb64, token)
        if spending
        else signin_links.user_from_link(uidb64, token)
    )
    if user is None:
        error = LinkExpired()
        if wants_json(request):
            return failure(request, error)
        return render(request, "errors/error.html", {"error": error.as_dict()}, status=error.status)
    if not spending:
        return render(request, "registration/link.html", {"person": user})
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("/")
