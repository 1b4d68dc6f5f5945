"""The first message of a conversation, or of a branch: it is taken, or refused whole."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import AsyncClient

from chatapp import wiring
from chatapp.models import Conversation, Message
from tests.fake_scripts import Finish, Script, Text, Wait
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle

pytestmark = pytest.mark.django_db(transaction=True)

GIANT = "word & <word> " * 10_000


def form(text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"text": text, "client_msg_id": str(uuid4()), **more}


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "too large": (form(GIANT), 413, "room for"),
    "instructions too large": (form(system_prompt="a b " * 5_000), 413, "Shorten the instructions"),
    "too long": (form("x" * 200_001), 422, "at most 200,000"),
    "empty": (form(""), 422, "The message is empty"),
    "blank": (form(" \r\n\u200b"), 422, "The message is empty"),
    "no identifier": (form(client_msg_id="x"), 422, "needs a client_msg_id"),
    "a model's name too long": (form(model="m" * 201), 422, "at most 200"),
    "another's project": (form(project="theirs"), 404, "not yours"),
}


def texts(page: str) -> dict[str, str]:
    """What each text box of the page holds, by its name."""
    found = re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    return {name: unescape(text) for name, text in found}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_first_message_that_is_refused_stays_in_its_box(
    client: AsyncClient, upstream: FakeUpstream, name: str
) -> None:
    """Without JavaScript: the page once more, with the sentence, and with what was written.

    Breaks when: the plain form is answered by a page of errors, or a conversation is left.
    """
    fields, status, sentence = REFUSED[name]
    fields = {"system_prompt": "In rhyme.", **fields}
    answer = await client.post("/c/", fields)
    page = answer.content.decode()
    assert answer.status_code == status
    assert sentence in re.findall(r'<div class="card" role="alert".*?</p>', page)[0]
    written = {one: fields[one] for one in ("text", "system_prompt")}
    assert texts(page) == written
    assert not await Conversation.objects.aexists()
    for headers in (JSON, HTMX):
        answer = await client.post("/c/", fields, headers=headers)
        assert answer.status_code == status
        assert "<html" not in answer.content.decode()
    assert upstream.chats == []
    # What the page holds now can be sent as it is, once it is made fit.
    identifier = re.findall(r'name="client_msg_id" value="([^"]+)"', page)[0]
    fit = {"text": "Hello", "system_prompt": "In rhyme.", "client_msg_id": identifier}
    assert (await client.post("/c/", fit)).status_code == 302


async def test_too_many_replies_at_once_leave_no_conversation(
    client: AsyncClient, code: str, upstream: FakeUpstream, settings: Any
) -> None:
    """Breaks when: the conversation is stored before the room for its turn is asked for."""
    settings.REPLIES_PER_USER = 1
    gate = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("I begin"), Wait(gate), Finish("stop"))))
    await send(client, code)
    answer = await client.post("/c/", form("And this"))
    assert answer.status_code == 429
    assert texts(answer.content.decode())["text"] == "And this"
    assert await Conversation.objects.acount() == 1
    gate.set()
    await settle()


@pytest.mark.parametrize("chosen", ["large", "small", "none"])
async def test_the_model_that_was_chosen_is_chosen_still(
    client: AsyncClient, upstream: FakeUpstream, chosen: str
) -> None:
    """Breaks when: the page chooses the default again, or a model that is not there."""
    upstream.models = ({"id": "large"}, {"id": "small"})
    await wiring.services().catalogue.warm()
    page = (await client.post("/c/", form(GIANT, model=chosen))).content.decode()
    options = {name: more for more, name in re.findall(r"<option([^>]*)>([^<]*)<", page)}
    assert set(options) == {"large", "small"}
    selected = [name for name, attributes in options.items() if "selected" in attributes]
    assert selected == ["small" if chosen == "small" else "large"]


async def test_a_branch_goes_on_with_its_message(client: AsyncClient, code: str) -> None:
    """Breaks when: the text is not sent, or a repeated one makes another branch."""
    await send(client, code)
    await settle()
    fields = {"seq": 2, **form("Otherwise")}
    codes = set()
    for _ in range(2):
        answer = await client.post(f"/c/{code}/branch/", fields, headers=JSON)
        assert answer.status_code == 201
        codes.add(answer.json()["code"])
    (made,) = codes
    await settle()
    page = (await client.get(f"/c/{made}/", headers=JSON)).json()
    assert page["origin"]["code"] == code
    assert [one["text"] for one in page["messages"]][2] == "Otherwise"
    assert len(page["messages"]) == 4


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (form(GIANT), 413),
        (form(""), 422),
        (form(client_msg_id="x"), 422),
        (form() | {"seq": 9}, 404),
        (form() | {"seq": "x"}, 422),
    ],
)
async def test_a_branch_whose_message_is_refused_is_not_made(
    client: AsyncClient, code: str, fields: dict[str, Any], status: int
) -> None:
    """Breaks when: the branch is stored before its message is looked at."""
    await send(client, code)
    await settle()
    answer = await client.post(f"/c/{code}/branch/", {"seq": 2, **fields}, headers=JSON)
    assert answer.status_code == status
    assert await Conversation.objects.acount() == 1
    assert await Message.objects.acount() == 2
