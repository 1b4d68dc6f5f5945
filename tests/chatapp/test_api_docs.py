"""The page about the JSON API: all its examples are run, in its order, and nothing is left out.

What the page says about values in angle brackets, :class:`Shapes` does.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import resolve

from chatapp import wiring
from chatapp.accounts.signin_links import signin_link
from chatapp.asgi import application
from chatapp.conversations.tools import approvals
from chatapp.conversations.turns import sending
from chatapp.live import events
from chatapp.models import Conversation, Message
from chatapp.turns.announcer import common
from compression.database import in_database_thread
from compression.tools.approval import exact, fingerprint
from tests.chatapp.talking import begin, end
from tests.chatapp.viewing import PATIENCE
from tests.chatapp.views.test_routes import ADMIN, ROUTES
from tests.fake_scripts import (
    Script,
    Text,
    Wait,
    default_answer,
    is_summary_request,
    saying,
    text_of,
)
from tests.fake_upstream import FakeUpstream
from tests.inprocess import settle
from tests.servers import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

Json = dict[str, Any]

PAGE = (ROOT / "docs" / "api.md").read_text("utf-8")
ORIGIN = "http://testserver"
# The page asks the model for it, and its reply goes on until it is stopped.
STORY, BEGINNING = "Tell me a long story.", "Once upon a time "
_BLOCK = re.compile(r"^```(http|json \w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEADER = re.compile(r"([A-Z][\w-]+): (.*)")
_PLACE = re.compile(r"<([\w ]+)>")
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "time": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
}


@dataclass(frozen=True, kw_only=True)
class Half:
    """A request or an answer: its first line, its headers and its body."""

    first: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @classmethod
    def read(cls, text: str) -> Half:
        first, *rest = text.strip().splitlines()
        headers = {}
        while rest and (found := _HEADER.fullmatch(rest[0])):
            headers[found[1]] = found[2]
            rest.pop(0)
        return cls(first=first, headers=headers, body="\n".join(rest).strip())


def _blocks(language: str) -> Iterator[tuple[str, str]]:
    for info, text in _BLOCK.findall(PAGE):
        kind, _, name = info.partition(" ")
        if kind == language:
            yield name, text


def _examples() -> list[tuple[Half, Half]]:
    """Requests and their answers; 101 answers the websocket's handshake."""
    halves = [
        re.split(r"\n\n(?=\d{3}$)", text, maxsplit=1, flags=re.MULTILINE)
        for _, text in _blocks("http")
    ]
    return [(Half.read(request), Half.read(answer)) for request, answer in halves]


def _events() -> list[Json]:
    return [json.loads(text) for name, text in _blocks("json") if name == "event"]


class Shapes:
    """Compares JSON with the page's, and keeps what the page gives a name to, as ``<code>``."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.objects = {n: json.loads(text) for n, text in _blocks("json") if n != "event"}
        self.seen: set[str] = set()
        addresses = " ".join(request.first for request, _ in _examples())
        self.named = set(_PLACE.findall(addresses))

    def filled(self, text: str) -> str:
        """A request of the page with its places filled in."""
        return _PLACE.sub(
            lambda place: str(uuid4()) if place[1] == "uuid" else self.names[place[1]], text
        )

    def difference(self, shown: Any, came: Any, at: str = "") -> str:
        """Where ``came`` is not what the page shows; empty when it is."""
        place = _PLACE.fullmatch(shown) if isinstance(shown, str) else None
        if place:
            kinds = place[1].split(" or ")
            found = [self._kind_differs(kind, came, at) for kind in kinds]
            return "" if "" in found else found[0]
        if isinstance(shown, dict) and isinstance(came, dict):
            if shown.keys() != came.keys():
                return f"{at}: the keys {sorted(shown.keys() ^ came.keys())}"
            parts = [(shown[key], came[key], f"{at}.{key}") for key in shown]
        elif isinstance(shown, list) and isinstance(came, list):
            if len(shown) == 1:
                shown = shown * len(came)
            if len(shown) != len(came):
                return f"{at}: {len(came)} items"
            parts = [
                (one, other, f"{at}[{n}]")
                for n, (one, other) in enumerate(zip(shown, came, strict=True))
            ]
        else:
            same = type(shown) is type(came) and shown == came
            return "" if same else f"{at}: {shown!r} is {came!r}"
        return next(filter(None, (self.difference(*part) for part in parts)), "")

    def _kind_differs(self, kind: str, came: Any, at: str) -> str:
        if kind in self.objects:
            found = self.difference(self.objects[kind], came, f"{at}<{kind}>")
            self.seen |= set() if found else {kind}
            return found
        if kind in self.named:
            self.names[kind] = str(came)
            return ""
        if type(came) not in _KINDS[kind]:
            return f"{at}: {came!r} is no {kind}"
        if kind == "time" and datetime.fromisoformat(came).tzinfo is None:
            return f"{at}: {came!r} has no time zone"
        return ""


def _talkative(request: Json) -> Script:
    """What the model answers: enough for a conversation of six turns to be worth a summary."""
    if is_summary_request(request):
        return default_answer(request)
    if text_of(request["messages"][-1]).endswith(STORY):
        return Script(steps=(Text(BEGINNING), Wait(asyncio.Event())))
    return saying("The harbour of Malmö opens at nine and closes at five. " * 60)


class Client:
    """Asks as the page tells a program to: with its cookies, and three headers each time."""

    def __init__(self, shapes: Shapes) -> None:
        self.http = AsyncClient(enforce_csrf_checks=True)
        self.shapes = shapes

    async def run(self, request: Half, answer: Half) -> None:
        """Fails when the server answers anything else than the page says."""
        came = await self._ask(request)
        assert came.status_code == int(answer.first), (request, came)
        for name, value in answer.headers.items():
            assert came[name] == value, request
        if answer.body:
            body = b"".join([piece async for piece in came]) if came.streaming else came.content
            difference = self.shapes.difference(json.loads(answer.body), json.loads(body))
            assert not difference, (request, difference)

    async def _ask(self, request: Half) -> Any:
        cookie, filled = self.http.cookies.get("csrftoken"), self.shapes.filled
        self.shapes.names["csrftoken"] = cookie.value if cookie else ""
        usual = {"Accept": "application/json", "Origin": "<origin>", "X-CSRFToken": "<csrftoken>"}
        headers = {name: filled(value) for name, value in (usual | request.headers).items()}
        method, path = filled(request.first).split()
        is_form = request.body[:1] not in {"{", "["}
        kind = "application/x-www-form-urlencoded" if is_form else "application/json"
        body = filled(request.body)
        return await self.http.generic(method, path, body, content_type=kind, headers=headers)

    async def follow(self) -> Socket:
        """The websocket, opened as the page says."""
        (handshake,) = (request for request, answer in _examples() if answer.first == "101")
        headers = handshake.headers | {
            "Cookie": f"sessionid={self.http.cookies['sessionid'].value}"
        }
        socket = WebsocketCommunicator(
            application,
            self.shapes.filled(handshake.first).split()[1],
            headers=[
                (name.lower().encode(), self.shapes.filled(value).encode())
                for name, value in headers.items()
            ],
        )
        accepted, _ = await socket.connect(PATIENCE)
        assert accepted
        return Socket(socket)


class Socket:
    """Keeps all that the websocket told."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket
        self.told: list[Json] = []

    async def until(self, type_: str) -> None:
        """Up to the next event of a type."""
        while (await self._next())["type"] != type_:
            pass

    async def until_the_story_begins(self) -> None:
        """In a ``delta``, or in a ``state`` if the server looked at its database just then."""
        text = ""
        while not text.startswith(BEGINNING):
            event = await self._next()
            told = event["turn"] if event["type"] == "state" else event
            text = (told or {}).get("text", "")

    async def _next(self) -> Json:
        self.told.append(await self.socket.receive_json_from(PATIENCE))
        return self.told[-1]

    async def end(self, code: str) -> None:
        """The rest; what a frame is answered with; and two events that have no cause yet."""
        await self.socket.send_to(text_data="{}")
        await self.until("error")
        row = await Conversation.objects.aget(code=code)
        call: Json = {"turn": 1, "seq": 2, "call_id": "call_1", "name": "search"}
        about, later = (common(row.pk, row.event_no + number) for number in (1, 2))
        mark = events.Error(error={}, **about)
        # A look at the database between them finds their numbers too high, and drops the second.
        while self.told[-2]["type"] != "tool-finished":
            await wiring.bus().publish(
                events.Masked(batch=1, count=1, tokens_freed=900, seqs=[3], **about)
            )
            await wiring.bus().publish(events.ToolStarted(arguments={}, **call, **about))
            await wiring.bus().publish(
                events.ToolFinished(result="Found.", seconds=0.2, **call, **later)
            )
            await wiring.bus().publish(mark)
            await self.until("error")
        self.told.pop()
        await self.socket.disconnect(timeout=PATIENCE)


def _route(request: Half) -> str:
    """The route that the request's address leads to."""
    return str(resolve(_PLACE.sub("1", request.first.split()[1].partition("?")[0])).route)


def test_every_route_and_every_event_is_on_the_page() -> None:
    """Breaks when: a route or an event is added or renamed and ``docs/api.md`` is left as it is."""
    requests = [request for request, answer in _examples() if answer.first != "101"]
    assert {_route(request) for request in requests} == set(ROUTES) - set(ADMIN)
    there_are = {event.type for event in events.Event.__subclasses__()}
    assert {event["type"] for event in _events()} == there_are


_link = sync_to_async(signin_link)


def _call_that_waits(alice: User, code: str) -> tuple[sending.Accepted, dict[str, str]]:
    """A turn that waits for a person to allow a call, and what the page names of the question."""
    accepted = begin(alice, code, "Write it down.")
    call_id, given = "a1b2c3d4e", {"text": "Buy milk"}
    function = {"name": "notes__add", "arguments": exact(given)}
    call = {"id": call_id, "type": "function", "function": function}
    Message.objects.filter(pk=accepted.reply_id).update(tool_calls=[call])
    approvals.ask(
        approvals.Question(
            conversation_id=accepted.conversation_id,
            turn=accepted.turn,
            call_id=call_id,
            tool="notes__add",
            definition_sha256="d" * 64,
            arguments=exact(given),
            arguments_sha256=fingerprint(given),
        )
    )
    return accepted, {"call_id": call_id, "fingerprint": fingerprint(given)}


def _answered(accepted: sending.Accepted) -> None:
    """The end of that turn, as one of words alone: nobody runs the call."""
    Message.objects.filter(pk=accepted.reply_id).update(tool_calls=[])
    end(accepted)


_acall_that_waits = in_database_thread(_call_that_waits)
_aanswered = in_database_thread(_answered)


async def _run_the_examples(client: Client, alice: User) -> Socket:
    """Waits for each reply before it goes on, but for the one that goes on until it is stopped."""
    names, socket, telling = client.shapes.names, None, False
    for request, answer in _examples():
        if answer.first == "101":
            continue
        if "/link/" in request.first:
            await alice.arefresh_from_db()
            *_, names["uid"], names["token"], _ = (await _link(alice, "")).split("/")
        if socket is None and "/messages/" in request.first:
            socket = await client.follow()
        waiting = None
        if "/connections/" in request.first:
            # Not for everybody.
            await User.objects.filter(pk=alice.pk).aupdate(is_staff=True, is_superuser=True)
        if request.first.endswith("/decide/"):
            waiting, named = await _acall_that_waits(alice, names["code"])
            names.update(named)
        await client.run(request, answer)
        if waiting is not None:
            await _aanswered(waiting)
            # What another process stores, viewers are told to look for.
            await wiring.bus().nudge(waiting.conversation_id)
        if socket is not None and STORY in request.body:
            telling = True
            await socket.until_the_story_begins()
        telling = telling and not request.first.endswith("/stop/")
        if not telling:
            await settle()
    assert socket is not None
    return socket


async def test_the_page_is_true(alice: User, upstream: FakeUpstream) -> None:
    """Each example in the page's order, against the product; and what the websocket told of them.

    Breaks when: a field of an answer or an event is added, renamed or given another type, or a
    status is another one.
    """
    upstream.handler = _talkative
    shapes = Shapes({"origin": ORIGIN, "password": "the+password+of+alice"})
    shapes.names["server"] = upstream.base_url
    socket = await _run_the_examples(Client(shapes), alice)
    await socket.end(shapes.names["code"])
    for shown in _events():
        came = [event for event in socket.told if event["type"] == shown["type"]]
        differences = [shapes.difference(shown, event) for event in came]
        assert "" in differences, (shown["type"], differences)
    # None of the objects was only ever an empty list's.
    assert shapes.seen == set(shapes.objects)
