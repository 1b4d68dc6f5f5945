"""A turn in which the model calls a tool that writes, from the page to a real server and back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.conversations.tools import servers
from chatapp.models import ToolServer
from tests.chatapp.tools.mcp.serving import Server, aaccess, aapprove_all
from tests.chatapp.viewing import PATIENCE, Screen
from tests.fake_scripts import Tool, calling, saying
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, send, settle

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

CALL = calling(Tool("tests__write", '{"text": "Buy milk"}'))
Json = dict[str, Any]


class Stage:
    """Alice's page of a conversation whose model can call the server's tools."""

    def __init__(
        self, server: Server, upstream: FakeUpstream, client: AsyncClient, screen: Screen
    ) -> None:
        self.server, self.upstream, self.client, self.screen = server, upstream, client, screen
        self.turn = 0

    async def ask(self) -> Json:
        """Have the model call the tool. Returns the question that the page shows."""
        self.upstream.enqueue(CALL, saying("It is done."))
        self.turn = (await send(self.client, self.screen.code, "Write it down."))["turn"]
        question = await self.shows("waiting")
        assert json.loads(question["arguments"]) == {"text": "Buy milk"}
        assert self.written == []
        return question

    async def shows(self, state: str) -> Json:
        """The question, as soon as the page shows it in this state."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.screen.messages.values():
                    if (found := message.get("approvals")) and found[-1]["state"] == state:
                        return dict(found[-1])
                await self.screen.next()

    async def decide(self, question: Json, decision: str) -> int:
        """Answer a question. Returns the status of the answer."""
        answer = await self.client.post(
            f"/c/{self.screen.code}/calls/{question['call_id']}/decide/",
            {"decision": decision, "fingerprint": question["fingerprint"]},
            headers=JSON,
        )
        return int(answer.status_code)

    async def end(self) -> tuple[str, str]:
        """The status of the turn, and the result that the model was told; empty for none."""
        await settle(self.turn)
        path = f"/c/{self.screen.code}/turns/{self.turn}/"
        status = (await self.client.get(path, headers=JSON)).json()["status"]
        sent = self.upstream.chats[-1].json["messages"][-1]
        return status, sent["content"] if sent["role"] == "tool" else ""

    @property
    def written(self) -> list[str]:
        """What the server's tool has written."""
        return list(self.server.control()["written"])


@pytest_asyncio.fixture
async def stage(
    server: Server, upstream: FakeUpstream, chat_client: AsyncClient, screen: Screen
) -> Stage:
    row = await ToolServer.objects.acreate(
        name="tests",
        address=f"{server.origin}/mcp",
        private_addresses=True,
        everyone=True,
        on_by_default=True,
    )
    assert await wiring.mcp_tools().read(await aaccess(row)) == ""
    await aapprove_all(row)
    return Stage(server, upstream, chat_client, screen)


async def test_t02_t06_a_call_runs_once_it_is_allowed(stage: Stage) -> None:
    """T02, T06: and not before. At the turn's end nothing is left of the connection.

    Breaks when: ``wiring.services`` gives turns no approvals, or does not end their tools.
    """
    question = await stage.ask()
    assert await stage.decide(question, "once") == 200
    assert await stage.end() == ("complete", "written")
    assert stage.written == ["Buy milk"]
    await stage.shows("allowed")
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert "connection to a tool server" not in names


async def test_t02_a_call_that_is_refused(stage: Stage) -> None:
    """T02.

    Breaks when: a refusal is told and the call runs all the same.
    """
    assert await stage.decide(await stage.ask(), "refuse") == 200
    status, told = await stage.end()
    assert (status, told) == ("complete", "error: The person refused this call, so it did not run.")
    assert stage.written == []


async def test_t06_stop_while_a_call_waits(stage: Stage) -> None:
    """T06: nothing can be allowed any more, and nothing runs.

    Breaks when: a question outlives its turn.
    """
    question = await stage.ask()
    await stage.client.post(f"/c/{stage.screen.code}/stop/", headers=JSON)
    assert (await stage.end())[0] == "stopped"
    await stage.shows("withdrawn")
    assert await stage.decide(question, "once") == 409
    assert stage.written == []


async def test_t02_a_server_that_is_switched_off_while_a_call_waits(
    stage: Stage, alice: User
) -> None:
    """T02.

    Breaks when: what was offered counts, and not what is on when the call runs.
    """
    question = await stage.ask()
    await servers.aswitch(alice.pk, stage.screen.code, "tests", on=False)
    assert await stage.decide(question, "once") == 200
    status, told = await stage.end()
    assert status == "complete"
    assert told.startswith("error: This tool is no longer offered here")
    assert stage.written == []
