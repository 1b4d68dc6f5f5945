"""The list, what was seen of it, search and a person's settings, from outside."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.models import Conversation, UserSettings
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, new_conversation, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "<img src=x onerror=alert(1)> needle \u202e"


async def listed(client: AsyncClient, query: str = "") -> list[dict[str, Any]]:
    answer = await client.get(f"/{query}", headers=JSON)
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["conversations"]
    return found


async def test_the_list_as_json_and_as_a_fragment(client: AsyncClient, code: str) -> None:
    await client.post(f"/c/{code}/settings/", {"title": HOSTILE}, headers=JSON)
    (link,) = await listed(client)
    assert (link["code"], link["title"]) == (code, HOSTILE)
    fragment = (await client.get(f"/?current={code}", headers=HTMX)).content.decode()
    assert 'aria-current="page"' in fragment
    assert "<img" not in fragment
    assert "\u202e" not in fragment
    assert "<html" not in fragment


async def test_pinned_first_and_archived_apart(client: AsyncClient) -> None:
    codes = [await new_conversation(client, title=f"number {n}") for n in range(3)]
    await client.post(f"/c/{codes[0]}/pin/", headers=JSON)
    await client.post(f"/c/{codes[1]}/archive/", headers=JSON)
    assert [one["code"] for one in await listed(client)] == [codes[0], codes[2]]
    assert [one["code"] for one in await listed(client, "?archived")] == [codes[1]]
    page = (await client.get("/?archived")).content.decode()
    assert "number 1" in page
    await client.post(f"/c/{codes[0]}/unpin/", headers=JSON)
    await client.post(f"/c/{codes[1]}/unarchive/", headers=JSON)
    assert [one["code"] for one in await listed(client)] == codes[::-1]


async def test_a_reply_is_unseen_until_it_was_looked_at(client: AsyncClient, code: str) -> None:
    """Reading by GET is no sign of it: a prefetch is a GET too (A12).

    Breaks when: ``links`` compares with another number than ``mark_seen`` stores.
    """
    await send(client, code)
    await settle()
    await client.get(f"/c/{code}/")
    assert (await listed(client))[0]["unseen"]
    event_no = (await Conversation.objects.aget()).event_no
    await client.post(f"/c/{code}/seen/", {"event_no": event_no}, headers=JSON)
    assert not (await listed(client))[0]["unseen"]
    # What is not there yet cannot have been seen.
    await client.post(f"/c/{code}/seen/", {"event_no": 10**6}, headers=JSON)
    await send(client, code)
    await settle()
    assert (await listed(client))[0]["unseen"]
    await client.post(f"/c/{code}/seen/", {"event_no": 1}, headers=JSON)
    assert (await Conversation.objects.aget()).seen_event_no == event_no


@pytest.mark.parametrize("value", ["", "x", "-1"])
async def test_seen_needs_a_number(client: AsyncClient, code: str, value: str) -> None:
    answer = await client.post(f"/c/{code}/seen/", {"event_no": value}, headers=JSON)
    assert answer.status_code == 422


async def test_what_goes_on_leaves_the_archive(client: AsyncClient, code: str) -> None:
    """Breaks when: a message is stored and the conversation stays put away."""
    await client.post(f"/c/{code}/archive/", headers=JSON)
    page = (await client.get(f"/c/{code}/")).content.decode()
    assert "This conversation is archived." in page
    # What a change of the title is swapped into is there all the same.
    assert page.count('id="current-link"') == 1
    assert await listed(client) == []
    await send(client, code)
    await settle()
    assert [one["code"] for one in await listed(client)] == [code]
    page = (await client.get(f"/c/{code}/")).content.decode()
    assert "This conversation is archived." not in page
    assert page.count('id="current-link"') == 1


async def test_search_in_three_forms(client: AsyncClient, code: str) -> None:
    """X01, X08: what is found is inert, its marks apart."""
    await send(client, code, HOSTILE)
    await settle()
    found = (await client.get("/search/?q=needle", headers=JSON)).json()
    hit = next(one for one in found["messages"] if one["seq"] == 1)
    assert {"text": "needle", "marked": True} in hit["parts"]
    for headers in (HTMX, {}):
        page = (await client.get("/search/?q=needle", headers=headers)).content.decode()
        assert "<mark>needle</mark>" in page
        assert "?around=1&amp;q=needle#m-1" in page
        assert "<img" not in page
        assert "\u202e" not in page
    opened = await client.get(f"/c/{code}/?around=1&q=needle+script+onerror+amp")
    assert "<mark>needle</mark>" in opened.content.decode()
    assert "<img" not in opened.content.decode()
    inside = (await client.get(f"/search/?q=needle&in={code}", headers=JSON)).json()
    assert [one["code"] for one in inside["messages"]][:1] == [code]


async def test_search_refuses_what_makes_no_sense(client: AsyncClient, code: str) -> None:
    for query in ("q=%00", "q=a&page=x", "q=a&page=51", "q=a&sort=no", "q=" + "x" * 501):
        assert (await client.get(f"/search/?{query}", headers=JSON)).status_code == 422, query
    assert (await client.get(f"/search/?q=a&in={uuid4()}", headers=JSON)).status_code == 404


async def test_i19_a_strangers_search_finds_nothing(
    client: AsyncClient, code: str, bob: User
) -> None:
    await send(client, code, "needle")
    await settle()
    other = await signed_in(bob)
    found = (await other.get("/search/?q=needle", headers=JSON)).json()
    assert (found["messages"], found["titles"]) == ([], [])
    for who in (code, str(uuid4())):
        answer = await other.get(f"/search/?q=needle&in={who}", headers=JSON)
        assert answer.status_code == 404


async def test_a_page_opened_at_a_message(client: AsyncClient, code: str) -> None:
    """The way there and back is without gaps.

    Breaks when: ``window`` cuts at another place than it says.
    """
    for number in range(30):
        await send(client, code, f"number {number}")
        await settle()
    page = (await client.get(f"/c/{code}/?around=20", headers=JSON)).json()
    seqs = [one["seq"] for one in page["messages"]]
    assert seqs == list(range(10, 50))
    assert (page["has_older"], page["has_newer"]) == (True, True)
    rest = (await client.get(f"/c/{code}/?after=49", headers=JSON)).json()
    assert [one["seq"] for one in rest["messages"]] == list(range(50, 61))
    assert not rest["has_newer"]
    html = (await client.get(f"/c/{code}/?around=20")).content.decode()
    assert 'id="m-20"' in html
    assert "?after=49" in html
    fragment = (await client.get(f"/c/{code}/?after=49", headers=HTMX)).content.decode()
    assert 'id="m-50"' in fragment
    assert 'id="newer"' not in fragment


async def test_settings_are_changed_one_by_one(client: AsyncClient, alice: User) -> None:
    before = (await client.get("/settings/", headers=JSON)).json()
    assert before == {
        "theme": "system",
        "send_key": "enter",
        "shortcuts": True,
        "default_model": "",
        "notify": False,
        "instructions": "",
    }
    for name, value in (
        ("theme", "dark"),
        ("send_key", "modifier-enter"),
        ("shortcuts", "off"),
        ("notify", "on"),
    ):
        answer = await client.post("/settings/", {name: value}, headers=JSON)
        assert answer.status_code == 200
    after = (await client.get("/settings/", headers=JSON)).json()
    assert after == {
        **before,
        "theme": "dark",
        "send_key": "modifier-enter",
        "shortcuts": False,
        "notify": True,
    }
    plain = await client.post("/settings/", {"theme": "light"})
    assert (plain.status_code, plain["Location"]) == (302, "/settings/")
    page = (await client.get("/?new")).content.decode()
    assert 'data-theme="light"' in page
    assert 'data-send-key="modifier-enter"' in page
    assert "data-shortcuts" not in page
    assert await UserSettings.objects.acount() == 1


@pytest.mark.parametrize("fields", [{"theme": "pink"}, {"send_key": ""}, {"default_model": "\x00"}])
async def test_settings_that_do_not_exist(client: AsyncClient, fields: dict[str, str]) -> None:
    answer = await client.post("/settings/", fields, headers=JSON)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["fields"]) <= {*fields, "model"}


async def test_the_default_model_is_that_of_new_conversations(
    client: AsyncClient, upstream: FakeUpstream
) -> None:
    await wiring.services().catalogue.warm()
    name = (await wiring.services().catalogue.names())[-1]
    for chosen, expected in ((name, name), ("gone", "")):
        await client.post("/settings/", {"default_model": chosen}, headers=JSON)
        code = await new_conversation(client)
        assert (await Conversation.objects.aget(code=code)).model == expected
