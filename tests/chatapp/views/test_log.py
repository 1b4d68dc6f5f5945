"""The log of calls from outside: who sees what, search, sums, one call, export, and its end."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils import timezone

from chatapp import wiring
from chatapp.activity.lines import encoded
from chatapp.conversations.model_calls.storing import Indexed, index
from chatapp.conversations.model_calls.subjects import subject
from chatapp.models import Conversation, DailyCalls, ModelCall, Project
from tests.chatapp.activity.log_lines import lines_of
from tests.fake_scripts import failing, saying
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, fresh_product, new_conversation, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-a-key-of-the-tests-0123456789"


@pytest.fixture
async def upstream(
    settings: Any, transactional_db: None, tmp_path: Path
) -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as fake:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = fake.base_url, KEY
        settings.ACTIVITY_LOG_DIR = str(tmp_path)
        async with fresh_product():
            yield fake
            await settle()


@pytest.fixture
async def client(upstream: FakeUpstream, alice: User) -> AsyncClient:
    return await signed_in(alice)


@pytest.fixture
async def code(client: AsyncClient) -> str:
    return await new_conversation(client, title="Harbour <b>plans</b>")


async def say(client: AsyncClient, code: str, *texts: str) -> None:
    for text in texts:
        await send(client, code, text)
        await settle()


async def asked(client: AsyncClient, query: str = "") -> Any:
    answer = await client.get(f"/log/{query}", headers=JSON)
    assert answer.status_code == 200, answer.content
    return answer.json()


async def exported(client: AsyncClient, query: str = "") -> list[dict[str, Any]]:
    answer = await client.get(f"/log/export/{query}")
    assert isinstance(answer, StreamingHttpResponse)
    body = b"".join([piece async for piece in answer])
    return [json.loads(line) for line in body.splitlines()]


async def test_i29_the_log_has_as_many_lines_as_the_server_was_asked(
    client: AsyncClient, code: str, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Files, index and sums agree, and the folder is that of the conversation's project.

    Breaks when: one of the three leaves a call out, or the project is not read at the end.
    """
    owner = await User.objects.aget()
    project = await Project.objects.acreate(owner=owner, name="The Sea", slug="the_sea")
    upstream.enqueue(saying("one"), failing(503, f"no {KEY}"), saying("two"))
    await say(client, code, "first", "second")
    await Conversation.objects.filter(code=code).aupdate(project=project)
    await say(client, code, f"third, with {KEY}")
    told = await asked(client)
    lines = lines_of(tmp_path)
    assert len(lines) == len(upstream.chats) == len(told["calls"]) == 4
    assert [one["project"] for one in lines] == ["default"] * 3 + ["the_sea"]
    assert folders(tmp_path) == {"default", "the_sea"}
    assert KEY not in written(tmp_path)
    assert [one["call"] for one in told["calls"]] == [one["call"] for one in reversed(lines)]
    assert {one["conversation"] for one in lines} == {code}
    assert told["totals"]["all"]["calls"] == 4
    assert told["totals"]["all"]["errors"] == 1
    tokens = sum(one["usage"]["input_tokens"] for one in lines if one["usage"])
    assert told["totals"]["all"]["input_tokens"] == tokens > 0
    assert (await exported(client)) == list(reversed(lines))
    own = (await client.get(f"/c/{code}/activity/", headers=JSON)).json()
    assert [one["call"] for one in own["calls"]] == [one["call"] for one in told["calls"]]
    assert own["complete"]


async def test_money_has_a_column_where_a_price_is_known(client: AsyncClient, code: str) -> None:
    """Breaks when: an empty column takes the room of the others, or a price is not shown."""
    await say(client, code, "first")
    heading = '<th scope="col" class="number">Money</th>'
    address = f"/c/{code}/activity/"
    assert heading not in (await client.get(address)).content.decode()
    await ModelCall.objects.aupdate(cost=0.0123)
    page = (await client.get(address)).content.decode()
    assert heading in page
    assert "$0.012" in page


@pytest.mark.storage
async def test_filters_and_words(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    """Breaks when: a filter is left out of a branch of the search."""
    other = await new_conversation(client, title="Weather")
    upstream.enqueue(saying("one"), failing(401, "no"))
    await say(client, code, "first")
    await say(client, other, "second")
    one, two = reversed((await asked(client))["calls"])
    assert (one["error"], two["error"]) == ("", "llm_auth")
    today = timezone.localdate()
    for query, expected in (
        ("?q=harbour", [one]),
        ("?q=weather", [two]),
        ("?q=AUTH", [two]),
        ("?q=fake-mod", [two, one]),
        (f"?q={one['call']}", [one]),
        ("?q=harbour&failed=1", []),
        ("?failed=1", [two]),
        (f"?conversation={code}", [one]),
        ("?kind=chat", [two, one]),
        ("?kind=title", []),
        ("?kind=chat&model=fake-model&project=default", [two, one]),
        ("?project=other", []),
        (f"?first={today}&last={today}", [two, one]),
        (f"?last={today - timedelta(days=2)}", []),
        ("?q=%25", []),
    ):
        assert (await asked(client, query))["calls"] == expected, query
    for query, status in (("?first=x", 422), ("?q=%00", 422), ("?before=x", 404)):
        answer = await client.get(f"/log/{query}", headers=JSON)
        assert answer.status_code == status, query


@pytest.mark.storage
async def test_pages_follow_one_another_without_a_gap(
    client: AsyncClient, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: calls of one moment are cut in two by the end of a page."""
    pk = (await Conversation.objects.aget(code=code)).pk
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    await store(pk, [moment] * 5 + [moment + timedelta(seconds=1)] * 2)
    monkeypatch.setattr("chatapp.conversations.model_calls.listing.PAGE", 2)
    for query in ("", "&kind=chat", "&q=harbour"):
        found, older = [], ""
        while True:
            page = await asked(client, f"?x={query}{older}")
            found += [one["call"] for one in page["calls"]]
            if not page["older"]:
                break
            older = f"&before={page['older']}"
        assert len(found) == len(set(found)) == 7, query


@sync_to_async
def store(conversation_id: int, moments: list[datetime], place: str = "0" * 32) -> None:
    about = subject(conversation_id)
    lines = [
        {
            "call": str(uuid.uuid4()),
            "timestamp": moment.isoformat(),
            "project": "default",
            "kind": "chat",
            "model": "fake-model",
            "duration": 1.0,
            "usage": {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 0},
        }
        for moment in moments
    ]
    rows = [
        Indexed(line=line, subject=about, place=place, file="f", offset=n, length=1)
        for n, line in enumerate(lines)
    ]
    assert index(rows) == len(rows)
    assert index(rows) == 0, "a line is counted once"


async def test_one_call_and_what_changed(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    hostile = "<img src=x onerror=alert(1)> \u202e"
    upstream.enqueue(saying("one"), saying(f"two {hostile}"))
    await say(client, code, "first", f"second {hostile}")
    newest, oldest = (await asked(client))["calls"]
    told = (await client.get(f"/log/{newest['call']}/", headers=JSON)).json()
    assert told["line"]["request"] == upstream.chats[1].json
    assert told["call"] == newest
    page = (await client.get(f"/log/{newest['call']}/")).content.decode()
    assert "2 messages unchanged" in page
    assert "begins with all of it" in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert f"/log/{oldest['call']}/" in page
    first = (await client.get(f"/log/{oldest['call']}/")).content.decode()
    assert "the first of its kind" in first
    listed = (await client.get("/log/")).content.decode()
    assert "Harbour &lt;b&gt;plans" in listed
    assert "<svg" in listed


async def test_i19_a_call_is_its_owners_alone(
    client: AsyncClient, code: str, bob: User, upstream: FakeUpstream
) -> None:
    """Breaks when: ``_own`` leaves the owner out."""
    await say(client, code, "A secret of alice")
    (one,) = (await asked(client))["calls"]
    stranger = await signed_in(bob)
    for headers in ({}, JSON):
        mine = await stranger.get(f"/log/{one['call']}/", headers=headers)
        none = await stranger.get(f"/log/{uuid.uuid4()}/", headers=headers)
        assert mine.status_code == none.status_code == 404
        assert mine.content == none.content
    assert (await asked(stranger))["calls"] == []
    assert (await asked(stranger))["totals"]["all"]["calls"] == 0
    assert await exported(stranger) == []
    foreign = await stranger.get(f"/log/?conversation={code}", headers=JSON)
    assert foreign.status_code == 404
    assert (await AsyncClient().get(f"/log/{one['call']}/", headers=JSON)).status_code == 401
    assert (await client.get("/log/nonsense/", headers=JSON)).status_code == 404


@pytest.mark.storage
async def test_i31_a_deleted_conversation_takes_its_lines_along(
    client: AsyncClient, code: str, tmp_path: Path
) -> None:
    """Hidden at once; removed when it cannot be brought back by a slip. Others' lines stay.

    Breaks when: the rows go and the lines stay, or the other way round.
    """
    other = await new_conversation(client)
    await say(client, code, "forget these words")
    await say(client, other, "keep these words")
    await client.post(f"/c/{code}/delete/", headers=JSON)
    assert [one["conversation"] for one in (await asked(client))["calls"]] == [other]
    upkeep = wiring.log_upkeep()
    assert upkeep is not None
    await upkeep.round()
    assert "forget these words" in written(tmp_path)
    long_ago = timezone.now() - timedelta(hours=1)
    await Conversation.objects.filter(code=code).aupdate(deleted_at=long_ago)
    await upkeep.round()
    assert "forget these words" not in written(tmp_path)
    assert "keep these words" in written(tmp_path)
    assert await ModelCall.objects.acount() == 1
    assert len(lines_of(tmp_path)) == 2, "each line is still valid"
    assert (await asked(client))["totals"]["all"]["calls"] == 2, "what was spent was spent"


async def test_i31_with_an_account_the_lines_of_its_conversations_go(
    client: AsyncClient, code: str, tmp_path: Path
) -> None:
    await say(client, code, "forget these words")
    await sync_to_async(lambda: User.objects.all().delete())()
    upkeep = wiring.log_upkeep()
    assert upkeep is not None
    await upkeep.round()
    assert "forget these words" not in written(tmp_path)
    assert await ModelCall.objects.acount() == 0


def folders(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/*.jsonl")}


def written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*/*.jsonl"))


async def test_i31_a_slip_costs_no_line_that_has_no_row_yet(
    client: AsyncClient, code: str, tmp_path: Path
) -> None:
    """Deleted and brought back, with a round of the upkeep between.

    Breaks when: ``_fill_gaps`` takes a deleted conversation for one that is gone.
    """
    await say(client, code, "keep these words")
    one = await ModelCall.objects.aget()
    await one.adelete()
    os.utime(tmp_path / one.file, (timezone.now().timestamp() - 120,) * 2)
    await client.post(f"/c/{code}/delete/", headers=JSON)
    upkeep = wiring.log_upkeep()
    assert upkeep is not None
    await upkeep.round()
    assert "keep these words" in written(tmp_path)
    await client.post(f"/c/{code}/undelete/", headers=JSON)
    assert len((await asked(client))["calls"]) == 1
    await client.post(f"/c/{code}/delete/", headers=JSON)
    long_ago = timezone.now() - timedelta(hours=1)
    await Conversation.objects.filter(code=code).aupdate(deleted_at=long_ago)
    await upkeep.round()
    assert "keep these words" not in written(tmp_path)


@pytest.mark.storage
async def test_lines_without_a_row_are_indexed_later_and_old_ones_go(
    client: AsyncClient, code: str, tmp_path: Path
) -> None:
    """After a crash between the line and its row, or while the database was away.

    Breaks when: ``_fill_gaps`` begins after the last row of another file, or old rows stay.
    """
    await say(client, code, "first", "second")
    assert len((await asked(client))["calls"]) == 2
    newest = await ModelCall.objects.order_by("-at").afirst()
    assert newest is not None
    await newest.adelete()
    name = newest.file
    with (tmp_path / name).open("ab") as file:
        file.write(encoded({"call": str(uuid.uuid4()), "conversation": str(uuid.uuid4())}))
        file.write(b'{"call": "half')
    os.utime(tmp_path / name, (timezone.now().timestamp() - 120,) * 2)
    upkeep = wiring.log_upkeep()
    assert upkeep is not None
    await upkeep.round()
    again = await ModelCall.objects.aget(call=newest.call)
    assert (again.offset, again.length, again.owner_id) == (
        newest.offset,
        newest.length,
        newest.owner_id,
    )
    assert await ModelCall.objects.acount() == 2
    old = timezone.now() - timedelta(days=31)
    await ModelCall.objects.filter(pk=again.pk).aupdate(at=old)
    await DailyCalls.objects.aupdate(day=timezone.localdate() - timedelta(days=399))
    await upkeep.round()
    assert await ModelCall.objects.acount() == 1
    assert await DailyCalls.objects.acount() == 1


async def test_a_line_on_another_server_has_its_figures_only(
    client: AsyncClient, code: str
) -> None:
    await say(client, code, "first")
    await ModelCall.objects.aupdate(place="f" * 32)
    (one,) = (await asked(client))["calls"]
    page = (await client.get(f"/log/{one['call']}/")).content.decode()
    assert "not on this server" in page
    (line,) = await exported(client)
    assert (line["call"], line["request"], line["usage"]["input_tokens"]) == (
        one["call"],
        None,
        one["input_tokens"],
    )
