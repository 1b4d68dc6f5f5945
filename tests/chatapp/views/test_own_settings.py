"""What a person sets for all their conversations and for one, and what a model then gets of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.context.instructions import OWN_HEAD
from chatapp.models import Conversation, Turn
from tests.chatapp.views.test_transfer import body, upload
from tests.fake_scripts import Script, failing, saying
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, new_conversation, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


async def said(client: AsyncClient, code: str, text: str = "Hello") -> dict[str, Any]:
    """Send a message and wait for the end of its turn; its manifest."""
    turn = (await send(client, code, text))["turn"]
    await settle()
    manifest = (await Turn.objects.aget(pk=turn)).manifest
    assert isinstance(manifest, dict)
    return manifest


async def change(client: AsyncClient, code: str, **fields: Any) -> Any:
    answer = await client.post(f"/c/{code}/settings/", fields, headers=JSON)
    return answer.status_code, answer.json()


async def test_own_instructions_reach_the_next_request_and_no_other(
    client: AsyncClient, code: str, upstream: FakeUpstream, bob: User
) -> None:
    """They are counted, shown as what they are, and nobody else's requests have them.

    Breaks when: the snapshot of a request is read without them, or from another person's row.
    """
    plain = await said(client, code)
    assert plain["own_instructions"] == 0
    answer = await client.post("/settings/", {"instructions": "Be brief.\r\n"}, headers=JSON)
    assert answer.json() == {"instructions": "Be brief."}
    told = await said(client, code)
    system = upstream.chats[-1].json["messages"][0]["content"]
    assert f"\n\n{OWN_HEAD}\nBe brief." in system
    grown = told["tokens"]["system"] - plain["tokens"]["system"]
    assert 0 <= grown - told["own_instructions"] <= 2, "but for the line between the two"
    parts = (await client.get(f"/c/{code}/context/", headers=JSON)).json()["parts"]
    shown = [(one["origin"], one["text"].endswith("Be brief.")) for one in parts[0]["messages"]]
    assert shown == [("chat", False), ("own", True)]
    assert sum(one["tokens"] for one in parts[0]["messages"]) == parts[0]["tokens"]
    assert parts[0]["messages"][1]["tokens"] == told["own_instructions"]
    page = (await client.get("/settings/")).content.decode()
    assert f"They take {told['own_instructions']} tokens of each request." in page
    drawer = (await client.get(f"/c/{code}/context/", headers=HTMX)).content.decode()
    assert "Yours, for all conversations" in drawer
    theirs = await signed_in(bob)
    await said(theirs, await new_conversation(theirs))
    assert "Be brief." not in upstream.chats[-1].json["messages"][0]["content"]
    await client.post("/settings/", {"instructions": ""}, headers=JSON)
    await said(client, code)
    assert OWN_HEAD not in upstream.chats[-1].json["messages"][0]["content"]


async def test_options_go_along_with_requests(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """Breaks when: an option is stored and not sent, or the manifest does not say what was sent."""
    status, changed = await change(
        client, code, temperature="0", reasoning_effort="low", answer_tokens="100"
    )
    chosen = {"temperature": 0.0, "reasoning_effort": "low", "answer_tokens": 100}
    assert (status, changed) == (200, chosen)
    manifest = await said(client, code)
    sent = upstream.chats[-1].json
    options = {"temperature": 0.0, "reasoning_effort": "low", "max_tokens": 100}
    assert {name: sent[name] for name in options} == options
    assert (manifest["options"], manifest["not_taken"]) == (options, [])
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    assert {name: page["conversation"][name] for name in chosen} == chosen
    await change(client, code, temperature="", reasoning_effort="", answer_tokens="")
    manifest = await said(client, code)
    assert not {"temperature", "reasoning_effort"} & set(upstream.chats[-1].json)
    assert set(manifest["options"]) == {"max_tokens"}


def takes_none(request: dict[str, Any]) -> Script:
    for name in ("temperature", "reasoning_effort"):
        if name in request:
            return failing(400, f"Unsupported parameter: '{name}' is not supported.")
    return saying("Fine.")


async def test_what_the_model_refuses_is_sent_once(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """The reply comes all the same, its manifest says what was not taken, and it is remembered.

    Breaks when: ``TAUGHT`` leaves the lesson out, or the manifest is that of the first attempt.
    """
    upstream.handler = takes_none
    await change(client, code, temperature="0.2", reasoning_effort="high")
    manifest = await said(client, code)
    assert len(upstream.chats) == 3
    assert manifest["not_taken"] == ["temperature", "reasoning_effort"]
    assert set(manifest["options"]) == {"max_tokens"}
    turn = await Turn.objects.alatest("pk")
    assert turn.status == "complete"
    shown = await client.get(f"/c/{code}/turns/{turn.pk}/", headers=HTMX)
    assert (
        "This model does not take the temperature and the reasoning effort."
        in shown.content.decode()
    )
    before = len(upstream.chats)
    assert (await said(client, code))["not_taken"] == ["temperature", "reasoning_effort"]
    assert len(upstream.chats) == before + 1, "it is not sent a second time"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("temperature", "2.1", "This must be a number from 0 to 2."),
        ("temperature", "nan", "This must be a number from 0 to 2."),
        ("temperature", "warm", "This must be a number from 0 to 2."),
        ("reasoning_effort", "huge", "Choose one of: low, medium, high."),
        ("answer_tokens", "15", "This must be a whole number from 16 to 1,000,000."),
        ("answer_tokens", "1e9", "This must be a whole number."),
        ("compression", "x", "Choose one of: balanced, verbatim, early, by_hand, own."),
    ],
)
async def test_impossible_settings_are_refused_in_a_sentence(
    client: AsyncClient, code: str, field: str, value: str, sentence: str
) -> None:
    status, answer = await change(client, code, **{field: value})
    assert (status, answer["error"]["fields"]) == (422, {field: sentence})


async def test_own_instructions_are_bounded(client: AsyncClient) -> None:
    """Breaks when: one person's instructions fill every window."""
    long = await client.post("/settings/", {"instructions": "x" * 6_001}, headers=JSON)
    assert long.status_code == 422
    assert set(long.json()["error"]["fields"]) == {"instructions"}


async def test_compression_is_set_in_a_word(client: AsyncClient, code: str) -> None:
    """Breaks when: a preset has priority over the figures that are given with it."""
    _, early = await change(client, code, compression="early")
    assert early == {"threshold": 0.6, "keep_turns": None, "compression_off": False}
    _, both = await change(client, code, compression="early", threshold="0.7")
    assert both["threshold"] == 0.7
    _, percent = await change(client, code, threshold_percent="62.5")
    assert percent["threshold"] == 0.625
    page = (await client.get(f"/c/{code}/")).content.decode()
    assert 'value="62.5"' in page
    await change(client, code, threshold="0.7")
    await change(client, code, compression="by_hand")
    row = await Conversation.objects.aget()
    assert (row.compression_off, row.threshold) == (True, 0.7)
    page = (await client.get(f"/c/{code}/")).content.decode()
    assert 'value="by_hand" checked' in page
    await change(client, code, compression="balanced")
    row = await Conversation.objects.aget()
    assert (row.compression_off, row.threshold, row.keep_turns) == (False, None, None)


async def test_options_come_back_with_an_export(client: AsyncClient, code: str, bob: User) -> None:
    """A file is not believed: what no form would take is left to the model.

    Breaks when: an option is missing in the export, or an import takes any value.
    """
    await said(client, code)
    await change(client, code, temperature="0.5", reasoning_effort="high", answer_tokens="500")
    exported = await client.get(f"/c/{code}/export/", {"format": "json"}, headers=JSON)
    file = json.loads(await body(exported))
    theirs = await signed_in(bob)
    wrong = {"temperature": True, "reasoning_effort": ["high"], "answer_tokens": 10**30}
    changed = {**file, "conversation": {**file["conversation"], **wrong, "code": "another"}}
    for value in (file, changed):
        assert (await theirs.post("/import/", upload(value), headers=JSON)).status_code == 201
    found = [
        (row.temperature, row.reasoning_effort, row.answer_tokens)
        async for row in Conversation.objects.filter(owner=bob).order_by("pk")
    ]
    assert found == [(0.5, "high", 500), (None, None, None)]


async def test_a_branch_keeps_the_options(client: AsyncClient, code: str) -> None:
    await said(client, code)
    await change(client, code, temperature="0.5", reasoning_effort="high", answer_tokens="500")
    made = (await client.post(f"/c/{code}/branch/", {"seq": 2}, headers=JSON)).json()["code"]
    row = await Conversation.objects.aget(code=made)
    assert (row.temperature, row.reasoning_effort, row.answer_tokens) == (0.5, "high", 500)
