"""Whoever asks for much waits behind their own."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.accounts.one_each import MOST, OneEach
from chatapp.errors import RateLimited


class Gate:
    """Work that tells that it has begun, and goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.ended = False

    async def __call__(self) -> str:
        self.begun.set()
        await self.go.wait()
        self.ended = True
        return "done"


async def _nothing() -> str:
    return "at once"


async def _turns(number: int = 20) -> None:
    """Let everything go on that can."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_it_works() -> None:
    shares = OneEach()
    assert await shares.run("alice", _nothing) == "at once"

    async def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await shares.run("alice", fails)
    assert await shares.run("alice", _nothing) == "at once"
    assert not shares._shares


async def test_n02_work_of_one_person_waits_for_their_own_and_nobody_elses() -> None:
    """N02. Breaks when: alice's second begins beside her first, or bob's waits for hers."""
    shares, first, second = OneEach(), Gate(), Gate()
    tasks = [asyncio.create_task(shares.run("alice", gate)) for gate in (first, second)]
    await first.begun.wait()
    assert await shares.run("bob", _nothing) == "at once"
    await _turns()
    assert not second.begun.is_set()
    first.go.set()
    await second.begun.wait()
    second.go.set()
    assert await asyncio.gather(*tasks) == ["done", "done"]


async def test_n02_the_next_one_waits_for_abandoned_work() -> None:
    """N02: who begins searches and goes away takes no more threads than who stays.

    Breaks when: the place is given free with the awaiter instead of with the work.
    """
    shares, first, second, third = OneEach(), Gate(), Gate(), Gate()
    tasks = [asyncio.create_task(shares.run("alice", one)) for one in (first, second, third)]
    await first.begun.wait()
    tasks[0].cancel()
    # Has not begun: never will.
    tasks[1].cancel()
    await _turns()
    assert tasks[0].cancelled()
    assert tasks[1].cancelled()
    assert not third.begun.is_set()
    first.go.set()
    await third.begun.wait()
    assert first.ended
    assert not second.begun.is_set()
    third.go.set()
    assert await tasks[2] == "done"
    assert not shares._shares


async def test_n02_too_much_of_one_person_is_refused() -> None:
    """N02. Breaks when: what waits is not bounded, or the bound is everybody's."""
    shares, gate = OneEach(), Gate()
    gate.go.set()
    tasks = [asyncio.create_task(shares.run("alice", gate)) for _ in range(MOST)]
    await _turns(1)
    with pytest.raises(RateLimited):
        await shares.run("alice", _nothing)
    assert await shares.run("bob", _nothing) == "at once"
    assert await asyncio.gather(*tasks) == ["done"] * MOST
    assert await shares.run("alice", _nothing) == "at once"
