from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse

from chatapp.asgi import django_application

SCOPE: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_i26_an_answer_that_nobody_waits_for_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client goes away while the answer is being sent, and the application is told.

    Breaks when: what ends an abandoned request refers to its answer, so that page after page that
    is abandoned stays until the garbage collector looks.
    """
    answers: list[weakref.ref[HttpResponse]] = []
    sending, stopped = asyncio.Event(), asyncio.Event()

    async def answer(request: HttpRequest) -> HttpResponse:
        made = HttpResponse("x" * 1_000)
        answers.append(weakref.ref(made))
        return made

    messages = iter([{"type": "http.request", "body": b""}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await sending.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sending.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    monkeypatch.setattr(django_application, "get_response_async", answer)
    await asyncio.wait_for(django_application(SCOPE, receive, send), 10)
    assert stopped.is_set()
    assert answers[0]() is None
