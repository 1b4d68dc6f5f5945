"""A summary line by line, and previews of the next one, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient

from chatapp.conversations.messages.originals import look_up
from chatapp.models import Conversation, Message
from compression.recall.ports import History
from tests.chatapp.views.test_summaries import WORDS
from tests.compression.hosting import database
from tests.inprocess import HTMX, JSON, send, settle

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def long(client: AsyncClient, code: str) -> str:
    """A conversation that is worth compressing."""
    for number in range(5):
        await send(client, code, f"Question {number}. {WORDS}")
        await settle()
    return code


async def post(client: AsyncClient, path: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    answer = await client.post(path, fields, headers=JSON)
    return answer.status_code, answer.json()


async def get(client: AsyncClient, path: str) -> dict[str, Any]:
    return dict((await client.get(path, headers=JSON)).json())


def looked_up(history: History) -> str:
    return ",".join(str(one.seq) for one in history.originals([1, 2, 3]))


async def test_a_line_is_struck_rewritten_added_and_forgotten(
    client: AsyncClient, long: str
) -> None:
    """Breaks when: an outdated page still changes something, or what is forgotten is looked up."""
    await client.post(f"/c/{long}/compact/", headers=JSON)
    await settle()
    at = f"/c/{long}/summary/lines/"
    shown = await get(client, at)
    assert shown["version"] == 1
    lines = [line for section in shown["sections"] for line in section["lines"]]
    last = next(one for one in reversed(lines) if one["forgettable"])
    seqs = {n for one in last["sources"] for n in range(one["first"], one["last"] + 1)}
    row = await Conversation.objects.aget(code=long)
    before = await database(look_up, row.pk, looked_up)
    change = f"{at}change/"
    added = {"act": "add", "text": "Be kind.", "section": "constraints"}
    assert await post(client, change, **added, version=1) == (200, {"version": 2})
    status, refused = await post(client, change, act=f"strike {last['key']}", version=1)
    assert (status, refused["error"]["code"]) == (409, "stale_version")
    assert refused["error"]["fields"] == {"current_version": 2}
    assert (await post(client, change, act="forget", line=last["key"], version=2))[0] == 200
    after = await database(look_up, row.pk, looked_up)
    assert after == ",".join(n for n in before.split(",") if int(n) not in seqs)
    for wrong in ({"act": "burn"}, {"act": "add", "text": "x", "section": "y"}, {"act": "add"}):
        assert (await post(client, change, version=3, **wrong))[0] == 422
    plain = await client.post(change, {"act": "add", "text": "Done.", "version": 3})
    assert plain.headers["Location"] == f"/c/{long}/summaries/"
    fragment = await client.get(f"{at}?place=card", headers=HTMX)
    assert b'id="linescard"' in fragment.content
    assert b"Be kind." in fragment.content
    await client.post(f"/c/{long}/summary/undo/", headers=JSON)
    await client.post(f"/c/{long}/summary/undo/", headers=JSON)
    assert await database(look_up, row.pk, looked_up) == before


async def test_a_preview_is_written_looked_at_and_applied_once(
    client: AsyncClient, long: str
) -> None:
    """Breaks when: the preview is not stored, or the fields of the form are not applied."""
    at = f"/c/{long}/preview/"
    assert await get(client, at) == {"preview": None}
    assert await post(client, f"{at}make/", through_seq=6) == (202, {"state": "started"})
    await settle()
    page = await get(client, f"/c/{long}/")
    assert (page["compression"]["version"], page["compression"]["preview_current"]) == (0, True)
    assert b"A preview of the next summary waits" in (await client.get(f"/c/{long}/")).content
    held = (await get(client, at))["preview"]
    assert (held["first_seq"], held["through_seq"], held["stays"]) == (1, 6, 4)
    assert held["id"] == page["compression"]["preview"]
    lines = [line for section in held["sections"] for line in section["lines"]]
    assert all(line["fresh"] for line in lines)
    for headers in ({}, HTMX):
        assert b"Take out" in (await client.get(at, headers=headers)).content
    fields = {f"strike-{lines[0]['key']}": "on", "rule": "Be kind.", "preview": held["id"]}
    assert (await post(client, f"{at}apply/", **{**fields, "strike-e999": "on"}))[0] == 422
    assert await post(client, f"{at}apply/", **fields) == (200, {"version": 1})
    status, over = await post(client, f"{at}apply/", **fields)
    assert (status, over["error"]["code"]) == (409, "stale_version")
    compression = (await get(client, f"/c/{long}/"))["compression"]
    assert (compression["version"], compression["boundary"], compression["preview"]) == (1, 6, 0)
    assert "- Be kind." in compression["summary"]
    assert lines[0]["text"] not in compression["summary"]


async def test_a_range_pins_what_stands_before_it(client: AsyncClient, long: str) -> None:
    """Breaks when: messages before a range are neither pinned nor in the tail."""
    at = f"/c/{long}/preview/"
    status, refused = await post(client, f"{at}make/", from_seq=9, through_seq=4)
    assert (status, "through_seq" in refused["error"]["fields"]) == (422, True)
    status, refused = await post(client, f"{at}make/", from_seq=9)
    assert (status, refused["error"]["fields"]["from_seq"]) == (422, "Too much stands before it.")
    short = Message.objects.filter(conversation__code=long, seq__lte=2)
    await short.aupdate(token_count=20)
    assert (await post(client, f"{at}make/", from_seq=3, through_seq=6))[0] == 202
    await settle()
    held = (await get(client, at))["preview"]
    pinned = Message.objects.filter(conversation__code=long, pinned_at__isnull=False)
    assert await pinned.acount() == 0
    assert (await post(client, f"{at}apply/", preview=held["id"]))[0] == 200
    assert [one.seq async for one in pinned.order_by("seq")] == [1, 2]


async def test_one_that_is_out_of_date_says_so(client: AsyncClient, long: str) -> None:
    at = f"/c/{long}/preview/"
    await post(client, f"{at}make/")
    await settle()
    held = (await get(client, at))["preview"]
    await client.post(f"/c/{long}/clear/", headers=JSON)
    assert b"out of date" in (await client.get(at, headers=HTMX)).content
    assert b"The preview is out of date" in (await client.get(f"/c/{long}/")).content
    status, refused = await post(client, f"{at}apply/", preview=held["id"])
    assert (status, refused["error"]["code"]) == (409, "stale_version")
    assert (await post(client, f"{at}discard/", preview=held["id"]))[0] == 200
    assert (await post(client, f"{at}discard/", preview=held["id"]))[0] == 409
    assert await get(client, at) == {"preview": None}
    settings = f"/c/{long}/settings/"
    assert (await post(client, settings, preview_first="true"))[1] == {"preview_first": True}
    assert (await get(client, f"/c/{long}/"))["conversation"]["preview_first"]
