"""Following without a socket: what is sent is a list. Over a socket: ``test_conversation``."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.utils import timezone

from chatapp import wiring
from chatapp.consumers import following
from chatapp.consumers.catching_up import CatchUp
from chatapp.consumers.following import Follower
from chatapp.consumers.outlet import Outlet
from chatapp.errors import NotFound
from chatapp.live import events
from chatapp.live.viewer import Viewer
from chatapp.models import Conversation
from tests.chatapp.viewing import PATIENCE
from tests.mirror import Json

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.events]


class Following:
    """A follower of a conversation, what it sends, and whether its viewer is signed in."""

    def __init__(self, pk: int) -> None:
        self.pk = pk
        self.signed_in = True
        self.asked = 0
        self.viewer = Viewer(seen=0, lossy=wiring.bus().lossy)
        self._frames: asyncio.Queue[Json] = asyncio.Queue()
        outlet = Outlet(self._send, wiring.rendering_pool(), user_id=1, as_json=True)
        catch_up = CatchUp(pk, self.viewer, outlet, wiring.services())
        self._follower = Follower(
            pk, self.viewer, catch_up, outlet, wiring.bus(), self._is_signed_in
        )

    def begin(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._follower.follow())

    async def next(self) -> Json:
        return await asyncio.wait_for(self._frames.get(), PATIENCE)

    async def _send(self, text: str) -> None:
        self._frames.put_nowait(json.loads(text))

    async def _is_signed_in(self) -> bool:
        self.asked += 1
        return self.signed_in


def title(pk: int, event_no: int) -> events.TitleChanged:
    return events.TitleChanged(
        title="Another", conversation_id=pk, event_no=event_no, at=timezone.now()
    )


async def test_it_works(pk: int) -> None:
    follower = Following(pk)
    task = follower.begin()
    state = await follower.next()
    assert state["type"] == "state"
    await wiring.bus().publish(title(pk, state["event_no"] + 1))
    told = await follower.next()
    assert (told["type"], told["event_no"]) == ("title-changed", follower.viewer.seen)
    task.cancel()


async def test_i20_it_ends_when_the_viewer_is_signed_out(
    pk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I20. Breaks when: a look does not ask, or goes on after the answer."""
    monkeypatch.setattr(following, "LOOK_IDLE", 0.02)
    follower = Following(pk)
    task = follower.begin()
    await follower.next()
    follower.signed_in = False
    await asyncio.wait_for(task, PATIENCE)
    assert follower.asked >= 1


async def test_it_ends_when_the_conversation_is_deleted(
    pk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_IDLE", 0.02)
    follower = Following(pk)
    task = follower.begin()
    await follower.next()
    await Conversation.objects.filter(pk=pk).aupdate(deleted_at=timezone.now())
    with pytest.raises(NotFound):
        await asyncio.wait_for(task, PATIENCE)


async def test_who_saw_a_later_state_than_there_is_is_shown_all(pk: int) -> None:
    """As after a restored backup."""
    follower = Following(pk)
    follower.viewer.seen = 1000
    task = follower.begin()
    state = await follower.next()
    assert (state["type"], state["after"]) == ("state", 0)
    assert follower.viewer.seen == state["event_no"]
    task.cancel()
