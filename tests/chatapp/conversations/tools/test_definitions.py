"""Definitions of tools, as servers report them and as administrators approve them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.conversations.tools import definitions, servers
from chatapp.models import ToolServer
from compression.tools.approval import exact
from tests.chatapp.talking import new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db]


def _described(*tools: str) -> dict[str, str]:
    return {name: exact({"name": name, "inputSchema": {"type": "object"}}) for name in tools}


def test_before_calls_nothing_new_is_stored() -> None:
    """A server could describe itself differently before each call.

    Breaks when: what a call finds is stored as what an administrator asked for.
    """
    row = ToolServer.objects.create(name="tests", address="https://tools.example/mcp")
    definitions.record(row.pk, _described("one", "two"))
    definitions.approve(
        row.pk,
        {name: definitions.sha256_of(raw) for name, raw in _described("one").items()},
        "root",
    )
    definitions.quarantine(row.pk, _described("one", "three"))
    definitions.quarantine(row.pk, {**_described("one"), "two": "{}"})
    reported = dict(row.definitions.values_list("name", "reported"))
    assert reported == _described("one", "two")
    # What was approved is withdrawn as soon as it is missing, and again once it is listed.
    definitions.quarantine(row.pk, {})
    assert not row.definitions.get(name="one").offered
    definitions.quarantine(row.pk, _described("one"))
    assert row.definitions.get(name="one").offered
    definitions.quarantine(row.pk, {"one": "{}"})
    definitions.quarantine(row.pk, _described("one"))
    assert not row.definitions.get(name="one").offered


def test_what_is_gone_is_kept_only_if_it_was_approved() -> None:
    """Breaks when: a server with other names at each look fills the database."""
    row = ToolServer.objects.create(name="tests", address="https://tools.example/mcp")
    for number in range(3):
        definitions.record(row.pk, _described(f"tool{number}"))
    assert [one.name for one in row.definitions.all()] == ["tool2"]
    definitions.approve(
        row.pk,
        {name: definitions.sha256_of(raw) for name, raw in _described("tool2").items()},
        "root",
    )
    definitions.record(row.pk, _described("another"))
    assert {one.name: one.missing for one in row.definitions.all()} == {
        "another": False,
        "tool2": True,
    }


def test_a_round_reads_only_what_it_offers(alice: User) -> None:
    """Breaks when: each request loads what servers reported, or those that are off."""
    conversation = row_of(new(alice))
    for name, on in (("a", True), ("b", False)):
        row = ToolServer.objects.create(
            name=name, address="https://tools.example/mcp", everyone=True, on_by_default=on
        )
        definitions.record(row.pk, _described("one"))
        seen = dict(row.definitions.values_list("name", "reported_sha256"))
        definitions.approve(row.pk, seen, "root")
    with CaptureQueriesContext(connection) as queries:
        (offered,) = servers.switched_on(conversation.pk)
    assert (offered.name, [one.name for one in offered.tools]) == ("a", ["one"])
    (read,) = [one["sql"] for one in queries if "chatapp_tooldefinition" in one["sql"]]
    assert '"reported",' not in read
    assert f"({offered.server_id})" in read
