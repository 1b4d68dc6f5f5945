"""Limits on the bytes of a request's body, checked before they are read, for any ASGI server.

A length given in the headers is used only to refuse. Otherwise bytes are counted as they arrive,
and nothing more is read once they are too many. Django answers the refusal
(:func:`chatapp.views.failures.refusals`), in the requested form and with the usual headers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, parse_cookie
from django.urls import reverse

from chatapp.conversations.imports import jobs
from chatapp.conversations.people import aid_of_session
from chatapp.errors import ImportRunning, RequestTooLarge, StorageUnavailable
from chatapp.transfer.openai_messages import MAX_BYTES
from compression.database import AWAY
from compression.exceptions import UserFacingError

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Bytes that anybody may send, which is enough to sign in. Parsing the 8 MB that others may send
#: takes the interpreter up to a second.
ANYBODY_MAX = 256 * 1024
#: Bytes that a browser adds around an imported file.
ENVELOPE = 1024 * 1024
#: Refusals take at most one part in so many of the time. They cost their sender next to nothing.
REFUSALS_SHARE = 10
#: Seconds that the answer to one refusal is taken to last at most, and seconds that one waits.
LONGEST_REFUSAL = 0.05
LONGEST_WAIT = 10.0
_REFUSAL = "palimpsest.refusal"
#: The people who are uploading a file to import: one each, or one person could fill the disk.
_importing: set[int] = set()


class MeasuredRequest(ASGIRequest):
    """Django's request, with the body's length even if no header gives it.

    Without it, Django takes a chunked form for an empty one, and finds no fields or files in it.
    """

    def __init__(self, scope: Scope, body_file: IO[bytes]) -> None:
        super().__init__(scope, body_file)
        if "CONTENT_LENGTH" not in self.META:
            body_file.seek(0, os.SEEK_END)
            if length := body_file.tell():
                self.META["CONTENT_LENGTH"] = str(length)
            body_file.seek(0)


class RefusalPace:
    """The pace at which refusals are answered; one after a while without any is answered at once.

    ``clock`` gives seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lasts = 0.0
        self._next = 0.0

    def wait(self) -> float:
        """Seconds until the next refusal may be answered, which is then taken to be answered."""
        now = self._clock()
        begins = min(max(now, self._next), now + LONGEST_WAIT)
        self._next = begins + REFUSALS_SHARE * self._lasts
        return begins - now

    def took(self, seconds: float) -> None:
        """Note how long the answer to one took."""
        self._lasts = min(seconds, LONGEST_REFUSAL)


def bounded(application: Application, pace: RefusalPace | None = None) -> Application:
    """The application with the limits of this module; ``pace``: a new one, unless it is given."""
    pace = pace or RefusalPace()

    async def refuse(scope: Scope, refused: UserFacingError, send: Send) -> None:
        await asyncio.sleep(pace.wait())
        begun = time.monotonic()
        await application({**scope, _REFUSAL: refused}, _nothing_to_read(), send)
        pace.took(time.monotonic() - begun)

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        request_limits = _RequestLimits(scope)
        refused: UserFacingError | None = None
        received = 0

        async def counted() -> Message:
            nonlocal received, refused
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                refused = await request_limits.refusal(received)
            # An application then drops what it has read, and does not answer.
            return {"type": "http.disconnect"} if refused else message

        try:
            refused = await request_limits.refusal(_said_length(scope))
            if refused is None:
                await application(scope, counted, send)
            if refused is not None:
                await refuse(scope, refused, send)
        finally:
            request_limits.leave()

    return checked


def refusal_of(request: HttpRequest) -> UserFacingError | None:
    """The reason why this request's body was refused; None if it was not."""
    refusal: UserFacingError | None = getattr(request, "scope", {}).get(_REFUSAL)
    return refusal


class _RequestLimits:
    """The limits of one request. Looks up who sends it only if necessary."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._is_import = scope["path"] == reverse("import")
        self._person: int | None = None

    async def refusal(self, size: int) -> UserFacingError | None:
        """The refusal of a request with ``size`` bytes; None if it is allowed."""
        if size <= ANYBODY_MAX:
            return None
        if self._is_import and size > MAX_BYTES + ENVELOPE:
            return RequestTooLarge(
                f"The file is larger than {MAX_BYTES // 1024**2} MB, the limit. Nothing was "
                "imported."
            )
        if not self._is_import and size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return RequestTooLarge()
        if self._person is not None:
            return None
        try:
            return await self._enter()
        except AWAY:
            logger.exception("The sender of this request could not be identified.")
            return StorageUnavailable()

    async def _enter(self) -> UserFacingError | None:
        """The reason why this sender may not send so much; None if they may."""
        headers = self._scope["headers"]
        sent = b"; ".join(value for name, value in headers if name.lower() == b"cookie")
        key = parse_cookie(sent.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
        person = None if key is None else await aid_of_session(key)
        if person is None:
            return RequestTooLarge(
                "You are signed out, and only people who are signed in may send that much. Sign in "
                "and try again. Nothing was changed."
            )
        if self._is_import:
            other = await jobs.arunning(person)
            if other is not None or person in _importing:
                return ImportRunning(fields={"job": other} if other else None)
            _importing.add(person)
        self._person = person
        return None

    def leave(self) -> None:
        """Note that the request has been answered."""
        if self._is_import and self._person is not None:
            _importing.discard(self._person)


def _said_length(scope: Scope) -> int:
    """The length given in the headers; 0 if there is no usable one."""
    said = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return max((int(value[:20]) for value in said if value.isdigit()), default=0)


def _nothing_to_read() -> Receive:
    """An empty body in place of the one that was sent."""
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        # Django waits here for the end of the connection until it has answered.
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    return receive
