"""What is answered when no view was reached."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form's token is missing or old, or the request comes from another site."""
    return HttpResponse(status=403)
