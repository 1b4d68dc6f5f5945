"""Summaries by a server of their own: its key, and what happens when it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.models import Conversation, ModelProfile, Summary
from compression.summarizers.prompt_files import COMPACT, packaged
from tests.chatapp.activity.log_lines import lines_of
from tests.fake_scripts import Delay, Json, Script, default_answer, failing, is_summary_request
from tests.fake_upstream import FakeUpstream, Recorded
from tests.inprocess import JSON, fresh_product, new_conversation, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always keep in mind that the harbour of Malmö opens at nine and closes at five. " * 25
SMALL = ({"id": "small-model", "object": "model", "max_model_len": 16384},)


@pytest.fixture
async def summaries(settings: Any) -> AsyncIterator[FakeUpstream]:
    """The second server."""
    async with FakeUpstream(models=SMALL) as fake:
        settings.SUMMARY_BASE_URL, settings.SUMMARY_API_KEY = fake.base_url, "key-for-summaries"
        settings.SUMMARY_MODEL = "small-model"
        yield fake


@pytest.fixture
async def chat(
    settings: Any, transactional_db: None, summaries: FakeUpstream
) -> AsyncIterator[FakeUpstream]:
    """The chat's own server; the product begins once both are there."""
    async with FakeUpstream() as fake:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = fake.base_url, "key-of-the-chat"
        async with fresh_product():
            yield fake
            await settle()


async def compressed(alice: User) -> Summary:
    """The summary of a new conversation of alice's."""
    client: AsyncClient = await signed_in(alice)
    code = await new_conversation(client)
    for number in range(5):
        await send(client, code, f"Question {number}. {WORDS}")
        await settle()
    answer = await client.post(f"/c/{code}/compact/", headers=JSON)
    assert answer.status_code == 202, answer.content
    await settle()
    row = await Conversation.objects.aget(code=code)
    return await Summary.objects.aget(conversation=row, version=row.compression_version)


def of_summaries(server: FakeUpstream) -> list[Recorded]:
    return [one for one in server.chats if is_summary_request(one.json)]


async def test_it_writes_the_summaries_with_its_own_key_and_prompt(
    chat: FakeUpstream, summaries: FakeUpstream, alice: User, settings: Any, tmp_path: Path
) -> None:
    """Nothing else is asked there; its model's window is its own, and so is the prompt's version.

    Breaks when: the chat's key is used for want of another, or the packaged prompt is sent.
    """
    text = packaged().text.replace("You keep", "You faithfully keep")
    (tmp_path / COMPACT).write_text(f"---\nname: Mine\ndescription: d\n---\n{text}")
    settings.COMPRESSION = {**settings.COMPRESSION, "PROMPTS_DIR": str(tmp_path)}
    await wiring.services().catalogue.others.await_list("summaries")
    made = await compressed(alice)
    assert made.model == "small-model"
    assert made.prompt_version not in {"", packaged().version}
    assert not of_summaries(chat)
    assert len(summaries.chats) == len(of_summaries(summaries)) > 0
    for one in summaries.requests:
        assert one.headers["authorization"] == "Bearer key-for-summaries"
    for one in chat.requests:
        assert one.headers["authorization"] == "Bearer key-of-the-chat"
    asked = summaries.chats[0].json
    assert asked["model"] == "small-model"
    assert asked["messages"][0]["content"] == text
    profile = await ModelProfile.objects.aget(name="small-model @ summaries")
    assert profile.window == 16384
    # The chat's own list has neither it nor its name.
    assert await wiring.services().catalogue.names() == ["fake-model"]


async def test_its_model_is_called_as_the_chats_if_nothing_else_is_said(
    chat: FakeUpstream, summaries: FakeUpstream, alice: User, settings: Any, tmp_path: Path
) -> None:
    """And the log has its calls as those of its server, for summaries.

    Breaks when: the default of ``SUMMARY_MODEL`` holds for the chat's server only, or the log names
    the model as if it were the chat's own.
    """
    settings.SUMMARY_MODEL, settings.CHAT_MODEL = "", "fake-model"
    settings.ACTIVITY_LOG_DIR = str(tmp_path)
    async with fresh_product():
        made = await compressed(alice)
    assert made.model == "fake-model"
    assert summaries.chats[0].json["model"] == "fake-model"
    lines = lines_of(tmp_path)
    told = {(one["kind"], one["model"]) for one in lines}
    assert told == {("chat", "fake-model"), ("summary", "fake-model @ summaries")}
    assert len(lines) == len(chat.chats) + len(summaries.chats)


@pytest.mark.parametrize("fault", ["down", "slow", "wrong key", "no key"])
async def test_c_the_ladder_holds_when_it_fails(
    chat: FakeUpstream,
    summaries: FakeUpstream,
    alice: User,
    settings: Any,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chat's model writes the summary then, on the chat's server, with the chat's key.

    Breaks when: the second rung of the ladder goes to the server of the first.
    """
    if fault == "down":
        await summaries.stop()
    elif fault == "slow":
        await _impatient(monkeypatch)
        summaries.handler = lambda _: Script(steps=(Delay(60),))
    else:
        settings.SUMMARY_API_KEY = "" if fault == "no key" else "wrong"
        summaries.handler = lambda _: failing(401, "Incorrect API key provided")
    made = await compressed(alice)
    assert (made.model, made.degraded) == ("fake-model", False)
    assert of_summaries(chat)
    if fault == "no key":
        assert all("authorization" not in one.headers for one in summaries.requests)
    failed = await Summary.objects.aget(status="failed")
    assert failed.model == "small-model @ summaries"
    assert "OPENAI" not in failed.reason


async def test_c_the_extract_comes_last(
    chat: FakeUpstream, summaries: FakeUpstream, alice: User
) -> None:
    """With both servers refusing, a person who asked gets an extract, and nothing is lost."""
    await summaries.stop()

    def answer(request: Json) -> Script:
        return failing(401) if is_summary_request(request) else default_answer(request)

    chat.handler = answer
    made = await compressed(alice)
    assert made.degraded


async def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client for summaries waits no longer than a second for the first token."""
    from chatapp.llm.openai_compatible import client
    from chatapp.llm.openai_compatible.limits import Limits

    monkeypatch.setattr(client, "Limits", lambda: Limits(first_token=1.0, attempts=1))
