"""Fair shares of rendering: nobody waits for another's work, and nothing is done for nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
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

    Breaks when: the threads are not shared fairly, or one person may have both.
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


async def test_i26_what_waits_is_bounded_a_person(pool: RenderingPool) -> None:
    """I26: too much is refused, what was abandoned does not count, and others are not concerned.

    Breaks when: ``MOST_WAITING`` is not looked at.
    """
    gate = Gate()
    held = asyncio.create_task(pool.run("alice", gate))
    await gate.begun()
    waiting = [asyncio.create_task(pool.run("alice", int)) for _ in range(MOST_WAITING - 1)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await pool.run("alice", int)
    assert await pool.run("bob", int) == 0
    waiting[0].cancel()
    await asyncio.sleep(0)
    more = asyncio.create_task(pool.run("alice", int))
    gate.open()
    assert await asyncio.gather(held, more, *waiting[1:]) == [None, *[0] * (MOST_WAITING - 1)]


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


async def test_n02_the_interpreter_is_left_to_others_after_each_slice(pool: RenderingPool) -> None:
    """N02: six pages of the dearest messages at once made everybody else's take four times as long.

    Breaks when: the next slice of a person begins as soon as one ends, whatever they had.
    """
    ends: list[float] = []

    def busy() -> float:
        begun = time.monotonic()
        while time.monotonic() < begun + 0.05:
            pass
        ends.append(time.monotonic())
        return begun

    begun = await asyncio.gather(*(pool.run("alice", busy) for _ in range(6)))
    # The first two are done in one go.
    gaps = [later - end for end, later in zip(ends, begun[1:], strict=False)]
    assert all(gap >= 0.045 for gap in gaps[2:])


async def test_what_is_kept_or_short_is_not_made_ahead(
    pool: RenderingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: a page whose texts are all at hand waits for a thread."""
    long = kept.Body(kept.markdown, "A *long* text. " * 40)
    await pool.ahead("alice", [long])
    asked: list[object] = []
    monkeypatch.setattr(pool, "run", asked.append)
    await pool.ahead("alice", [long, kept.Body(kept.markdown, "short")])
    assert not asked


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
