"""The way of a request through Django without threads of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import asgiref.sync
import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.signals import request_finished
from django.test import AsyncClient

from chatapp.asgi import application, django_application
from chatapp.middleware import SMALL_BODY, call_hooks_inline
from tests.chatapp.viewing import PATIENCE
from tests.inprocess import settle

TOKEN = "t" * 32
FORM = b"application/x-www-form-urlencoded"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A thread for each request that had to have one of its own."""
    made: list[str] = []

    def executor(max_workers: int) -> ThreadPoolExecutor:
        made.append(threading.current_thread().name)
        return ThreadPoolExecutor(max_workers)

    monkeypatch.setattr(asgiref.sync, "ThreadPoolExecutor", executor)
    return made


async def ask(
    client: AsyncClient, method: str, path: str, body: bytes = b"", *, chunked: bool = False
) -> int:
    """The status of an answer by the application that serves."""
    length = (b"content-length", str(len(body)).encode())
    cookie = f"csrftoken={TOKEN}; sessionid={client.cookies['sessionid'].value}"
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [
            (b"host", b"testserver"),
            (b"origin", b"http://testserver"),
            (b"accept", b"application/json"),
            (b"cookie", cookie.encode()),
            (b"content-type", FORM),
            (b"transfer-encoding", b"chunked") if chunked else length,
        ],
    }
    # It has no types.
    asked: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await asked.send_input({"type": "http.request", "body": body})
    start = await asked.receive_output(PATIENCE)
    while (await asked.receive_output(PATIENCE)).get("more_body"):
        pass
    await asked.wait(PATIENCE)
    return int(start["status"])


def as_at_the_start(begun: list[str]) -> None:
    """Django's test client has connected what the program disconnected."""
    call_hooks_inline(django_application)
    begun.clear()


def form(text: str) -> bytes:
    return f"csrfmiddlewaretoken={TOKEN}&client_msg_id={uuid4()}&text={text}".encode()


async def test_an_ordinary_request_has_no_thread_of_its_own(
    chat_client: AsyncClient, code: str, begun: list[str]
) -> None:
    """Starting and ending one keeps the event loop waiting, longer the more there is to do.

    Breaks when: a hook of Django's for a request's beginning, view or end is called in a thread.
    """
    as_at_the_start(begun)
    assert await ask(chat_client, "GET", f"/c/{code}/") == 200
    assert await ask(chat_client, "POST", f"/c/{code}/messages/", form("Hello")) == 202
    assert await ask(chat_client, "GET", f"/c/{code}/turns/1000000/") == 404
    assert not begun
    await settle()


async def test_a_large_form_is_searched_for_its_token_in_a_thread(
    chat_client: AsyncClient, code: str, begun: list[str]
) -> None:
    """N02. Breaks when: a form of megabytes, whole or in chunks, is parsed in the event loop."""
    as_at_the_start(begun)
    large = form("a" * SMALL_BODY)
    assert await ask(chat_client, "POST", f"/c/{code}/draft/", large) == 200
    assert len(begun) == 1
    assert await ask(chat_client, "POST", f"/c/{code}/draft/", large, chunked=True) == 200
    assert len(begun) == 2
    wrong = large.replace(b"t" * 32, b"u" * 32)
    assert await ask(chat_client, "POST", f"/c/{code}/draft/", wrong) == 403
    assert await ask(chat_client, "POST", f"/c/{code}/draft/", wrong[:1000]) == 403


async def test_what_needs_a_thread_has_one_and_ends_in_it(
    chat_client: AsyncClient, alice: User, begun: list[str]
) -> None:
    """Django's own pages ask the database in a thread, which closes its connection at the end.

    Breaks when: a response that was made in a thread is closed in another.
    """
    alice.is_staff = alice.is_superuser = True
    await alice.asave()
    ended: list[threading.Thread] = []
    as_at_the_start(begun)

    def end(**_: object) -> None:
        ended.append(threading.current_thread())

    request_finished.connect(end)
    try:
        assert await ask(chat_client, "GET", "/admin/") == 200
        assert await ask(chat_client, "GET", "/") == 200
    finally:
        request_finished.disconnect(end)
    assert len(begun) == 1
    assert ended[0] is not threading.current_thread()
    assert ended[1] is threading.current_thread()
