"""The page of a conversation's tools."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.conversations.tools import definitions
from chatapp.models import PersonalKey, ToolDefinition, ToolPermission, ToolServer
from chatapp.tools.sealing import unseal
from compression.database import in_database_thread
from compression.tools.approval import exact
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


def _server(*descriptions: str, **values: Any) -> ToolServer:
    server = ToolServer.objects.create(
        **{"name": "notes", "address": "https://tools.example/mcp", "everyone": True, **values}
    )
    raws = {
        f"tool{n}": exact(
            {"name": f"tool{n}", "description": text, "inputSchema": {"type": "object"}}
        )
        for n, text in enumerate(descriptions)
    }
    definitions.record(server.pk, raws)
    rows = ToolDefinition.objects.filter(server=server)
    definitions.approve(server.pk, dict(rows.values_list("name", "reported_sha256")), "root")
    return server


_aserver = in_database_thread(_server)


async def tools(client: AsyncClient, code: str) -> Any:
    return (await client.get(f"/c/{code}/tools/", headers=JSON)).json()


async def change(client: AsyncClient, code: str, **fields: str) -> Any:
    return await client.post(f"/c/{code}/tools/change/", fields, headers=JSON)


async def test_it_works(client: AsyncClient, code: str) -> None:
    await _aserver("Keep a <b>note</b>.")
    (server,) = (await tools(client, code))["servers"]
    assert (server["name"], server["on"], server["quarantined"]) == ("notes", False, 0)
    (tool,) = server["tools"]
    assert tool == {
        "name": "notes__tool0",
        "description": "Keep a <b>note</b>.",
        "read_only": False,
    }
    assert (await change(client, code, server="notes", on="true")).json() == {"done": True}
    shown = await tools(client, code)
    assert shown["servers"][0]["on"]
    assert 0 < shown["tokens"] == server["tokens"] < 200
    assert shown["warning"] == ""
    html = (await client.get(f"/c/{code}/tools/")).content.decode()
    assert "Keep a &lt;b&gt;note&lt;/b&gt;." in html
    assert "Switch off here" in html


async def test_json_switches_by_true_and_false(client: AsyncClient, code: str) -> None:
    """Breaks when: a false in JSON is read as nothing."""
    await _aserver("Keep a note.")
    for on in (True, False):
        answer = await client.post(
            f"/c/{code}/tools/change/",
            {"server": "notes", "on": on},
            content_type="application/json",
            headers=JSON,
        )
        assert answer.json() == {"done": True}
        assert (await tools(client, code))["servers"][0]["on"] is on


async def test_definitions_that_take_much_of_every_request(client: AsyncClient, code: str) -> None:
    """More than a tenth of B is worth a warning, as soon as the server is on.

    Breaks when: the definitions are not counted, or those of servers that are off are.
    """
    await _aserver(*("The harbour opens at nine and closes at five. " * 8 for _ in range(10)))
    assert (await tools(client, code))["warning"] == ""
    await change(client, code, server="notes", on="true")
    shown = await tools(client, code)
    assert shown["share"] > 0.1
    assert f"{shown['tokens']:,} tokens" in shown["warning"]
    assert (
        shown["warning"].split(" take ")[0]
        in (await client.get(f"/c/{code}/tools/")).content.decode()
    )


async def test_the_warning_stands_where_the_request_is_shown_too(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """With the figure of what was offered, whoever offered it.

    Breaks when: what the model sees tells the tokens of tools, and not that they are many.
    """
    await _aserver(*("The harbour opens at nine and closes at five. " * 8 for _ in range(10)))
    await send(client, code)
    await settle()
    page = f"/c/{code}/context/"
    assert "of the window, in every request" not in (await client.get(page)).content.decode()
    await change(client, code, server="notes", on="true")
    await send(client, code)
    await settle()
    for headers in ({}, HTMX):
        html = (await client.get(page, headers=headers)).content.decode()
        assert "of the window, in every request" in " ".join(html.split())


async def test_a_key_of_ones_own(client: AsyncClient, code: str, bob: User) -> None:
    """Breaks when: a key is shown, stored as it is, or another person's."""
    await _aserver("Keep a note.", personal_keys=True)
    assert not (await tools(client, code))["servers"][0]["has_key"]
    assert (await change(client, code, server="notes", key="sesame")).status_code == 200
    kept = await PersonalKey.objects.aget()
    assert unseal(kept.sealed_key) == "sesame"
    assert kept.person_id != bob.pk
    html = (await client.get(f"/c/{code}/tools/")).content.decode()
    assert "sesame" not in html
    assert kept.sealed_key not in html
    assert (await change(client, code, server="notes", key="two\nlines")).status_code == 422
    empty = await change(client, code, server="notes", key="")
    assert (empty.status_code, await PersonalKey.objects.acount()) == (422, 1)
    await change(client, code, server="notes", key="", remove_key="true")
    assert not await PersonalKey.objects.aexists()


async def test_what_was_always_allowed_can_be_taken_back(
    client: AsyncClient, code: str, pk: int
) -> None:
    await ToolPermission.objects.acreate(
        conversation_id=pk, tool="notes__tool0", definition_sha256="d" * 64
    )
    assert (await tools(client, code))["always_allowed"] == ["notes__tool0"]
    await change(client, code, ask_again="notes__tool0")
    assert (await tools(client, code))["always_allowed"] == []


async def test_a_server_of_others(client: AsyncClient, code: str) -> None:
    """Breaks when: a server is found by its name alone."""
    await _aserver("Keep a note.", everyone=False)
    assert (await tools(client, code))["servers"] == []
    for fields in ({"on": "true"}, {"key": "sesame"}):
        assert (await change(client, code, server="notes", **fields)).status_code == 404
    assert (await change(client, code, server="notes", on="perhaps")).status_code == 422


async def test_without_servers_the_page_says_so(alice: User, code: str) -> None:
    client = await signed_in(alice)
    html = (await client.get(f"/c/{code}/tools/")).content.decode()
    assert "There are no tool servers that you may use." in html
