"""Whoever asks for much waits behind their own, and nothing is done for nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from contextvars import ContextVar
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression import fair_threads
from compression.fair_threads import BURST, LONGEST_PAUSE, FairThreads

PATIENCE = 30.0


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    """Two, of which one person has one."""
    made = FairThreads(2, "test", each=1)
    yield made
    made.drop()
    made.shutdown()


class Gate:
    """Work that waits until it is let go, and tells when it has begun."""

    def __init__(self) -> None:
        self._begun, self._go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._begun.set()
        assert self._go.wait(PATIENCE)

    def begun(self) -> None:
        assert self._begun.wait(PATIENCE)

    def open(self) -> None:
        self._go.set()


def noting(order: list[str], name: str) -> Callable[[], None]:
    return lambda: order.append(name)


def test_it_works(threads: FairThreads) -> None:
    name: ContextVar[str] = ContextVar("name")
    name.set("alice")
    assert threads.submit(1, lambda: name.get()).result(PATIENCE) == "alice"
    with pytest.raises(ZeroDivisionError):
        threads.submit(1, lambda: 1 // 0).result(PATIENCE)
    several = [threads.submit(n % 3, partial(str, n)) for n in range(30)]
    assert [one.result(PATIENCE) for one in several] == [str(n) for n in range(30)]


def test_n02_one_person_has_one_thread_and_the_others_the_other(threads: FairThreads) -> None:
    """N02. Breaks when: work is taken of a person of whom as much is done as may be."""
    gates = [Gate() for _ in range(6)]
    alices = [threads.submit("alice", gate) for gate in gates]
    gates[0].begun()
    assert [threads.submit("bob", partial(str, n)).result(PATIENCE) for n in range(20)] == [
        str(n) for n in range(20)
    ]
    assert not any(one.done() for one in alices)
    for gate in gates:
        gate.open()
    wait(alices, PATIENCE)


def test_n02_people_take_turns() -> None:
    """N02: who comes with one piece of work does not wait for all of another's.

    Breaks when: a person keeps their place after a piece of their work.
    """
    threads, gate, order = FairThreads(1, "test", each=1), Gate(), list[str]()
    threads.submit("zoe", gate)
    gate.begun()
    names = ("alice", "alice", "alice", "bob", "carol", "bob")
    work = [threads.submit(name, noting(order, name)) for name in names]
    gate.open()
    wait(work, PATIENCE)
    assert order == ["alice", "bob", "carol", "alice", "bob", "alice"]
    threads.shutdown()


def test_n02_work_in_two_threads_at_once(threads: FairThreads) -> None:
    """Each may have two: both threads are one person's while nobody else comes.

    Breaks when: ``each`` is taken for one.
    """
    both, gates = FairThreads(2, "test", each=2), [Gate(), Gate(), Gate()]
    work = [both.submit("alice", gate) for gate in gates]
    for gate in gates[:2]:
        gate.begun()
    assert both.pending_of("alice") == 3
    for gate in gates:
        gate.open()
    wait(work, PATIENCE)
    both.shutdown()


def test_n02_what_nobody_waits_for_is_not_begun_and_not_counted(threads: FairThreads) -> None:
    """N02. Breaks when: cancelled work is done all the same, or counts as theirs."""
    gate, done = Gate(), list[str]()
    held = threads.submit("alice", gate)
    gate.begun()
    gone = [threads.submit("alice", noting(done, "gone")) for _ in range(10)]
    stays = threads.submit("alice", noting(done, "stays"))
    assert threads.pending_of("alice") == 12
    for one in gone:
        one.cancel()
    assert threads.pending_of("alice") == 2
    assert threads.pending_of("bob") == 0
    gate.open()
    wait([held, stays], PATIENCE)
    assert done == ["stays"]


def test_what_waits_can_be_dropped(threads: FairThreads) -> None:
    """Breaks when: what waits goes on waiting, or what runs is disturbed."""
    gate = Gate()
    held = threads.submit("alice", gate)
    gate.begun()
    waiting = [threads.submit("alice", int) for _ in range(5)]
    threads.drop()
    for one in waiting:
        with pytest.raises(CancelledError):
            one.result(PATIENCE)
    assert not held.done()
    gate.open()
    assert held.result(PATIENCE) is None
    assert threads.submit("alice", int).result(PATIENCE) == 0


def test_joining_waits_for_everything_and_the_end_takes_nothing_more(threads: FairThreads) -> None:
    """Breaks when: ``join`` returns while something waits, or work is lost after the end."""
    for _ in range(20):
        work = [threads.submit(n % 4, partial(time.sleep, 0.0005)) for n in range(12)]
        threads.join()
        assert all(one.done() for one in work)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit("alice", int)


@pytest.mark.parametrize("burst", [0.0, 0.1])
def test_n02_whoever_keeps_the_interpreter_pauses_for_the_others(burst: float) -> None:
    """N02: a person's work leaves the interpreter to others between two pieces of it.

    Breaks when: the next piece of theirs begins at once, or others wait for the pause.
    """
    threads = FairThreads(1, "test", each=1, burst=burst)
    times: list[tuple[float, float]] = []

    def busy() -> None:
        begun = time.monotonic()
        while time.monotonic() < begun + 0.25:
            pass
        times.append((begun, time.monotonic()))

    work = [threads.submit("alice", busy) for _ in range(2)]
    work[0].result(PATIENCE)
    # Done by the only thread, in the pause.
    assert threads.submit("bob", int).result(PATIENCE) == 0
    assert len(times) == 1
    wait(work, PATIENCE)
    # Half of her work was within her share. With Bob there, a third of the pause pays for the rest.
    for (begun, ended), (again, _) in pairwise(times):
        pause = 1.5 * (ended - begun) - 2 * burst
        assert again - ended >= 0.9 * min(LONGEST_PAUSE, pause)
    threads.shutdown()


def test_n02_the_share_of_each_is_smaller_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """N02. Breaks when: the share does not depend on who is there, or nobody ever leaves."""
    # Longer than the test may take on a busy computer.
    monkeypatch.setattr(fair_threads, "PRESENT", 600.0)
    threads = FairThreads(1, "test", each=1, burst=BURST)
    shares = []
    for name in ("alice", "alice", "bob", "carol", "dave", "erin"):
        threads.submit(name, int).result(PATIENCE)
        threads.join()
        shares.append(threads.share())
    assert shares == [1 / 2, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 5]
    threads._present = dict.fromkeys(threads._present, time.monotonic() - 600.0)
    threads.submit("alice", int).result(PATIENCE)
    threads.join()
    assert threads.share() == 1 / 2
    threads.shutdown()


def test_a_page_and_a_message_never_pause() -> None:
    """A dozen units at once, as a page and a turn that begins ask for them.

    Breaks when: work waits that is less than a burst.
    """
    threads, order = FairThreads(1, "test", each=1, burst=BURST), list[str]()
    gate = Gate()
    threads.submit(None, gate)
    gate.begun()
    work = [threads.submit("alice", noting(order, "alice")) for _ in range(12)]
    work += [threads.submit("bob", noting(order, "bob")) for _ in range(12)]
    gate.open()
    wait(work, PATIENCE)
    assert order == ["alice", "bob"] * 12
    assert threads._rested("alice") <= time.monotonic()
    threads.shutdown()


def test_what_was_done_for_somebody_is_forgotten_with_time() -> None:
    """Breaks when: the use of a burst is kept for ever, or of people who are gone."""
    threads = FairThreads(1, "test", each=1, burst=BURST)
    threads.submit("alice", partial(time.sleep, 0.02)).result(PATIENCE)
    threads.join()
    assert threads._rested("alice") < time.monotonic()
    threads._ahead["alice"] = (1.0, time.monotonic() - 9)
    threads._present["alice"] = time.monotonic() - 9
    threads.submit("bob", int).result(PATIENCE)
    threads.join()
    assert set(threads._ahead) == set(threads._present) == {"bob"}
    threads.shutdown()


@given(
    people=st.lists(st.sampled_from("abcd"), max_size=30),
    count=st.integers(1, 4),
    each=st.integers(1, 4),
)
def test_everything_is_done_in_each_persons_order_within_bounds(
    people: list[str], count: int, each: int
) -> None:
    """Breaks when: work is left behind, done twice or out of order, or too much runs at once."""
    threads, lock = FairThreads(count, "test", each=each), threading.Lock()
    running: list[str] = []
    begun: list[tuple[str, int]] = []
    crowded: list[list[str]] = []

    def work(person: str, number: int) -> None:
        with lock:
            running.append(person)
            begun.append((person, number))
            if len(running) > count or running.count(person) > each:
                crowded.append(list(running))
        with lock:
            running.remove(person)

    submitted = [
        threads.submit(person, partial(work, person, number))
        for number, person in enumerate(people)
    ]
    threads.shutdown()
    assert all(one.done() and one.exception() is None for one in submitted)
    assert not crowded
    assert sorted(number for _, number in begun) == list(range(len(people)))
    if each == 1:
        for name in set(people):
            numbers = [number for person, number in begun if person == name]
            assert numbers == sorted(numbers)
