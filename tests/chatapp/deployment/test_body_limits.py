"""The limits of bodies as any ASGI server meets them, without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import reverse

from chatapp import asgi
from chatapp.conversations import people
from chatapp.deployment import body_limits
from chatapp.deployment.body_limits import (
    LONGEST_REFUSAL,
    LONGEST_WAIT,
    REFUSALS_SHARE,
    RefusalPace,
)
from chatapp.models import ImportJob
from chatapp.transfer.openai_messages import MAX_BYTES
from tests.chatapp.stage import PATIENCE

PIECE = b"x" * 65536

pytestmark = [pytest.mark.django_db(transaction=True)]


class Sender:
    """What a server that reads as it is asked to would hand over, without end."""

    def __init__(self) -> None:
        self.taken = 0
        self.status = 0
        self.body = b""

    async def receive(self) -> dict[str, Any]:
        self.taken += len(PIECE)
        return {"type": "http.request", "body": PIECE, "more_body": True}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    @property
    def error(self) -> Any:
        return json.loads(self.body)["error"]


async def posted(
    path: str,
    session: str = "",
    length: str | None = None,
    receive: Callable[[Sender], Awaitable[Any]] = Sender.receive,
    accept: str = "application/json",
) -> Sender:
    """What comes of a POST of more than is said."""
    headers = [
        (b"host", b"127.0.0.1"),
        (b"accept", accept.encode()),
        # Two of them, as some proxies send.
        (b"cookie", b"csrftoken=" + b"x" * 32),
        (b"cookie", f"sessionid={session}".encode()),
        (b"x-csrftoken", b"x" * 32),
        (b"content-type", b"application/x-www-form-urlencoded"),
    ]
    if length is not None:
        headers.append((b"content-length", length.encode()))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sender = Sender()
    await asgi.application(scope, lambda: receive(sender), sender.send)
    return sender


async def session_of(person: User) -> str:
    client = AsyncClient()
    await client.aforce_login(person)
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert await people.aid_of_session(key)
    return str(key)


@pytest.mark.parametrize("path", ["/c/", "/import/", "/accounts/login/", "/nowhere/"])
async def test_n01_who_is_not_known_is_not_listened_to(path: str) -> None:
    """Breaks when: bytes are counted only against what a length says."""
    for length, least in (
        (None, body_limits.ANYBODY_MAX),
        ("7", body_limits.ANYBODY_MAX),
        ("300000", 0),
    ):
        sender = await posted(path, length=length)
        assert sender.status == 413
        assert sender.error["code"] == "request_too_large"
        assert sender.taken <= least + len(PIECE)


async def test_n01_every_route_has_its_limit(alice: User) -> None:
    """Breaks when: the import's limit is everybody's, or none is counted as it comes."""
    key = await session_of(alice)
    most = {
        "/c/": settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        "/import/": MAX_BYTES + body_limits.ENVELOPE,
    }
    for path, limit in most.items():
        sender = await posted(path, key)
        assert sender.status == 413
        assert limit < sender.taken <= limit + len(PIECE)
        # More than that is not even begun.
        assert (await posted(path, key, str(limit + 1))).taken == 0
        assert (await posted(path, key, "9" * 5000)).taken == 0


async def test_who_was_switched_off_is_not_known(alice: User) -> None:
    """Breaks when: a session is looked for, and not whose it is."""
    key = await session_of(alice)
    await User.objects.filter(pk=alice.pk).aupdate(is_active=False)
    sender = await posted("/import/", key, "1000000")
    assert (sender.status, sender.taken) == (413, 0)
    assert "signed out" in sender.error["message"]


async def test_n01_one_file_a_person_is_received_at_a_time(alice: User, bob: User) -> None:
    """N01, I26: two files of 200 MB lie on the disk at most as often as there are people.

    Breaks when: only jobs are looked at, which begin when a file is there, or who has sent a file
    may never send another.
    """
    key, others = await session_of(alice), await session_of(bob)
    half, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(sender: Sender) -> Any:
        if sender.taken > body_limits.ANYBODY_MAX:
            half.set()
            await go_on.wait()
        return await Sender.receive(sender)

    first = asyncio.create_task(posted("/import/", key, receive=slowly))
    await asyncio.wait_for(half.wait(), PATIENCE)
    sender = await posted("/import/", key, "1000000")
    assert (sender.status, sender.error["code"], sender.taken) == (409, "import_running", 0)
    assert (await posted("/import/", key)).taken <= body_limits.ANYBODY_MAX + len(PIECE)
    assert (await posted("/import/", others)).error["code"] == "request_too_large"
    go_on.set()
    assert (await first).error["code"] == "request_too_large"
    assert (await posted("/import/", key)).error["code"] == "request_too_large"


async def test_n01_a_file_is_not_received_while_another_is_imported(alice: User) -> None:
    """Breaks when: 200 MB are taken in before they are refused, or no page leads to the other."""
    job = await ImportJob.objects.acreate(owner=alice)
    sender = await posted("/import/", await session_of(alice), "1000000")
    assert (sender.status, sender.taken) == (409, 0)
    assert sender.error["fields"] == {"job": str(job.code)}
    page = await posted("/import/", await session_of(alice), "1000000", accept="text/html")
    assert reverse("import-job", args=[job.code]).encode() in page.body


def test_n01_refusals_take_a_small_part_of_the_time() -> None:
    """A refusal costs its sender nothing, and us a page; somebody refused now and then waits never.

    Breaks when: refusals are answered as fast as they come, or a lone one has to wait.
    """
    now = 100.0
    pace = RefusalPace(lambda: now)
    assert pace.wait() == 0.0
    pace.took(0.01)
    now += REFUSALS_SHARE * 0.01
    assert [round(pace.wait(), 6) for _ in range(4)] == [0.0, 0.1, 0.2, 0.3]
    pace.took(60.0)
    now += 0.5
    waits = [pace.wait() for _ in range(100)]
    assert waits[0] == 0.0
    assert round(waits[1], 6) == REFUSALS_SHARE * LONGEST_REFUSAL
    assert round(max(waits), 6) == LONGEST_WAIT


async def test_n01_each_refusal_waits_for_its_turn() -> None:
    """Breaks when: a refused request is answered beside the pace, or an allowed one is delayed."""

    class Noting(RefusalPace):
        waits = answers = 0

        def wait(self) -> float:
            self.waits += 1
            return 0.0

        def took(self, seconds: float) -> None:
            self.answers += 1

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    async def asked(length: bytes) -> tuple[int, int]:
        headers = [(b"content-length", length)]
        scope = {"type": "http", "path": "/accounts/login/", "headers": headers}
        await application_with_limits(scope, body_limits._nothing_to_read(), Sender().send)
        return pace.waits, pace.answers

    pace = Noting()
    application_with_limits = body_limits.bounded(application, pace)
    assert await asked(b"10") == (0, 0)
    assert await asked(b"99999999") == (1, 1)
    assert await asked(b"99999999") == (2, 2)
