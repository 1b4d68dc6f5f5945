"""Health checks: whether the process lives, and whether it can serve."""

from __future__ import annotations

import logging

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from chatapp import wiring
from compression.database import in_database_thread

logger = logging.getLogger(__name__)


async def healthz(request: HttpRequest) -> JsonResponse:
    """200 whenever the process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """200 if the database and the bus (if any) answer; else 503, naming the one that does not."""
    answers = {"database": await _database_answers(), "bus": await wiring.bus().answers()}
    ready = all(answers.values())
    return JsonResponse({"ready": ready, **answers}, status=200 if ready else 503)


async def _database_answers() -> bool:
    try:
        await _aselect()
    except Exception:
        # A wrong address or password counts as no answer too.
        logger.exception("The database does not answer.")
        return False
    return True


def _select() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


_aselect = in_database_thread(_select)


PROBES = {"/healthz": healthz, "/readyz": readyz}


def _is_probe(request: HttpRequest) -> bool:
    return request.method in {"GET", "HEAD"} and request.path_info in PROBES


@sync_and_async_middleware
def probes(get_response):  # type: ignore[no-untyped-def]
    """Answer health checks, whatever Host they are addressed to.

    A container's or load balancer's probe sends this machine's address as Host. Later middleware
    would compare it with ALLOWED_HOSTS, and look for a session, which a probe does not have.
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
