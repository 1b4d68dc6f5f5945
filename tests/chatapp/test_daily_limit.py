"""The daily limit: whatever calls a model for a person counts, and is refused past it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from chatapp import wiring
from chatapp.conversations.turns import spending
from chatapp.errors import DailyLimit
from chatapp.llm import activity_log
from chatapp.llm.client import ChatRequest
from chatapp.llm.errors import LLMError
from chatapp.llm.openai_compatible.client import OpenAIClient
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.models import Conversation, DailyUse, Message, ModelProfile, Turn
from chatapp.turns.metering import MeteredClient
from chatapp.turns.summarising import ModelCall
from compression.exceptions import SummarizerError
from compression.tokens import default_counter
from tests.chatapp.stage import until
from tests.fake_scripts import Cut, Finish, KeepAlive, Script, Text, Usage, Wait, failing
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, fresh_product, send, settle
from tests.reviewing import browser_of, page

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

AN_ID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    """So many tokens a day, unless a test says otherwise."""
    settings.DAILY_TOKENS_PER_USER = 1_000


def answer(prompt: int, completion: int) -> Script:
    return Script(steps=(Text("Yes."), Finish("stop"), Usage(prompt, completion)))


async def used(person: User) -> spending.Use:
    return await sync_to_async(spending.used_today)(person.pk)


async def use_up(person: User) -> None:
    today: dict[str, Any] = {"person": person, "day": timezone.localdate()}
    await DailyUse.objects.aupdate_or_create(**today, defaults={"tokens": 1_000})


async def test_r03_past_the_limit_nothing_is_sent(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User
) -> None:
    """R03: what was begun within it goes on; then a sentence says when the next day begins.

    Breaks when: a call is not counted, or a send not refused.
    """
    upstream.enqueue(answer(900, 99))
    upstream.enqueue(answer(900, 200))
    await send(chat_client, code)
    await settle()
    assert (await used(alice)).tokens == 999
    await send(chat_client, code, "And then?")
    await settle()
    assert (await used(alice)).tokens == 2_099
    fields = {"text": "More", "client_msg_id": AN_ID}
    refused = await chat_client.post(f"/c/{code}/messages/", fields, headers=JSON)
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert error["code"] == "daily_limit"
    assert "A new day begins at 00:00 UTC, in " in error["message"]
    assert datetime.fromisoformat(error["fields"]["ends_at"]) > timezone.now()
    as_card = await chat_client.post(f"/c/{code}/messages/", fields, headers=HTMX)
    assert "A new day begins at" in as_card.content.decode()
    assert len(upstream.chats) == 2
    row = await Conversation.objects.aget()
    assert row.next_seq == 5


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("regenerate/", {}),
        ("continue/", {"client_msg_id": AN_ID}),
        ("messages/1/edit/", {"text": "Otherwise"}),
        ("compact/", {}),
        (
            "branch/",
            {"seq": 2, "text": "x", "client_msg_id": AN_ID},
        ),
        ("/c/", {"text": "x", "client_msg_id": AN_ID}),
    ],
)
async def test_r03_nor_by_any_other_way(
    chat_client: AsyncClient,
    code: str,
    upstream: FakeUpstream,
    alice: User,
    path: str,
    fields: dict[str, Any],
) -> None:
    """R03: nothing is changed, and the model server hears nothing.

    Breaks when: one of the ways to a call does not ask.
    """
    await send(chat_client, code)
    await settle()
    await use_up(alice)
    before, calls = await Turn.objects.acount(), len(upstream.chats)
    address = path if path.startswith("/") else f"/c/{code}/{path}"
    refused = await chat_client.post(address, fields, headers=JSON)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "daily_limit")
    await settle()
    assert await Turn.objects.acount() == before
    assert await Conversation.objects.acount() == 1
    assert len(upstream.chats) == calls
    shown = (await chat_client.get(f"/c/{code}/", headers=JSON)).json()["messages"]
    assert shown[0]["text"] == "Hello"


async def test_what_waits_is_sent_the_next_day(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User
) -> None:
    """A queued message stays queued; one more is refused at once.

    Breaks when: the end of a turn sends what waits whatever was used.
    """
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("I"), Wait(gate), Finish("stop"), Usage(900, 200))))
    await send(chat_client, code)
    await send(chat_client, code, "After that")
    gate.set()
    await settle()
    row = await Conversation.objects.aget()
    assert (row.draft, row.send_when_done) == ("After that", True)
    await DailyUse.objects.aupdate(day=timezone.localdate() - timedelta(days=1))
    await wiring.runner().send_orphaned_queues()
    await settle()
    row = await Conversation.objects.aget()
    assert (row.draft, row.send_when_done) == ("", False)
    assert len(upstream.chats) == 2


async def test_nothing_is_queued_for_another_day(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User
) -> None:
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("I"), Wait(gate), Finish("stop"))))
    await send(chat_client, code)
    await use_up(alice)
    fields = {"text": "More", "client_msg_id": AN_ID}
    refused = await chat_client.post(f"/c/{code}/messages/", fields, headers=JSON)
    assert refused.json()["error"]["code"] == "daily_limit"
    gate.set()
    await settle()


async def test_r03_a_reply_that_was_stopped_counts(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User
) -> None:
    """R03: by the ruler, since nobody says what it took.

    Breaks when: only what the provider reports at the end is counted.
    """
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("word " * 100), Wait(gate), Finish("stop"))))
    await send(chat_client, code, "Tell me " * 50)
    await until(lambda: Message.objects.filter(seq=2, text__contains="word").exists())
    await chat_client.post(f"/c/{code}/stop/", headers=JSON)
    gate.set()
    await settle()
    assert 200 <= (await used(alice)).tokens < 600


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        (Script(steps=(KeepAlive(),)), True),
        (Script(steps=(Cut(),)), True),
        (failing(400, "No."), False),
        (failing(503, "Later."), False),
    ],
    ids=["silent", "cut", "refused", "busy"],
)
async def test_r03_a_call_without_a_word_counts_if_the_server_was_at_work(
    code: str, upstream: FakeUpstream, alice: User, script: Script, counts: bool
) -> None:
    """R03: a model that thinks unseen is paid for, whether or not we wait for its end.

    Breaks when: a call that ended before its first word is taken for one that was refused.
    """
    for _ in range(3):
        upstream.enqueue(script)
    client = OpenAIClient(
        base_url=upstream.base_url, api_key="a-key", limits=Limits(first_token=0.2)
    )
    metered = MeteredClient(client, default_counter(), lambda model, usage: None)
    request = ChatRequest(model="m", messages=({"role": "user", "content": "word " * 50},))
    conversation = await Conversation.objects.aget()
    with activity_log.about(conversation=conversation.pk), pytest.raises(LLMError):
        await metered.complete(request)
    await metered.aclose()
    assert ((await used(alice)).tokens > 0) == counts


async def test_r03_a_long_summary_ends_at_the_limit(
    code: str, upstream: FakeUpstream, alice: User
) -> None:
    """R03: each of its calls asks, since many conversations may be compacted at once.

    Breaks when: forty calls are made for each of them because nothing was used when they began.
    """
    services = wiring.services()
    call = ModelCall(client=services.client, profile=await services.catalogue.profile(""))
    question: Any = {"system": "", "user": "x", "schema": None, "max_tokens": 9}

    async def on_tokens(tokens: int) -> None:
        return

    conversation = await Conversation.objects.aget()
    upstream.enqueue(answer(900, 200))
    with activity_log.about(conversation=conversation.pk):
        assert (await call(**question, on_tokens=on_tokens)).text == "Yes."
        with pytest.raises(SummarizerError, match="your limit for today") as caught:
            await call(**question, on_tokens=on_tokens)
    assert not caught.value.transient
    assert len(upstream.chats) == 1


async def test_titles_and_preparation_are_left_out_quietly(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User, settings: Any
) -> None:
    """Breaks when: the model is asked for a title past the limit."""
    settings.AUTOMATIC_TITLES = True
    async with fresh_product():
        upstream.enqueue(answer(900, 200))
        await send(chat_client, code)
        await settle()
        assert len(upstream.chats) == 1
        assert (await Conversation.objects.aget()).title == "Hello"


async def test_money_is_limited_too(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User, settings: Any
) -> None:
    """Breaks when: the cost of a call is not added up, or not asked for."""
    settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER = 0, 0.01
    upstream.enqueue(answer(4_000, 1_000))
    await send(chat_client, code)
    await settle()
    sources = {"input_price": "operator", "output_price": "operator"}
    await ModelProfile.objects.aupdate(input_price=2, output_price=8, sources=sources)
    async with fresh_product():
        upstream.enqueue(answer(4_000, 1_000))
        await send(chat_client, code, "Again")
        await settle()
        assert (await used(alice)).cost == Decimal("0.016")
        fields = {"text": "More", "client_msg_id": AN_ID}
        refused = await chat_client.post(f"/c/{code}/messages/", fields, headers=JSON)
        assert refused.status_code == 429


async def test_without_a_limit_nothing_is_counted(
    chat_client: AsyncClient, code: str, upstream: FakeUpstream, alice: User, settings: Any
) -> None:
    settings.DAILY_TOKENS_PER_USER = 0
    upstream.enqueue(answer(900, 200))
    await send(chat_client, code)
    await settle()
    assert not await DailyUse.objects.aexists()


def test_each_person_and_each_day_has_its_own(alice: User, bob: User) -> None:
    yesterday = timezone.localdate() - timedelta(days=1)
    DailyUse.objects.create(person=alice, day=yesterday, tokens=5_000)
    spending.require_within_limit(alice.pk)
    DailyUse.objects.create(person=bob, day=timezone.localdate(), tokens=1_000)
    spending.require_within_limit(alice.pk)
    with pytest.raises(DailyLimit):
        spending.require_within_limit(bob.pk)


def test_the_day_is_that_of_the_servers_time_zone(
    alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: the day is UTC's, whatever TIME_ZONE says."""
    settings.TIME_ZONE = "Pacific/Auckland"
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 6, 1, 13, 30, tzinfo=UTC))
    DailyUse.objects.create(person=alice, day="2026-06-02", tokens=1_000)
    with pytest.raises(DailyLimit, match="00:00 NZST, in 22 h 30 min"):
        spending.require_within_limit(alice.pk)


def test_the_admin_shows_it(alice: User, settings: Any) -> None:
    root = browser_of(User.objects.create_superuser("root"))
    DailyUse.objects.create(person=alice, day=timezone.localdate(), tokens=1_234, cost="0.5")
    for path in ("/admin/auth/user/", f"/admin/auth/user/{alice.pk}/change/"):
        settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER = 0, 0.0
        assert "1,234" not in page(root, path)
        settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER = 50_000, 2.5
        assert "1,234 of 50,000 tokens, $0.50 of $2.50" in page(root, path)
