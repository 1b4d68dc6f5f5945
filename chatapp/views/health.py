"""Health checks: the process lives, and it can serve."""

from __future__ import annotations

import logging

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from chatapp import wiring
from compression.database import across

logger = logging.getLogger(__name__)


async def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database and, if there is one, the bus answer; else 503 with which does not."""
    answers = {"database": await _database_answers(), "bus": await wiring.bus().answers()}
    ready = all(answers.values())
    return JsonResponse({"ready": ready, **answers}, status=200 if ready else 503)


async def _database_answers() -> bool:
    try:
        await _aselect()
    except Exception:
        # A wrong address or password is no answer either.
        logger.exception("The database does not answer.")
        return False
    return True


def _select() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


_aselect = across(_select)


PROBES = {"/healthz": healthz, "/readyz": readyz}


def _is_probe(request: HttpRequest) -> bool:
    return request.method in {"GET", "HEAD"} and request.path_info in PROBES


@sync_and_async_middleware
def probes(get_response):  # type: ignore[no-untyped-def]
    """Answer who looks whether this process lives, by whatever name or address it came.

    A container's or a balancer's probe sends the address of this machine as Host. What comes after
    this middleware compares it with ALLOWED_HOSTS, and looks for a session that no probe has.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            if _is_probe(request):
                return await PROBES[request.path_info](request)
            response: HttpResponseBase = await get_response(request)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        if _is_probe(request):
            return async_to_sync(PROBES[request.path_info])(request)
        response: HttpResponseBase = get_response(request)
        return response

    return synchronous
