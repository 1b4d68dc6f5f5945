"""A call waits for a person's answer, from whatever process it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient

from chatapp import wiring
from chatapp.conversations.tools import approvals
from chatapp.conversations.turns import progress
from chatapp.models import Conversation, Message, ToolApproval, TurnStatus
from chatapp.tools.approvals import LOOK_EVERY, Approvals
from compression.database import in_database_thread
from compression.exceptions import ToolFailed
from compression.tools.approval import Approve, exact, fingerprint
from compression.tools.tool import Tool
from tests.chatapp.talking import begin, new
from tests.chatapp.viewing import PATIENCE, Screen
from tests.inprocess import HTMX, JSON, fresh_product, signed_in

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

CALL = "a1b2c3d4e"
ARGUMENTS = {"text": "Buy <b>milk</b>\u202e", "list": [1, 2]}
HASH = fingerprint(ARGUMENTS)


async def _nothing(_: Any) -> str:
    return ""


TOOL = Tool(
    name="notes__add",
    description="Add a note.",
    parameters={"type": "object"},
    run=_nothing,
)


def _calling(alice: User) -> tuple[str, Any]:
    code = new(alice)
    accepted = begin(alice, code, "Write it down.")
    call = {
        "id": CALL,
        "type": "function",
        "function": {"name": TOOL.name, "arguments": exact(ARGUMENTS)},
    }
    Message.objects.filter(turn=accepted.turn, role="assistant").update(
        tool_calls=[call], status="complete"
    )
    return code, accepted


_acalling = in_database_thread(_calling)
_afinish = in_database_thread(progress.finish)


class Stage:
    """Alice's page of a conversation in which the model has called a tool."""

    def __init__(self, code: str, accepted: Any, client: AsyncClient, screen: Screen) -> None:
        self.code, self.accepted, self.client, self.screen = code, accepted, client, screen

    @property
    def approve(self) -> Approve:
        return wiring.approvals().port(self.accepted.conversation_id, self.accepted.turn)

    async def asked(self) -> asyncio.Future[bool]:
        """The call waits, and the page shows it."""
        waiting = asyncio.ensure_future(self.approve(TOOL, CALL, ARGUMENTS))
        await self.shows("waiting")
        return waiting

    async def shows(self, state: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                event = await self.screen.next()
                messages = [event["message"]] if "message" in event else event.get("messages", [])
                found = [one for message in messages for one in message["approvals"]]
                if found and found[-1]["state"] == state:
                    assert found[-1]["arguments"] == exact(ARGUMENTS)
                    return

    async def decide(
        self, decision: str, sha256: str = HASH, headers: dict[str, str] = JSON
    ) -> Any:
        return await self.client.post(
            f"/c/{self.code}/calls/{CALL}/decide/",
            {"decision": decision, "fingerprint": sha256},
            headers=headers,
        )


@pytest_asyncio.fixture
async def stage(alice: User) -> AsyncIterator[Stage]:
    async with fresh_product():
        code, accepted = await _acalling(alice)
        client = await signed_in(alice)
        screen = Screen(client, code)
        await screen.connect()
        yield Stage(code, accepted, client, screen)
        await screen.disconnect()


@pytest.mark.parametrize("decision", ["once", "always"])
async def test_it_works(stage: Stage, decision: str) -> None:
    waiting = await stage.asked()
    answer = await stage.decide(decision)
    assert answer.json() == {"call_id": CALL, "decision": decision}
    assert await asyncio.wait_for(waiting, PATIENCE) is True
    await stage.shows("allowed")
    again = asyncio.ensure_future(stage.approve(TOOL, "another00", ARGUMENTS))
    if decision == "always":
        assert await asyncio.wait_for(again, PATIENCE) is True
    else:
        await stage.screen.next()
        assert not again.done()
        again.cancel()
        await asyncio.wait({again})


async def test_refused(stage: Stage) -> None:
    waiting = await stage.asked()
    assert (await stage.decide("refuse", headers=HTMX)).status_code == 200
    with pytest.raises(ToolFailed, match="refused"):
        await asyncio.wait_for(waiting, PATIENCE)
    await stage.shows("refused")


async def test_t06_not_with_other_arguments(stage: Stage) -> None:
    """T06.

    Breaks when: the view does not pass the fingerprint on.
    """
    waiting = await stage.asked()
    answer = await stage.decide("once", sha256=fingerprint({}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "approval_changed")
    assert not waiting.done()
    assert (await stage.decide("maybe")).status_code == 422
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_stop_while_it_waits(stage: Stage) -> None:
    """The question is over on every page as soon as the turn is.

    Breaks when: a cancelled question stays as it is.
    """
    waiting = await stage.asked()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await stage.shows("withdrawn")
    answer = await stage.decide("once")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "approval_over")


async def test_nobody_answers_in_time(stage: Stage) -> None:
    waiting = await stage.asked()
    await ToolApproval.objects.aupdate(expires_at="2020-01-01T00:00:00Z")
    with pytest.raises(ToolFailed, match="ten minutes"):
        await asyncio.wait_for(waiting, PATIENCE)
    await stage.shows("expired")


async def test_an_answer_of_another_process_is_found(stage: Stage, alice: User) -> None:
    """Breaks when: only an event of this process ends the wait."""
    waiting = await stage.asked()
    await approvals.adecide(alice.pk, stage.code, CALL, HASH, "once")
    assert await asyncio.wait_for(waiting, PATIENCE + LOOK_EVERY) is True


async def test_a_reload_shows_it_and_its_arguments_to_the_letter(stage: Stage) -> None:
    """Breaks when: the article leaves the approvals out, or shows arguments as HTML."""
    waiting = await stage.asked()
    html = (await stage.client.get(f"/c/{stage.code}/")).content.decode()
    for name in ("Allow once", "Always for this tool here", "Refuse"):
        assert name in html
    assert f"calls/{CALL}/decide/" in html
    assert "Buy &lt;b&gt;milk&lt;/b&gt;\u27e6U+202E\u27e7" in html
    assert HASH in html
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_after_the_turns_end_no_button_is_left(stage: Stage) -> None:
    """Breaks when: a question counts as waiting although its turn has ended."""
    waiting = await stage.asked()
    accepted = stage.accepted
    ending = progress.Ending(status=TurnStatus.STOPPED)
    await _afinish("this process", accepted.turn, accepted.reply_id, ending)
    html = (await stage.client.get(f"/c/{stage.code}/")).content.decode()
    assert "Allow once" not in html
    assert "the reply ended before you answered" in html
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await Conversation.objects.filter(code=stage.code).aexists()


async def _is_asked() -> ToolApproval:
    async with asyncio.timeout(PATIENCE):
        while (  # noqa: ASYNC110
            found := await ToolApproval.objects.filter(state="waiting").afirst()
        ) is None:
            await asyncio.sleep(0.01)
    return found


async def test_an_announcement_that_fails_ends_no_question(stage: Stage, alice: User) -> None:
    """Breaks when: viewers who cannot be told keep a call from its answer."""

    async def fails(change: approvals.Change) -> None:
        raise RuntimeError("nobody can be told")

    asking = Approvals(fails)
    port = asking.port(stage.accepted.conversation_id, stage.accepted.turn)
    waiting = asyncio.ensure_future(port(TOOL, CALL, ARGUMENTS))
    question = await _is_asked()
    await approvals.adecide(alice.pk, stage.code, CALL, HASH, "once")
    asking.answered(question.pk)
    assert await asyncio.wait_for(waiting, PATIENCE) is True


def _rename(before: str, after: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {before} RENAME TO {after}")


_arename = in_database_thread(_rename)


@pytest.mark.parametrize("away", ["before", "while"])
async def test_a_database_that_is_away_for_a_moment_ends_no_question(
    stage: Stage, alice: User, away: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever allows the call afterwards is answered that it runs, and it does.

    Breaks when: an error of a look at the question is the end of the call.
    """
    if connection.vendor != "sqlite":
        pytest.skip("a missing table is no absent database there")
    if away == "while":
        waiting = await stage.asked()
    await _arename("chatapp_toolapproval", "elsewhere")
    try:
        if away == "before":
            waiting = asyncio.ensure_future(stage.approve(TOOL, CALL, ARGUMENTS))
        async with asyncio.timeout(PATIENCE):
            while "waits for the database" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        await _arename("elsewhere", "chatapp_toolapproval")
    await _is_asked()
    assert (await stage.decide("once")).status_code == 200
    assert await asyncio.wait_for(waiting, PATIENCE) is True
