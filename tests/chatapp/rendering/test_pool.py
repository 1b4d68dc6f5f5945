"""Fair shares of rendering: nobody waits for another's work, and nothing is done for nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial

import pytest

from chatapp.errors import RateLimited
from chatapp.rendering import kept
from chatapp.rendering.pool import MOST_WAITING, RenderingPool


@pytest.fixture
def pool() -> Iterator[RenderingPool]:
    """With the usual two threads."""
    made = RenderingPool()
    yield made
    made.shutdown()


class Gate:
    """Work that waits until it is let go, and tells when it has begun."""

    def __init__(self) -> None:
        self._begun, self._go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._begun.set()
        assert self._go.wait(30)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, 30)

    def open(self) -> None:
        self._go.set()


async def test_it_works(pool: RenderingPool) -> None:
    name: ContextVar[str] = ContextVar("name")
    name.set("alice")
    assert await pool.run(1, lambda: name.get()) == "alice"
    with pytest.raises(ZeroDivisionError):
        await pool.run(1, lambda: 1 // 0)
    assert await asyncio.gather(*(pool.run(n, partial(str, n)) for n in range(30))) == [
        str(n) for n in range(30)
    ]


async def test_n02_one_person_has_one_thread_and_the_others_the_other(pool: RenderingPool) -> None:
    """N02: however much alice asks for, bob's page is made meanwhile.

    Breaks when: ``_next`` takes work of a share that is being served already.
    """
    gates = [Gate() for _ in range(6)]
    alices = [asyncio.create_task(pool.run("alice", gate)) for gate in gates]
    await gates[0].begun()
    assert [await pool.run("bob", partial(str, n)) for n in range(20)] == [
        str(n) for n in range(20)
    ]
    assert not any(one.done() for one in alices)
    for gate in gates:
        gate.open()
    await asyncio.gather(*alices)


async def test_n02_shares_take_turns(pool: RenderingPool) -> None:
    """N02: who comes with one piece of work does not wait for all of the other's.

    Breaks when: a share keeps its place after one piece of its work.
    """
    order: list[str] = []
    gates = {name: Gate() for name in ("first", "second")}
    held = [asyncio.create_task(pool.run(name, gate)) for name, gate in gates.items()]
    for gate in gates.values():
        await gate.begun()

    def noted(name: str) -> Callable[[], None]:
        return lambda: order.append(name)

    work = [pool.run("alice", noted("alice")) for _ in range(5)]
    work += [pool.run("bob", noted("bob")), pool.run("carol", noted("carol"))]
    waiting = asyncio.gather(*work)
    await asyncio.sleep(0)
    for gate in gates.values():
        gate.open()
    await asyncio.gather(waiting, *held)
    assert {"bob", "carol"} <= set(order[:4])


async def test_n02_what_nobody_waits_for_is_not_begun(pool: RenderingPool) -> None:
    """N02: a client that is gone is gone from the queue.

    Breaks when: a cancelled request's work is done all the same.
    """
    gate = Gate()
    done: list[int | str] = []
    held = asyncio.create_task(pool.run("alice", gate))
    await gate.begun()
    gone = [asyncio.create_task(pool.run("alice", partial(done.append, n))) for n in range(10)]
    stays = asyncio.create_task(pool.run("alice", partial(done.append, "stays")))
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    gate.open()
    await asyncio.gather(held, stays)
    assert done == ["stays"]


async def test_i26_what_waits_is_bounded_a_person(pool: RenderingPool) -> None:
    """I26: too much is refused, what was abandoned does not count, and others are not concerned.

    Breaks when: ``MOST_WAITING`` is not looked at.
    """
    gate = Gate()
    held = asyncio.create_task(pool.run("alice", gate))
    await gate.begun()
    waiting = [asyncio.create_task(pool.run("alice", int)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await pool.run("alice", int)
    assert await pool.run("bob", int) == 0
    waiting[0].cancel()
    await asyncio.sleep(0)
    more = asyncio.create_task(pool.run("alice", int))
    gate.open()
    assert await asyncio.gather(held, more, *waiting[1:]) == [None, *[0] * MOST_WAITING]


async def test_n02_the_end_waits_for_nothing(pool: RenderingPool) -> None:
    """N02: what waits is dropped and what runs is left to itself.

    Breaks when: ``shutdown`` waits, or leaves what waits waiting.
    """
    gate = Gate()
    held = asyncio.create_task(pool.run("alice", gate))
    await gate.begun()
    waiting = [asyncio.create_task(pool.run("alice", int)) for _ in range(5)]
    await asyncio.sleep(0)
    pool.shutdown()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in results)
    assert not held.done()
    gate.open()
    await held


async def test_a_page_of_dear_texts_is_rendered_in_slices(pool: RenderingPool) -> None:
    """N02: between two of them others have their turn, and a client that is gone ends it.

    Breaks when: ``ahead`` is one piece of work.
    """
    bodies = [kept.Body(kept.markdown, f"{n} " + "*a _b_ [c](d) " * 900) for n in range(60)]
    page = asyncio.create_task(pool.ahead("alice", bodies))
    for _ in range(5):
        # Behind one slice of alice's each time, though it is her own share.
        await pool.run("alice", int)
    assert not page.done()
    page.cancel()
    with pytest.raises(asyncio.CancelledError):
        await page
    await pool.run("alice", int)
    left = kept.ahead(bodies)
    assert left
