"""Whether this process lives, and whether it can serve."""

from __future__ import annotations

import logging

from django.db import connection
from django.http import HttpRequest, JsonResponse

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
        logger.exception("The database does not answer.")
        return False
    return True


def _select() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


_aselect = across(_select)
