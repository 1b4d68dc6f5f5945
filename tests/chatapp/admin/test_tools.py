"""Tool servers are set up in the admin; their keys are never shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.html import escape

from chatapp.admin.tools import MOVED
from chatapp.conversations.tools import definitions
from chatapp.models import (
    AccessRecord,
    PersonalKey,
    ToolDefinition,
    ToolPermission,
    ToolServer,
)
from chatapp.tools.sealing import seal, unseal
from compression.tools.approval import exact
from tests.chatapp.talking import new, row_of
from tests.reviewing import browser_of, page

pytestmark = pytest.mark.django_db

PAGE = "/admin/chatapp/toolserver/"
KEY = "Bearer of-a-secret"
NOTES = {
    "name": "add",
    "description": "Add <b>a note</b>\u202e.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def form(**changes: Any) -> dict[str, Any]:
    values = {
        "name": "notes",
        "address": "https://tools.example.org/mcp",
        "command": "",
        "enabled": "on",
        "credential_name": "Authorization",
        "key": "",
    }
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


@pytest.fixture
def root() -> Client:
    return browser_of(User.objects.create_superuser("root"))


@pytest.fixture
def helper() -> Client:
    made = User.objects.create_user("helper", is_staff=True)
    acts = [f"{act}_toolserver" for act in ("add", "change", "delete", "view")]
    made.user_permissions.set(Permission.objects.filter(codename__in=acts))
    return browser_of(made)


def reported(**raw: Any) -> ToolServer:
    server = ToolServer.objects.create(name="notes", address="https://tools.example.org/mcp")
    definitions.record(server.pk, {raw["name"]: exact(raw)})
    return server


def chosen(server: ToolServer) -> list[str]:
    rows = ToolDefinition.objects.filter(server=server)
    return [f"{one.reported_sha256} {one.name}" for one in rows]


def test_it_works(root: Client) -> None:
    """Breaks when: the key is stored as it is, or shown."""
    answer = root.post(f"{PAGE}add/", form(key=KEY, everyone="on"))
    assert answer.status_code == 302, answer.content
    server = ToolServer.objects.get()
    assert KEY not in server.sealed_key
    assert unseal(server.sealed_key) == KEY
    shown = page(root, f"{PAGE}{server.pk}/change/")
    assert "of-a-secret" not in shown
    assert server.sealed_key not in shown
    assert "stored, encrypted" in shown
    # It stays until another one is entered, or it is removed.
    root.post(f"{PAGE}{server.pk}/change/", form())
    assert unseal(ToolServer.objects.get().sealed_key) == KEY
    root.post(f"{PAGE}{server.pk}/change/", form(remove_key="on"))
    assert ToolServer.objects.get().sealed_key == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Notes"},
        {"name": "no_tes"},
        {"name": "x" * 25},
        {"address": "file:///etc/passwd"},
        {"address": "https://user:secret@tools.example.org/"},
        {"address": "https://:secret@tools.example.org/"},
        {"address": "https://tools.example.org:99999/"},
        {"address": ""},
        {"command": "server --stdio"},
        {"command": "'", "address": ""},
        {"credential_name": "two words"},
        {"key": "a\nb"},
    ],
)
def test_what_cannot_be(root: Client, wrong: dict[str, str]) -> None:
    assert root.post(f"{PAGE}add/", form(**wrong)).status_code == 200
    assert not ToolServer.objects.exists()


def test_only_superusers_run_programs_here(root: Client, helper: Client) -> None:
    """Breaks when: the command is a field for whoever may change servers."""
    helper.post(f"{PAGE}add/", form(address="", command="/bin/sh -c id"))
    assert not ToolServer.objects.exists()
    root.post(f"{PAGE}add/", form(address="", command="notes-server 'with space'"))
    server = ToolServer.objects.get()
    assert server.command == ["notes-server", "with space"]
    answer = helper.post(f"{PAGE}{server.pk}/change/", form(credential_name="LD_PRELOAD"))
    assert answer.status_code == 403
    assert ToolServer.objects.get().credential_name == "Authorization"


def test_t01_definitions_are_approved_as_they_were_shown(root: Client) -> None:
    """T01: text of a server is text, and what changed meanwhile is not approved.

    Breaks when: the button approves names without their hashes.
    """
    server = reported(**NOTES)
    address = f"{PAGE}{server.pk}/change/"
    shown = page(root, address)
    assert "new; not offered" in shown
    assert "Add &lt;b&gt;a note&lt;/b&gt;\u27e6U+202E\u27e7." in shown
    before = chosen(server)
    definitions.record(server.pk, {"add": exact({**NOTES, "description": "Another."})})
    root.post(address, {"_approve": "x", "definition": before})
    assert not ToolDefinition.objects.get().offered
    root.post(address, {"_approve": "x", "definition": chosen(server)})
    assert ToolDefinition.objects.get().offered
    assert ToolDefinition.objects.get().approved_by == "root"
    assert AccessRecord.objects.filter(what__contains="Approved add").exists()
    definitions.record(server.pk, {"add": exact(NOTES)})
    shown = page(root, address)
    assert "CHANGED" in shown
    assert "As approved" in shown
    assert "Another." in shown
    root.post(address, {"_withdraw": "x", "definition": chosen(server)})
    assert json.loads(ToolDefinition.objects.get().reported) == NOTES
    assert ToolDefinition.objects.get().approved == ""


def test_a_schema_that_is_none_cannot_be_approved(root: Client) -> None:
    """Breaks when: ``flaw`` is only shown."""
    server = reported(**{**NOTES, "inputSchema": {"type": "string"}})
    address = f"{PAGE}{server.pk}/change/"
    assert "cannot be offered" in page(root, address)
    root.post(address, {"_approve": "x", "definition": chosen(server)})
    assert not ToolDefinition.objects.get().offered


def test_staff_without_the_permission_approve_nothing() -> None:
    server = reported(**NOTES)
    made = User.objects.create_user("viewer", is_staff=True)
    made.user_permissions.set(Permission.objects.filter(codename="view_toolserver"))
    viewer = browser_of(made)
    address = f"{PAGE}{server.pk}/change/"
    assert "Approve the chosen" not in page(viewer, address)
    answer = viewer.post(address, {"_approve": "x", "definition": chosen(server)})
    assert answer.status_code == 403
    assert not ToolDefinition.objects.get().offered


def entrusted() -> ToolServer:
    """A server with keys and approvals."""
    server = reported(**NOTES)
    ToolServer.objects.filter(pk=server.pk).update(sealed_key=seal(KEY))
    definitions.approve(server.pk, {"add": definitions.sha256_of(exact(NOTES))}, "root")
    alice = User.objects.create_user("alice")
    PersonalKey.objects.create(server=server, person=alice, sealed_key=seal("of alice"))
    ToolPermission.objects.create(
        conversation=row_of(new(alice)), tool="notes__add", definition_sha256="d" * 64
    )
    return server


def kept(server: ToolServer) -> tuple[str, int, bool, int]:
    """What is left of that."""
    return (
        unseal(ToolServer.objects.get().sealed_key),
        PersonalKey.objects.count(),
        ToolDefinition.objects.get().offered,
        ToolPermission.objects.count(),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"address": "https://elsewhere.example.org/mcp"},
        {"address": "https://tools.example.org:8443/mcp"},
        {"address": "http://tools.example.org/mcp"},
        {"credential_name": "X-Key"},
    ],
)
def test_keys_are_not_sent_to_another_place(helper: Client, changes: dict[str, str]) -> None:
    """Whoever may change an address could otherwise have every key sent to their own computer.

    Breaks when: what was entrusted to a server stays when requests go elsewhere.
    """
    server = entrusted()
    answer = helper.post(f"{PAGE}{server.pk}/change/", form(**changes), follow=True)
    assert kept(server) == ("", 0, False, 0)
    assert escape(MOVED) in answer.content.decode()


def test_keys_stay_while_the_place_is_the_same(helper: Client) -> None:
    """Breaks when: any change of a server takes everybody's key away."""
    server = entrusted()
    changes = {"address": "https://Tools.example.org:443/another", "everyone": "on"}
    helper.post(f"{PAGE}{server.pk}/change/", form(**changes))
    assert kept(server) == (KEY, 1, True, 1)


def test_a_key_that_is_entered_with_the_new_address_stays(helper: Client) -> None:
    server = entrusted()
    changes = {"address": "https://elsewhere.example.org/mcp", "key": "Bearer new"}
    helper.post(f"{PAGE}{server.pk}/change/", form(**changes))
    assert kept(server) == ("Bearer new", 0, False, 0)


def test_a_name_that_is_taken_over_inherits_no_permission(root: Client) -> None:
    """Breaks when: calls that were allowed to one server are allowed to the next of its name."""
    server = entrusted()
    root.post(f"{PAGE}{server.pk}/delete/", {"post": "yes"})
    assert ToolPermission.objects.count() == 1
    root.post(f"{PAGE}add/", form())
    assert ToolServer.objects.count() == 1
    assert not ToolPermission.objects.exists()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"pattern": "x{5000000000}"}}},
        {"type": "object", "$schema": "http://["},
    ],
)
def test_a_schema_that_the_library_breaks_at(root: Client, schema: dict[str, Any]) -> None:
    """Breaks when: one definition takes the page of its server away."""
    server = reported(**{**NOTES, "inputSchema": schema})
    assert "cannot be offered" in page(root, f"{PAGE}{server.pk}/change/")
