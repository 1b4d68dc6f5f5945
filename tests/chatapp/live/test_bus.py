from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer
from django.utils import timezone

from chatapp.live.bus import BACKLOG, Bus, Published, Subscription
from chatapp.live.events import Delta, Event, TitleChanged

pytestmark = pytest.mark.events

PATIENCE = 10
CONVERSATION = 7


def title(number: int, conversation: int = CONVERSATION) -> TitleChanged:
    return TitleChanged(
        conversation_id=conversation, event_no=number, at=timezone.now(), title=f"title {number}"
    )


def render(event: Event) -> str:
    return f"<p>{event.type} {event.event_no}</p>"


@pytest.fixture
async def layer(settings: Any) -> AsyncIterator[Any]:
    """The layer of the deployment: Redis where there is one, else the one in memory."""
    if not settings.REDIS_URL:
        yield InMemoryChannelLayer()
        return
    from channels_redis.pubsub import RedisPubSubChannelLayer

    made = RedisPubSubChannelLayer(hosts=[settings.REDIS_URL], prefix=settings.REDIS_PREFIX)
    yield made
    await made.flush()


@pytest.fixture
async def buses(layer: Any) -> AsyncIterator[tuple[Bus, Bus]]:
    """Two processes."""
    made = Bus(layer, render), Bus(layer, render)
    yield made
    for bus in made:
        await bus.aclose()


async def next_of(viewer: Subscription) -> Published | None:
    return await asyncio.wait_for(viewer.next(), PATIENCE)


async def test_it_works() -> None:
    bus = Bus(None, render)
    assert not bus.watched(CONVERSATION)
    async with bus.subscribe(CONVERSATION) as viewer:
        assert bus.watched(CONVERSATION)
        await bus.publish(title(1))
        published = await next_of(viewer)
    assert published is not None
    assert (published.type, published.event_no) == ("title-changed", 1)
    assert published.json["title"] == "title 1"
    assert published.html == "<p>title-changed 1</p>"
    assert not bus.watched(CONVERSATION)


async def test_every_viewer_in_both_processes_is_told_once_and_in_order(
    buses: tuple[Bus, Bus],
) -> None:
    here, there = buses
    async with (
        here.subscribe(CONVERSATION) as first,
        here.subscribe(CONVERSATION) as second,
        there.subscribe(CONVERSATION) as third,
    ):
        for number in range(1, 21):
            await here.publish(title(number))
        for viewer in (first, second, third):
            told = [await next_of(viewer) for _ in range(20)]
            assert [one.event_no for one in told if one] == list(range(1, 21))
        # What the process itself sent comes back to it by the layer and is not told again: the
        # next thing that its viewers hear is the other's.
        await there.publish(title(99))
        for viewer in (first, second, third):
            published = await next_of(viewer)
            assert published is not None
            assert published.event_no == 99


async def test_html_is_rendered_once_where_the_event_happened(buses: tuple[Bus, Bus]) -> None:
    here, there = buses
    delta = Delta(
        conversation_id=CONVERSATION,
        event_no=1,
        at=timezone.now(),
        turn=1,
        seq=2,
        offset=0,
        text="é😀\u2028",
    )
    async with there.subscribe(CONVERSATION) as viewer:
        await here.publish(delta, "<p>é😀</p>")
        published = await next_of(viewer)
    assert published is not None
    assert published.html == "<p>é😀</p>"
    assert published.json == delta.as_json()


async def test_other_conversations_hear_nothing(buses: tuple[Bus, Bus]) -> None:
    here, there = buses
    async with (
        there.subscribe(CONVERSATION) as viewer,
        there.subscribe(CONVERSATION + 1) as other,
    ):
        await here.publish(title(1))
        await here.publish(title(2, CONVERSATION + 1))
        first, second = await next_of(viewer), await next_of(other)
    assert first is not None
    assert second is not None
    assert (first.event_no, second.event_no) == (1, 2)


async def test_a_nudge_makes_everyone_read_again(buses: tuple[Bus, Bus]) -> None:
    here, there = buses
    async with (
        here.subscribe(CONVERSATION) as near,
        there.subscribe(CONVERSATION) as far,
    ):
        await here.nudge(CONVERSATION)
        assert await next_of(near) is None
        assert await next_of(far) is None


async def test_i26_who_is_too_far_behind_reads_again_instead() -> None:
    """Breaks when: ``put`` appends without a limit."""
    bus = Bus(None, render)
    async with bus.subscribe(CONVERSATION) as viewer:
        for number in range(BACKLOG + 50):
            await bus.publish(title(number))
        assert len(viewer._waiting) <= BACKLOG
        assert await next_of(viewer) is None
        # What came after the overflow may be told; each of it is newer than what was dropped.
        await bus.publish(title(1000))
        last = await next_of(viewer)
        while last is not None and last.event_no != 1000:
            last = await next_of(viewer)
        assert last is not None


class Broken:
    """A layer that is away."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def fail(*_: Any) -> None:
            raise ConnectionError(name)

        return fail


async def test_i4_a_layer_that_fails_disturbs_nobody_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Breaks when: ``publish`` or ``subscribe`` lets the layer's errors through."""
    bus = Bus(Broken(), render)
    async with bus.subscribe(CONVERSATION) as viewer:
        await bus.publish(title(1))
        published = await next_of(viewer)
        assert published is not None
        await bus.nudge(CONVERSATION)
        assert await next_of(viewer) is None
    assert not await bus.answers()
    assert not bus._viewers
    assert all("channel layer" in record.getMessage() for record in caplog.records)
    await bus.aclose()


class Silent:
    """A layer that never answers, as on a computer that has too much to do."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def wait(*_: Any) -> None:
            await asyncio.Event().wait()

        return wait


@pytest.mark.parametrize(("layer", "unforeseen"), [(Silent(), False), (Broken(), True)])
async def test_only_what_is_unforeseen_leaves_a_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, layer: Any, unforeseen: bool
) -> None:
    """Breaks when: a layer that is merely slow is logged like one that fails, or not at all."""
    monkeypatch.setattr("chatapp.live.bus.LAYER_PATIENCE", 0.01)
    bus = Bus(layer, render)
    assert not await bus.answers()
    async with bus.subscribe(CONVERSATION):
        await bus.publish(title(1))
    assert len(caplog.records) == 3
    assert {record.exc_info is not None for record in caplog.records} == {unforeseen}
    await bus.aclose()


class SlowToBegin(InMemoryChannelLayer):  # type: ignore[misc]
    """A new channel takes a while, or fails at last."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self._fails = fails

    async def new_channel(self, prefix: str = "specific.") -> str:
        self.asked.set()
        await self.go_on.wait()
        if self._fails:
            raise OSError
        return str(await super().new_channel(prefix))


@pytest.mark.parametrize("fails", [False, True])
async def test_a_viewer_who_comes_at_the_very_end_leaves_no_task_behind(fails: bool) -> None:
    """Breaks when: closing ends only what was begun before it."""
    layer = SlowToBegin(fails=fails)
    bus, before = Bus(layer, render), asyncio.all_tasks()

    async def look() -> None:
        async with bus.subscribe(CONVERSATION):
            pass

    looking = asyncio.create_task(look())
    await layer.asked.wait()
    await bus.aclose()
    layer.go_on.set()
    await asyncio.wait_for(looking, PATIENCE)
    await look()
    assert asyncio.all_tasks() == before


async def test_whether_the_layer_answers(buses: tuple[Bus, Bus]) -> None:
    assert await buses[0].answers()
    assert await Bus(None, render).answers()


class Counting(InMemoryChannelLayer):  # type: ignore[misc]
    """Counts who is in which group."""

    async def members(self, conversation: int) -> int:
        return len(self.groups.get(f"conversation.{conversation}", {}))


async def test_the_last_viewer_leaves_the_group() -> None:
    layer = Counting()
    bus = Bus(layer, render)
    async with bus.subscribe(CONVERSATION):
        async with bus.subscribe(CONVERSATION):
            assert await layer.members(CONVERSATION) == 1
        assert await layer.members(CONVERSATION) == 1
    assert await layer.members(CONVERSATION) == 0
    assert not bus._viewers
    await bus.aclose()


class Slow(Counting):
    """Leaving takes a while."""

    leaving: asyncio.Event
    go_on: asyncio.Event

    async def group_discard(self, group: str, channel: str) -> None:
        self.leaving.set()
        await self.go_on.wait()
        await super().group_discard(group, channel)


async def test_who_comes_while_the_last_one_leaves_is_in_the_group() -> None:
    """Breaks when: joining and leaving a group overtake one another."""
    layer = Slow()
    layer.leaving, layer.go_on = asyncio.Event(), asyncio.Event()
    here, there = Bus(layer, render), Bus(layer, render)
    leaves = asyncio.Event()

    async def first() -> None:
        async with here.subscribe(CONVERSATION):
            await leaves.wait()

    async def second() -> Published | None:
        async with here.subscribe(CONVERSATION) as viewer:
            return await viewer.next()

    one = asyncio.create_task(first())
    await asyncio.sleep(0)
    leaves.set()
    await layer.leaving.wait()
    two = asyncio.create_task(second())
    await asyncio.sleep(0)
    layer.go_on.set()
    await one
    async with asyncio.timeout(PATIENCE):
        while not two.done():
            await there.publish(title(1))
            await asyncio.sleep(0)
    published = await two
    assert published is not None
    assert published.event_no == 1
    for bus in (here, there):
        await bus.aclose()


async def test_w11_an_event_that_is_not_understood_does_not_deafen_the_process(
    buses: tuple[Bus, Bus], layer: Any
) -> None:
    """Another release may run beside this one for a while.

    Breaks when: the receiving task ends at a message that it cannot read.
    """
    here, there = buses
    async with there.subscribe(CONVERSATION) as viewer:
        strange = {
            "type": "conversation.event",
            "process": "another",
            "conversation": CONVERSATION,
            "event": {"unknown": True},
        }
        await layer.group_send(f"conversation.{CONVERSATION}", strange)
        await here.publish(title(5))
        told = await next_of(viewer)
        # The strange one makes the viewer read again.
        assert told is None
        told = await next_of(viewer)
    assert told is not None
    assert told.event_no == 5


class Swallowing(Counting):
    """Calls last until they are cancelled, and end as if they were not.

    So does ``asyncio.wait_for`` before Python 3.12, by which Redis's client sends, where the
    cancellation comes just as its work is done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.called = asyncio.Event()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.called.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def group_add(self, group: str, channel: str) -> None:
        await self.group_send(group, {})


@pytest.mark.parametrize("what", ["publish", "subscribe"])
async def test_l14_a_cancellation_is_not_lost_in_the_layer(what: str) -> None:
    """A reply that is stopped just as a piece of it was sent does not go on, nor does a viewer who
    has left.

    Breaks when: ``_cancellable`` is taken off.
    """
    layer = Swallowing()
    bus = Bus(layer, render)

    async def follow() -> None:
        async with bus.subscribe(CONVERSATION):
            pass

    async def publish() -> None:
        # Somebody looks: nothing is published for nobody.
        bus._viewers[CONVERSATION].add(Subscription())
        await bus.publish(title(1))

    task = asyncio.create_task(publish() if what == "publish" else follow())
    await layer.called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await bus.aclose()
