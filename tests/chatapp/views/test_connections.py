"""The page of connections: who may do what, and what becomes of conversations with their models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.core import serializers
from django.core.files.base import ContentFile
from django.test import AsyncClient
from django.utils.html import strip_tags

from chatapp.models import AccessRecord, Connection, Conversation, Message, Turn
from chatapp.tools.sealing import unseal
from tests.chatapp.actions.test_import_jobs import ended
from tests.chatapp.activity.log_lines import lines_of
from tests.chatapp.views.test_routes import CONNECTIONS, FORMATS, ask
from tests.fake_scripts import Finish, Script, Text, Wait, failing, saying
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, fresh_product, new_conversation, send, settle, signed_in

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

MODELS = (
    {"id": "qwen3:8b", "object": "model", "max_model_len": 16384},
    {"id": "<b>small</b>", "object": "model"},
)
KEY = "sk-of-the-study"


@pytest.fixture
async def study() -> AsyncIterator[FakeUpstream]:
    """Another model server, on this computer."""
    async with FakeUpstream(models=MODELS) as fake:
        yield fake


@pytest.fixture
async def own(owner: User, upstream: FakeUpstream) -> AsyncClient:
    """The owner's browser."""
    return await signed_in(owner)


def fields(study: FakeUpstream, **changes: Any) -> dict[str, Any]:
    return {
        "name": "study",
        "address": study.base_url,
        "key": KEY,
        "private_addresses": "true",
    } | changes


async def connected(own: AsyncClient, study: FakeUpstream, **changes: Any) -> int:
    answer = await own.post("/connections/", fields(study, **changes), headers=JSON)
    assert answer.status_code == 201, answer.content
    return int(answer.json()["id"])


async def last_reply() -> Message:
    return await Message.objects.filter(role="assistant").order_by("-pk").afirst()  # type: ignore[return-value]


async def names(client: AsyncClient) -> list[str]:
    told = (await client.get("/models/", headers=JSON)).json()
    return [one["name"] for one in told["models"]]


async def test_it_works(
    own: AsyncClient, study: FakeUpstream, upstream: FakeUpstream, chat_client: AsyncClient
) -> None:
    """Connected, chosen, asked with its own key; offered to nobody else until that is said.

    Breaks when: the key is stored as it is or shown, or sent with the chat's requests; or a person
    is offered what is another's.
    """
    number = await connected(own, study)
    row = await Connection.objects.aget()
    assert KEY not in row.sealed_key
    assert unseal(row.sealed_key) == KEY
    for headers in FORMATS.values():
        shown = (await own.get("/connections/", headers=headers)).content.decode()
        assert KEY not in shown
        assert "<b>small</b>" not in shown or headers == JSON
    words = strip_tags((await own.get("/connections/")).content.decode())
    assert "Otherwise to 1 person, chosen" in words
    assert "in its network For Ollama" in words
    told = (await own.get("/models/", headers=JSON)).json()["models"]
    windows = {one["name"]: one["window"] for one in told}
    assert windows["qwen3:8b @ study"] == 16384
    assert list(windows) == ["fake-model", "qwen3:8b @ study", "<b>small</b> @ study"]
    code = await new_conversation(own, model="qwen3:8b @ study")
    await send(own, code)
    await settle()
    assert (await last_reply()).status == "complete"
    assert study.chats[0].json["model"] == "qwen3:8b"
    assert study.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert not upstream.chats
    assert await names(chat_client) == ["fake-model"]
    offered = {"offered": "qwen3:8b", "everyone": "true", "enabled": "true"}
    answer = await own.post(f"/connections/{number}/change/", offered, headers=JSON)
    assert answer.status_code == 200
    assert await names(chat_client) == ["fake-model", "qwen3:8b @ study"]
    acts = [one.what async for one in AccessRecord.objects.order_by("pk")]
    assert acts[0] == "connection: Added."
    assert len(acts) == 2


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("change", "Saved."),
        ("look", "The server was asked again."),
        ("key", "The key was changed."),
        ("delete", "The connection and its key are deleted."),
    ],
)
async def test_a_plain_form_is_told_what_was_done(
    own: AsyncClient, study: FakeUpstream, command: str, said: str
) -> None:
    """Breaks when: the page looks the same after a form as before it."""
    number = await connected(own, study)
    assert said not in (await own.get("/connections/")).content.decode()
    form = {"model": "qwen3:8b", "enabled": "true", "key": "another-key"}
    answer = await own.post(f"/connections/{number}/{command}/", form, follow=True)
    assert said in answer.content.decode()


async def test_a05_nobody_is_answered_by_a_model_that_they_are_not_offered(
    own: AsyncClient, study: FakeUpstream, upstream: FakeUpstream, chat_client: AsyncClient
) -> None:
    """Not by naming it, not after it was taken back, and never by another server instead.

    Breaks when: ``offering.access`` leaves the person out, or a missing connection's request goes
    to the chat's own server.
    """
    number = await connected(own, study)
    code = await new_conversation(chat_client, model="qwen3:8b @ study")
    owns = await new_conversation(own, model="qwen3:8b @ study")

    async def refused(client: AsyncClient, code: str) -> None:
        asked = len(study.chats)
        await send(client, code)
        await settle()
        assert (await Turn.objects.alatest("pk")).error_code == "llm_model_unknown"
        assert len(study.chats) == asked
        assert not upstream.chats

    await refused(chat_client, code)
    for change in (
        {"offered": "<b>small</b>", "enabled": "true"},
        {"offered": "qwen3:8b", "enabled": "false"},
    ):
        await own.post(f"/connections/{number}/change/", change, headers=JSON)
        await refused(own, owns)
    await own.post(f"/connections/{number}/delete/", headers=JSON)
    await refused(own, owns)


async def test_i29_the_log_has_the_calls_of_connections_and_not_their_keys(
    own: AsyncClient, study: FakeUpstream, settings: Any, tmp_path: Path
) -> None:
    """I29: one line for each request that went out, under the name of its model here.

    Breaks when: a request that no connection takes leaves a line, the error of a line speaks of the
    chat's own key, or only the keys of the settings are redacted.
    """
    settings.ACTIVITY_LOG_DIR = str(tmp_path)
    # No form of keys that is known.
    key = "the password of my study"
    async with fresh_product():
        number = await connected(own, study, key=key)
        code = await new_conversation(own, model="qwen3:8b @ study")
        study.enqueue(saying(f"You sent me {key}."), failing(401, "no"))
        for change in ("none", "none", "delete"):
            if change == "delete":
                await own.post(f"/connections/{number}/delete/", headers=JSON)
            await send(own, code)
            await settle()
        answered, refused = lines_of(tmp_path)
    assert len(study.chats) == 2
    assert {one["model"] for one in (answered, refused)} == {"qwen3:8b @ study"}
    assert answered["request"] == study.chats[0].json
    assert answered["response"]["text"] == "You sent me [redacted]."
    assert "the key of “study”" in refused["error"]["message"]
    assert key not in str((answered, refused))


@pytest.mark.parametrize("change", ["delete", "key"])
async def test_a_reply_ends_as_it_began(own: AsyncClient, study: FakeUpstream, change: str) -> None:
    """Whatever becomes of its connection meanwhile.

    Breaks when: a changed connection's client is closed under a reply.
    """
    number = await connected(own, study)
    go = asyncio.Event()
    study.enqueue(Script(steps=(Text("Half "), Wait(go), Text("and half."), Finish())))
    code = await new_conversation(own, model="qwen3:8b @ study")
    await send(own, code)
    await study.came(1)
    fields = {"key": "another"} if change == "key" else {}
    answer = await own.post(f"/connections/{number}/{change}/", fields, headers=JSON)
    assert answer.status_code == 200, answer.content
    go.set()
    await settle()
    reply = await last_reply()
    assert (reply.status, reply.text) == ("complete", "Half and half.")
    if change == "key":
        await send(own, code, "And now?")
        await settle()
        assert study.chats[-1].headers["authorization"] == "Bearer another"


async def test_what_is_wrong_is_said_and_nothing_is_stored(
    own: AsyncClient, study: FakeUpstream
) -> None:
    """In words; the page keeps what was typed, except the key.

    Breaks when: a connection is stored before its server has answered.
    """

    async def said(**changes: Any) -> str:
        answer = await own.post("/connections/", fields(study, **changes))
        assert answer.status_code >= 400
        page = answer.content.decode()
        assert KEY not in page
        assert "study" in page
        return page

    assert "on this computer or in its network" in await said(private_addresses="")
    assert "cannot be reached" in await said(address="http://127.0.0.1:9/v1")
    assert "Enter an address like" in await said(address="ftp://127.0.0.1/v1")
    assert "Enter an address like" in await said(address="http://me:word@127.0.0.1/v1")
    assert "one line" in await said(key="schlüssel" + KEY)
    assert "stands for the server" in await said(name="Summaries")
    assert "Use letters and digits" in await said(name="study @ home")
    study.models = failing(401, f"Incorrect API key provided: {KEY}")
    assert "key of “study”" in await said()
    study.models = failing(404, "no such page")
    await said(address=study.origin + "/nowhere")
    study.models = ()
    assert "lists no model" in await said()
    assert not await Connection.objects.aexists()
    study.models = MODELS
    await connected(own, study, address=study.origin)
    assert (await Connection.objects.aget()).address == study.base_url
    assert "of this name already" in await said(name="Study")


async def test_a_look_again_keeps_what_was_known_if_the_server_is_away(
    own: AsyncClient, study: FakeUpstream
) -> None:
    number = await connected(own, study)
    await study.stop()
    answer = await own.post(f"/connections/{number}/look/", headers=JSON)
    assert "cannot be reached" in answer.json()["problem"]
    row = await Connection.objects.aget()
    assert row.problem
    assert row.models_offered == ["qwen3:8b", "<b>small</b>"]
    assert "qwen3:8b @ study" in await names(own)


async def test_the_demo_gives_way_to_a_connected_model(
    owner: User, alice: User, study: FakeUpstream, settings: Any
) -> None:
    """Without a server in the settings: the note leads to the page, and then is not needed.

    Breaks when: new conversations, or imported ones, begin with the demo model although another is
    connected.
    """
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    async with fresh_product():
        own, hers = await signed_in(owner), await signed_in(alice)
        assert b'href="/connections/"' in (await own.get("/?new")).content
        page = (await hers.get("/?new")).content
        assert b"built-in demo model" in page
        assert b"/connections/" not in page
        await connected(own, study)
        page = (await own.get("/?new")).content
        assert b"built-in demo model" not in page
        code = await new_conversation(own)
        await send(own, code)
        await settle()
        assert study.chats[-1].json["model"] == "qwen3:8b"
        brought = ContentFile(b'[{"role": "user", "content": "Hi"}]', "messages.json")
        told = (await own.post("/import/", {"file": brought}, headers=JSON)).json()
        report = await ended(own, told["job"])
        page = (await own.get(f"/c/{report['conversations'][0]['code']}/", headers=JSON)).json()
        assert page["conversation"]["model"] == "qwen3:8b @ study"
        assert b"built-in demo model" in (await hers.get("/?new")).content
        await settle()


async def test_the_page_of_a_new_conversation_names_the_model_that_will_answer(
    own: AsyncClient, study: FakeUpstream
) -> None:
    """Of its project, of the person, or the default: whichever is still there, in this order.

    Breaks when: the picker shows a model whose connection is gone, or not the project's; or a
    project whose model is gone passes over the person's own.
    """
    number = await connected(own, study)
    await connected(own, study, name="garden")
    await own.post("/projects/", {"name": "Novel"}, headers=JSON)
    usual, mine, the_projects = "fake-model", "qwen3:8b @ garden", "qwen3:8b @ study"
    await own.post("/projects/novel/settings/", {"model": the_projects}, headers=JSON)
    assert usual in await names(own)

    async def chosen(project: str = "") -> tuple[str, str]:
        page = (await own.get(f"/?new&project={project}")).content.decode()
        shown = re.search(r'<option\s+value=""\s+selected\s*>\s*([^<]+?)\s*</option>', page)
        made = await Conversation.objects.aget(code=await new_conversation(own, project=project))
        return (shown[1] if shown else ""), made.model

    assert await chosen() == (usual, "")
    assert await chosen("novel") == (the_projects, the_projects)
    await own.post("/settings/", {"default_model": mine}, headers=JSON)
    assert await chosen() == (mine, mine)
    assert await chosen("novel") == (the_projects, the_projects)
    await own.post(f"/connections/{number}/delete/", headers=JSON)
    assert await chosen("novel") == (mine, mine)
    told = (await own.get("/projects/novel/", headers=JSON)).json()
    assert (told["project"]["model"], told["cost"]["model"]) == (the_projects, mine)
    await own.post("/settings/", {"default_model": the_projects}, headers=JSON)
    assert await chosen() == (usual, "")
    assert b'name="project"' not in (await own.get("/?new&project=of-somebody")).content


async def test_a05_who_may_open_and_change_connections(
    own: AsyncClient, study: FakeUpstream, bob: User, alice: User
) -> None:
    """Everybody else is told that there is no such page, and changes nothing.

    Breaks when: a view or an action forgets ``rights_of``.
    """
    number = await connected(own, study)

    async def rows() -> str:
        work = sync_to_async(lambda: serializers.serialize("json", Connection.objects.all()))
        return str(await work())

    before, asked = await rows(), len(study.requests)
    people = {"stranger": False, "staff without a permission": True}
    for staff in people.values():
        await User.objects.filter(pk=bob.pk).aupdate(is_staff=staff)
        client = await signed_in(await User.objects.aget(pk=bob.pk))
        for route, methods in CONNECTIONS.items():
            path = "/" + route.replace("<int:number>", str(number))
            none = "/" + route.replace("<int:number>", "999999")
            for method in sorted(methods):
                for headers in FORMATS.values():
                    found = await ask(client, method, path, fields(study, name="x"), headers)
                    missing = await ask(client, method, none, {}, headers)
                    assert found.status_code == missing.status_code == 404, (route, method)
                    assert found.content == missing.content
    signed_out = AsyncClient()
    for route, methods in CONNECTIONS.items():
        path = "/" + route.replace("<int:number>", str(number))
        for method in sorted(methods):
            for name, headers in FORMATS.items():
                answer = await ask(signed_out, method, path, {}, headers)
                assert answer.status_code == (302 if name == "plain" else 401)
        if methods == {"POST"}:
            assert (await own.get(path, headers=JSON)).status_code == 405
    assert (await rows(), len(study.requests)) == (before, asked)


async def test_staff_may_add_public_servers_only(
    own: AsyncClient, study: FakeUpstream, bob: User
) -> None:
    """Whoever names a private address has this computer ask inside its own network.

    Breaks when: ``connect`` takes ``private_addresses`` from anybody who may add.
    """
    await User.objects.filter(pk=bob.pk).aupdate(is_staff=True)
    permission = await Permission.objects.aget(codename="add_connection")
    await bob.user_permissions.aadd(permission)
    client = await signed_in(await User.objects.aget(pk=bob.pk))
    answer = await client.post("/connections/", fields(study), headers=JSON)
    assert (answer.status_code, "private_addresses" in answer.json()["error"]["fields"]) == (
        422,
        True,
    )
    answer = await client.post("/connections/", fields(study, private_addresses=""), headers=JSON)
    assert answer.json()["error"]["code"] == "llm_unreachable"
    assert not study.requests
    assert b"private_addresses" not in (await client.get("/connections/")).content
    for command in ("change", "look", "key", "delete"):
        number = (await Connection.objects.acreate(name=command, address=study.base_url)).pk
        answer = await client.post(f"/connections/{number}/{command}/", headers=JSON)
        assert answer.status_code == 404


async def test_a_conversation_says_that_its_connection_is_gone_before_one_sends(
    own: AsyncClient, study: FakeUpstream
) -> None:
    """On the page and to clients, with a way to choose another model; until one is chosen.

    Breaks when: only the failed reply says it, or the notice stays after the choice.
    """
    number = await connected(own, study)
    code = await new_conversation(own, model="qwen3:8b @ study")

    async def said() -> str:
        told = (await own.get(f"/c/{code}/", headers=JSON)).json()["context"]["unavailable"]
        page = (await own.get(f"/c/{code}/")).content.decode()
        above = page.partition('id="nearly-full"')[2].partition('id="notice"')[0]
        assert told in strip_tags(above)
        assert ('data-action="model"' in above) == bool(told)
        return str(told)

    assert await said() == ""
    others = {"offered": "<b>small</b>", "everyone": "true", "enabled": "true"}
    await own.post(f"/connections/{number}/change/", others, headers=JSON)
    assert "does not offer this model any more" in await said()
    await own.post(f"/connections/{number}/delete/", headers=JSON)
    assert "The connection “study” is not there any more" in await said()
    await own.post(f"/c/{code}/settings/", {"model": "fake-model"}, headers=JSON)
    assert await said() == ""
