"""A reviewer's changes of a summary, as those see them who have the conversation open."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.consumers import following
from chatapp.models import Conversation, Summary
from tests.chatapp.stage import stored
from tests.chatapp.turns.test_turn import fill
from tests.chatapp.viewing import Screen
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, signed_in
from tests.reviewing import review_path, staff, summarise, summary_path

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.elsewhere,
]

NEW_TEXT = "## Decisions\n\n- Use tabs everywhere\n"


@pytest.fixture
async def summary(code: str, pk: int) -> Summary:
    """Version 2 of the summary of alice's conversation, which version 1 came before."""
    await stored(lambda: fill(code, 4))

    def made() -> Summary:
        summarise(Conversation.objects.get(pk=pk), "Use spaces")
        return summarise(Conversation.objects.get(pk=pk), "Use spaces", "Ship it", through_seq=4)

    return await stored(made)


@pytest.fixture
async def reviewer(summary: Summary) -> AsyncClient:
    """The browser of somebody who may change summaries, and is not alice."""
    return await signed_in(await stored(lambda: staff("rita", "view_summary", "change_summary")))


@pytest.mark.parametrize("action", ["edit", "undo", "restore"])
async def test_a_change_in_the_admin_is_on_open_pages_at_once(
    reviewer: AsyncClient,
    screen: Screen,
    summary: Summary,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
) -> None:
    """Over the bus, with no look near.

    Breaks when: the admin writes into the store itself, so that pages only find it when they look.
    """
    monkeypatch.setattr(following, "LOOK_IDLE", 1000.0)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    page = summary
    if action == "restore":
        page = await Summary.objects.aget(conversation=summary.conversation_id, version=1)
    form = {"action": action, "version": "2", "text": NEW_TEXT}
    assert (await reviewer.post(summary_path(page), form)).status_code == 302
    changed = (await screen.until("summary-changed"))[-1]
    assert changed["version"] == 3
    shown = changed["compression"]["summary"]
    assert ("Use tabs everywhere" in shown, "Ship it" in shown) == (action == "edit", False)
    await screen.equals_a_fresh_load()


async def test_a_line_changed_in_the_review_is_on_open_pages_at_once(
    reviewer: AsyncClient, screen: Screen, summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: the review writes into the store itself."""
    monkeypatch.setattr(following, "LOOK_IDLE", 1000.0)
    await screen.disconnect()
    await screen.connect()
    await screen.until("state")
    form = {"action": "line", "act": "rewrite", "line": "e1", "text": "Use tabs", "version": "2"}
    assert (await reviewer.post(review_path(summary), form)).status_code == 302
    changed = (await screen.until("summary-changed"))[-1]
    assert "Use tabs" in changed["compression"]["summary"]
    await screen.equals_a_fresh_load()


async def test_only_the_owners_models_write_anew(
    reviewer: AsyncClient, summary: Summary, upstream: FakeUpstream
) -> None:
    """The messages go to no server that their owner could not have chosen.

    Breaks when: the model that a form names is not one of the owner's.
    """
    await wiring.services().catalogue.ask()
    before, calls = await Summary.objects.acount(), len(upstream.chats)
    form = {"action": "again", "version": "2", "model": "another-model"}
    refused = await reviewer.post(review_path(summary), form)
    assert refused.status_code == 422
    assert "Choose one of the models" in html.unescape(refused.content.decode())
    outdated = await reviewer.post(
        review_path(summary), {**form, "version": "1", "model": "fake-model"}
    )
    assert outdated.status_code == 409
    assert await Summary.objects.acount() == before
    assert len(upstream.chats) == calls


async def test_an_edit_is_limited_as_on_the_page(
    reviewer: AsyncClient, chat_client: AsyncClient, code: str, summary: Summary
) -> None:
    """Breaks when: the admin reckons with another window than the page, or with none."""
    long = "## Decisions\n\n" + "- Use tabs everywhere, and everywhere again.\n" * 400
    form: dict[str, Any] = {"text": long, "version": "2"}
    refused = await chat_client.post(f"/c/{code}/summary/edit/", form, headers=JSON)
    assert refused.status_code == 422
    error = refused.json()["error"]
    assert error["code"] == "summary_invalid"
    assert error["fields"]["limit"] < 2 * 1500, "the window is what limits it"
    page = await reviewer.post(summary_path(summary), {"action": "edit", **form})
    assert page.status_code == 422
    assert error["message"] in html.unescape(page.content.decode())


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (("summary/undo", "summary/undo"), "the summary removed"),
        (("clear", "summary/undo"), "the new start undone"),
    ],
)
async def test_what_was_taken_back_is_listed(
    chat_client: AsyncClient, code: str, summary: Summary, done: tuple[str, ...], said: str
) -> None:
    """In the list, the review, the facts and the conversation, as in the chat.

    Breaks when: the admin's words for a version need what only the chat's list of versions has.
    """
    if said == "the new start undone":
        await Summary.objects.filter(conversation=summary.conversation_id).adelete()
        await Conversation.objects.filter(pk=summary.conversation_id).aupdate(
            compressed_context="", compressed_through=0, compression_version=0
        )
    for act in done:
        assert (await chat_client.post(f"/c/{code}/{act}/", headers=JSON)).status_code == 200
    last = await Summary.objects.filter(conversation=summary.conversation_id).alatest("version")
    assert last.restored_from == 0
    boss = await signed_in(await stored(lambda: User.objects.create_superuser("boss")))
    listed = review_path(last).rpartition(f"{last.pk}/")[0]
    about = f"/admin/chatapp/conversation/{last.conversation_id}/change/"
    for path in (listed, review_path(last), summary_path(last), about):
        page = await boss.get(path)
        assert page.status_code == 200, path
        assert said in page.content.decode(), path
