"""Every address that there is, for everybody who might ask for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core import serializers
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver

from chatapp import models
from chatapp.models import Conversation
from compression.store import read_state
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN: dict[str, str] = {}
FORMATS = {"plain": PLAIN, "json": JSON, "htmx": HTMX}

# Every address below a conversation, its method, and a body that its owner could send.
OWNED: dict[str, tuple[str, dict[str, Any]]] = {
    "c/<str:code>/": ("GET", {}),
    "c/<str:code>/messages/": ("POST", {"text": "Hi", "client_msg_id": str(uuid4())}),
    "c/<str:code>/messages/<int:seq>/": ("GET", {}),
    "c/<str:code>/messages/<int:seq>/replaced/": ("GET", {}),
    "c/<str:code>/messages/<int:seq>/pin/": ("POST", {}),
    "c/<str:code>/messages/<int:seq>/unpin/": ("POST", {}),
    "c/<str:code>/masks/undo/": ("POST", {"batch": 1}),
    "c/<str:code>/branch/": ("POST", {"seq": 1}),
    "c/<str:code>/continue-in-new/": ("POST", {}),
    "c/<str:code>/turns/<int:turn>/": ("GET", {}),
    "c/<str:code>/stop/": ("POST", {}),
    "c/<str:code>/regenerate/": ("POST", {}),
    "c/<str:code>/continue/": ("POST", {}),
    "c/<str:code>/draft/": ("POST", {"text": "a draft"}),
    "c/<str:code>/queue/": ("POST", {"action": "remove"}),
    "c/<str:code>/compact/": ("POST", {}),
    "c/<str:code>/compact/cancel/": ("POST", {}),
    "c/<str:code>/clear/": ("POST", {}),
    "c/<str:code>/preview/": ("GET", {}),
    "c/<str:code>/preview/make/": ("POST", {}),
    "c/<str:code>/preview/apply/": ("POST", {"preview": 1}),
    "c/<str:code>/preview/discard/": ("POST", {"preview": 1}),
    "c/<str:code>/summary/lines/": ("GET", {}),
    "c/<str:code>/summary/lines/change/": ("POST", {"act": "strike e1", "version": 0}),
    "c/<str:code>/summary/keep/": ("POST", {"line": "e1", "version": 0}),
    "c/<str:code>/summary/edit/": ("POST", {"text": "## Context\n- x [1]", "version": 0}),
    "c/<str:code>/summary/restore/": ("POST", {"version": 0}),
    "c/<str:code>/summary/undo/": ("POST", {}),
    "c/<str:code>/summary/redo/": ("POST", {}),
    "c/<str:code>/calls/<str:call_id>/decide/": ("POST", {"decision": "once"}),
    "c/<str:code>/tools/": ("GET", {}),
    "c/<str:code>/tools/change/": ("POST", {"ask_again": "docs__search"}),
    "c/<str:code>/context/": ("GET", {}),
    "c/<str:code>/summaries/": ("GET", {}),
    "c/<str:code>/outline/": ("GET", {"around": 1}),
    "c/<str:code>/find/": ("GET", {"q": "hi"}),
    "c/<str:code>/settings/": ("POST", {"title": "Another"}),
    "c/<str:code>/archive/": ("POST", {}),
    "c/<str:code>/unarchive/": ("POST", {}),
    "c/<str:code>/pin/": ("POST", {}),
    "c/<str:code>/unpin/": ("POST", {}),
    "c/<str:code>/seen/": ("POST", {"event_no": 1}),
    "c/<str:code>/activity/": ("GET", {}),
    "c/<str:code>/export/": ("GET", {}),
    "c/<str:code>/shares/": ("GET", {}),
    "c/<str:code>/shares/make/": ("POST", {"days": 1}),
    "c/<str:code>/shares/<int:share>/revoke/": ("POST", {}),
    "c/<str:code>/delete/": ("POST", {}),
    "c/<str:code>/undelete/": ("POST", {}),
    "c/<str:code>/messages/<int:seq>/edit/": ("POST", {"text": "Another"}),
}
INVALID = {"text": "", "seq": "x", "version": "x", "before": "x", "action": "x", "title": "\x00"}
# A person's own pages, which name no object of anybody, and how they may be asked for.
PERSONAL = {
    "": {"GET"},
    "c/": {"POST"},
    "example/": {"POST"},
    "models/": {"GET"},
    "search/": {"GET"},
    "log/": {"GET"},
    "log/export/": {"GET"},
    "import/": {"GET", "POST"},
    "projects/": {"GET", "POST"},
    "settings/": {"GET", "POST"},
    "shares/": {"GET"},
}
# Those of an import, which is no conversation; tests/chatapp/actions/test_import_jobs.py asks them.
JOBS = {
    "import/<str:code>/": {"GET"},
    "import/<str:code>/cancel/": {"POST"},
    "import/<str:code>/undo/": {"POST"},
    "import/<str:code>/bring-back/": {"POST"},
}
# A call of the log; tests/chatapp/views/test_log.py asks it as owner, stranger and nobody.
CALLS = {"log/<str:call>/": {"GET"}}
# Those of a project; tests/chatapp/views/test_projects.py asks them.
PROJECTS = {
    "projects/<str:slug>/": {"GET"},
    "projects/<str:slug>/settings/": {"POST"},
    "projects/<str:slug>/archive/": {"POST"},
    "projects/<str:slug>/unarchive/": {"POST"},
    "projects/<str:slug>/delete/": {"POST"},
    "projects/<str:slug>/lines/change/": {"POST"},
    "projects/<str:slug>/lines/undo/": {"POST"},
    "projects/<str:slug>/lines/redo/": {"POST"},
    "projects/<str:slug>/suggestions/": {"POST"},
}
# For staff with the permission; tests/chatapp/views/test_connections.py asks them.
CONNECTIONS = {
    "connections/": {"GET", "POST"},
    "connections/<int:number>/change/": {"POST"},
    "connections/<int:number>/look/": {"POST"},
    "connections/<int:number>/key/": {"POST"},
    "connections/<int:number>/delete/": {"POST"},
}
COMMANDS = [(route, fields) for route, (method, fields) in OWNED.items() if method == "POST"] + [
    (route, {})
    for routes in (PERSONAL, CONNECTIONS, JOBS, PROJECTS)
    for route, methods in routes.items()
    if "POST" in methods
]
# A backend that lets people in whose account is closed, as another way to sign in might.
LAX = "django.contrib.auth.backends.AllowAllUsersModelBackend"
USUAL = "django.contrib.auth.backends.ModelBackend"
# For everybody; accounts/ has tests of its own.
PUBLIC = {
    "healthz",
    "manifest.webmanifest",
    "readyz",
    "accounts/login/",
    "accounts/logout/",
    "accounts/password_change/",
    "accounts/password_change/done/",
    "accounts/link/<str:uidb64>/<str:token>/",
    # Who has the link may read; tests/chatapp/views/test_shared_links.py tries all else with it.
    "s/<str:token>/",
}
# What staff without any permission may open: nothing in it is anybody's.
EMPTY_ADMIN = {
    "admin/",
    "admin/login/",
    "admin/logout/",
    "admin/password_change/",
    "admin/password_change/done/",
    "admin/jsi18n/",
}


def _walk(patterns: list[Any], prefix: str = "") -> Iterator[str]:
    for one in patterns:
        route = prefix + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _walk(one.url_patterns, route)
        else:
            assert isinstance(one, URLPattern)
            yield route


ROUTES = list(_walk(get_resolver().url_patterns))
ADMIN = [route for route in ROUTES if route.startswith("admin/")]


def address(route: str, code: str, turn: int = 1, share: int = 1) -> str:
    """The route filled in; admin routes get the first row's id."""
    filled = route.replace("<str:code>", code).replace("<int:seq>", "1")
    filled = filled.replace("<int:share>", str(share))
    filled = filled.replace("<int:turn>", str(turn)).replace(
        "^(?P<app_label>auth|chatapp)/$", "auth/"
    )
    filled = filled.replace("(?P<url>.*)$", "nowhere")
    return "/" + re.sub(r"<[^>]+>", "1", filled)


@sync_to_async
def stored() -> str:
    """All that is in the database but sessions."""
    rows: list[Any] = [*User.objects.order_by("pk")]
    for model in (
        models.Conversation,
        models.Message,
        models.Turn,
        models.Summary,
        models.Project,
        models.ProjectVersion,
        models.Connection,
        models.UserSettings,
        models.ImportJob,
        models.ModelCall,
        models.DailyCalls,
        models.ToolSwitch,
        models.ToolPermission,
        models.ToolApproval,
        models.PersonalKey,
        models.Share,
    ):
        rows += model._default_manager.order_by("pk")
    return str(serializers.serialize("json", rows))


async def ask(
    client: AsyncClient, method: str, path: str, fields: dict[str, Any], headers: dict[str, str]
) -> Any:
    if method == "GET":
        return await client.get(path, headers=headers)
    return await client.post(path, fields, headers=headers)


@pytest.fixture
async def spoken(client: AsyncClient, code: str) -> str:
    """Alice's conversation with one turn in it, and a link to it."""
    await send(client, code, "A secret of alice")
    await settle()
    await client.post(f"/c/{code}/shares/make/", headers=JSON)
    return code


def test_i19_every_route_is_classified() -> None:
    """I19, A05: who may open a new address is decided here before it is served.

    Breaks when: a route is added to ``chatapp.urls`` and to none of the sets above.
    """
    theirs = set(OWNED).union(PERSONAL, CONNECTIONS, JOBS, CALLS, PROJECTS)
    assert set(ROUTES) - set(ADMIN) == theirs | PUBLIC


@pytest.mark.parametrize("actor", ["stranger", "staff"])
async def test_i19_a_stranger_sees_exactly_what_is_missing(
    spoken: str, bob: User, upstream: FakeUpstream, actor: str
) -> None:
    """I19, A01, A02, A04, A05: each address of alice's, and of nobody's, in each format.

    Breaks when: a view leaves the owner out (``ownership.owned`` without ``owner_id``), or judges
    the body before it.
    """
    bob.is_staff = actor == "staff"
    await bob.asave()
    client = await signed_in(bob)
    before, calls = await stored(), len(upstream.chats)
    share = (await models.Share.objects.aget()).pk
    for route, (method, fields) in OWNED.items():
        tries = [(fields, headers) for headers in FORMATS.values()] + [(INVALID, JSON)]
        for form, headers in tries:
            paths = [address(route, one, share=share) for one in (spoken, str(uuid4()))]
            mine, none = [await ask(client, method, path, form, headers) for path in paths]
            assert mine.status_code == none.status_code == 404, (route, headers)
            assert mine.content == none.content, (route, headers)
            assert mine.headers.items() == none.headers.items(), (route, headers)
    await settle()
    assert await stored() == before
    assert len(upstream.chats) == calls
    assert not (await sync_to_async(read_state)(1)).running


async def test_i19_the_addresses_of_the_sweep_are_real(spoken: str, client: AsyncClient) -> None:
    """The owner is not told 404 at any of them, or the sweep would prove nothing."""
    turn, share = await models.Turn.objects.aget(), await models.Share.objects.aget()
    for route, (method, fields) in OWNED.items():
        path = address(route, spoken, turn.pk, share.pk)
        answer = await ask(client, method, path, fields, JSON)
        assert answer.status_code in {200, 201, 202, 409, 422}, (route, answer.content)
        await settle()


@pytest.mark.parametrize("actor", ["anonymous", "inactive", "inactive, by a lax backend"])
async def test_i19_who_is_not_signed_in_is_sent_to_sign_in(
    spoken: str, bob: User, upstream: FakeUpstream, actor: str, settings: Any
) -> None:
    """I19, A07: the same for any code: 302 for pages, 401 for htmx and JSON.

    Breaks when: ``endpoint`` does not look at ``is_active``, or a view is not decorated.
    """
    client = AsyncClient()
    if actor != "anonymous":
        settings.AUTHENTICATION_BACKENDS = [LAX if "lax" in actor else USUAL]
        await client.aforce_login(bob)
        await User.objects.filter(pk=bob.pk).aupdate(is_active=False)
    before, calls = await stored(), len(upstream.chats)
    tries = [(route, method, fields) for route, (method, fields) in OWNED.items()]
    tries += [
        (route, method, {})
        for routes in (PERSONAL, CONNECTIONS, PROJECTS, CALLS, JOBS)
        for route, methods in routes.items()
        for method in sorted(methods)
    ]
    for route, method, fields in tries:
        for name, headers in FORMATS.items():
            statuses = set()
            for code in (spoken, str(uuid4()), "nonsense"):
                answer = await ask(client, method, address(route, code), fields, headers)
                statuses.add(answer.status_code)
                if name == "plain":
                    assert answer["Location"].startswith("/accounts/login/?next=/")
                elif name == "json":
                    assert answer.json()["error"]["code"] == "signed_out"
            assert statuses == {302 if name == "plain" else 401}, (route, name)
    await settle()
    assert await stored() == before
    assert len(upstream.chats) == calls


@pytest.mark.parametrize("actor", ["anonymous", "stranger", "inactive", "staff"])
async def test_i19_the_admin_is_closed(spoken: str, bob: User, actor: str) -> None:
    """I19, A05, A09: without permissions nothing of the admin shows or changes anything.

    Breaks when: an admin's ``has_view_permission`` answers without looking at the person.
    """
    client = AsyncClient() if actor == "anonymous" else await signed_in(bob)
    await User.objects.filter(pk=bob.pk).aupdate(
        is_active=actor != "inactive", is_staff=actor == "staff"
    )
    before = await stored()
    for route in ADMIN:
        for method in ("GET",) if route == "admin/logout/" else ("GET", "POST"):
            answer = await ask(client, method, address(route, spoken), {}, PLAIN)
            allowed = {302, 403, 404, 405}
            if actor == "staff" and route in EMPTY_ADMIN:
                allowed = {200, 302, 405}
            assert answer.status_code in allowed, (route, method)
            assert b"secret of alice" not in answer.content
    assert await stored() == before


CODES = [
    "-1",
    str(2**63),
    str(2**70),
    "1 OR 1",
    " 1",
    "１",
    "x" * 3000,
    "%00",
    "\ud83d\ude00",
    "..",
]


async def test_a11_tricks_with_codes_are_missing(client: AsyncClient, spoken: str) -> None:
    """A11: a code has one spelling; every other is missing, even to the owner.

    Breaks when: ``parse_code`` takes what ``uuid.UUID`` takes.
    """
    spellings = [spoken.upper(), spoken.replace("-", ""), "{" + spoken + "}", f"urn:uuid:{spoken}"]
    for trick in [*CODES, *spellings, spoken + " ", spoken[:-1] + "１"]:
        trick = trick.encode("utf-16", "surrogatepass").decode("utf-16")
        answer = await client.get(f"/c/{trick}/", headers=JSON)
        assert answer.status_code == 404, trick
        assert answer.json()["error"]["code"] == "not_found"
    for turn in ("0", str(2**63), str(2**70), "9" * 5000):
        answer = await client.get(f"/c/{spoken}/turns/{turn}/", headers=JSON)
        assert answer.status_code == 404


async def test_a12_without_a_token_nothing_is_done(
    spoken: str, alice: User, upstream: FakeUpstream
) -> None:
    """A12: each command, without CSRF token, and with one but from another site.

    Breaks when: a view is made exempt, or the middleware is taken out.
    """
    client = await signed_in(alice, enforce_csrf_checks=True)
    await client.get(f"/c/{spoken}/")
    token = client.cookies["csrftoken"].value
    before, calls = await stored(), len(upstream.chats)
    foreign = {"X-CSRFToken": token, "Origin": "https://evil.example"}
    for route, fields in COMMANDS:
        for headers in (JSON, HTMX, PLAIN, {**JSON, **foreign}, {**HTMX, **foreign}):
            answer = await client.post(address(route, spoken), fields, headers=headers)
            assert answer.status_code == 403, route
            if headers is JSON:
                assert answer.json()["error"]["code"] == "forbidden"
    assert await stored() == before
    assert len(upstream.chats) == calls
    right = await client.post(
        f"/c/{spoken}/draft/", {"text": "mine"}, headers={**JSON, "X-CSRFToken": token}
    )
    assert right.status_code == 200


async def test_a12_get_changes_nothing(client: AsyncClient, spoken: str) -> None:
    """A12: each address by GET and HEAD, as a link, an image or a prefetch would ask.

    Breaks when: a command is allowed by GET.
    """
    before = await stored()
    for route in [*OWNED, *PERSONAL]:
        methods = {OWNED[route][0]} if route in OWNED else PERSONAL[route]
        for headers in FORMATS.values():
            answer = await client.get(address(route, spoken), headers=headers)
            head = await client.head(address(route, spoken), headers=headers)
            assert head.status_code == answer.status_code
            if methods == {"POST"}:
                assert answer.status_code == 405
                assert answer["Allow"] == "POST"
            if methods == {"POST"} and headers is JSON:
                assert answer.json()["error"]["code"] == "method_not_allowed"
    assert await stored() == before


async def test_i31_a_deleted_conversation_is_missing_until_it_is_back(
    client: AsyncClient, spoken: str
) -> None:
    assert (await client.post(f"/c/{spoken}/delete/"))["Location"] == "/"
    turn = await models.Turn.objects.aget()
    for route, (method, fields) in OWNED.items():
        if route.endswith("undelete/"):
            continue
        answer = await ask(client, method, address(route, spoken, turn.pk), fields, JSON)
        assert answer.status_code == 404, route
    assert (await client.post(f"/c/{spoken}/undelete/", headers=JSON)).status_code == 200
    assert (await client.get(f"/c/{spoken}/", headers=JSON)).status_code == 200
    assert (await Conversation.objects.aget(code=spoken)).deleted_at is None
