"""A viewer of a conversation in the test's own process, and a turn that another process runs."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.asgi import application
from chatapp.conversations.turns import progress, sending
from chatapp.live import events
from chatapp.turns.announcer import common
from tests.chatapp.talking import by
from tests.inprocess import JSON
from tests.mirror import Json, Mirror

# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 20


class Screen(Mirror):
    """A mirror that follows this process's product."""

    def __init__(self, client: AsyncClient, code: str, *, html: bool = False) -> None:
        super().__init__()
        self.client, self.code = client, code
        self._format = "html" if html else "json"
        self._socket: WebsocketCommunicator | None = None

    async def connect(self) -> None:
        cookie = f"sessionid={self.client.cookies['sessionid'].value}".encode()
        query = f"format={self._format}&after={self.seen}&state={self.state_no}"
        self._socket = WebsocketCommunicator(
            application,
            f"/ws/c/{self.code}/?{query}",
            headers=[(b"origin", b"http://testserver"), (b"cookie", cookie)],
        )
        accepted, _ = await self._socket.connect(PATIENCE)
        assert accepted

    async def next(self) -> Json:
        """The next event, applied; the close code as ``{"type": "closed", "code": …}``."""
        assert self._socket is not None
        message = await self._socket.receive_output(PATIENCE)
        if message["type"] == "websocket.close":
            return {"type": "closed", "code": message["code"]}
        event: Json = json.loads(message["text"])
        self.apply(event)
        return event

    async def fragment(self) -> str:
        """The next event as HTML."""
        assert self._socket is not None
        return str((await self._socket.receive_output(PATIENCE))["text"])

    async def until(self, type_: str) -> list[Json]:
        seen = [await self.next()]
        while seen[-1]["type"] != type_:
            assert seen[-1]["type"] != "closed"
            seen.append(await self.next())
        return seen

    async def until_quiet(self) -> None:
        """Until the reply is there: its end was told, or a state without an open turn."""
        while self.turn is not None or not self.messages:
            assert (await self.next())["type"] != "closed"

    async def disconnect(self) -> None:
        assert self._socket is not None
        await self._socket.disconnect(timeout=PATIENCE)

    async def equals_a_fresh_load(self) -> None:
        self.equals((await self.client.get(f"/c/{self.code}/", headers=JSON)).json())

    async def told(self, within: float = PATIENCE) -> None:
        """Until it shows what a fresh page shows. Fails when nothing more is told before that."""
        async with asyncio.timeout(within):
            while True:
                fresh = (await self.client.get(f"/c/{self.code}/", headers=JSON)).json()
                if self.turn and fresh["turn"]:
                    # Of a turn that is open, events tell that it is and what is written; what it
                    # takes is told at its end.
                    fresh |= {"turn": self.turn, "context": self.context}
                if self.difference(fresh) is None:
                    return
                assert (await self.next())["type"] != "closed"


async def elsewhere(owner: User, code: str) -> sending.Accepted:
    """A turn that another process runs."""
    accepted = await sending.aaccept(
        owner.pk,
        code,
        text="Hello",
        client_msg_id=uuid4(),
        tokens=5,
        admit=by("fake-model"),
        process_id="another process",
    )
    assert isinstance(accepted, sending.Accepted)
    return accepted


async def write(accepted: sending.Accepted, text: str) -> None:
    """What that process stores of its reply."""
    one = progress.Checkpoint(
        message_id=accepted.reply_id, turn=accepted.turn, text=text, reasoning=""
    )
    assert await progress.acheckpoint([one]) == set()


def delta(accepted: sending.Accepted, offset: int, text: str) -> events.Delta:
    """What that process tells of it."""
    return events.Delta(
        turn=accepted.turn,
        seq=accepted.reply_seq,
        offset=offset,
        text=text,
        **common(accepted.conversation_id, accepted.event_no),
    )
