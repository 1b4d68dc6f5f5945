"""How much people without an account may ask for."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from chatapp.accounts.visitors import AT_ONCE, MOST_PLACES, MOST_READS, WINDOW_SECONDS, Visitors
from chatapp.errors import RateLimited


def test_n02_one_address_may_ask_so_often_and_others_still() -> None:
    """N02: refused until its window is over; whoever comes from elsewhere is not.

    Breaks when: requests are not counted by address, or a refused one begins a new window.
    """
    now = [100.0]
    visitors = Visitors(lambda: now[0])
    for _ in range(MOST_READS):
        with visitors.visit("192.0.2.1"):
            pass
    now[0] += WINDOW_SECONDS / 2
    with pytest.raises(RateLimited) as refused, visitors.visit("192.0.2.1"):
        pass
    assert refused.value.retry_after == WINDOW_SECONDS / 2
    with visitors.visit("192.0.2.2"):
        pass
    now[0] += WINDOW_SECONDS / 2
    with visitors.visit("192.0.2.1"):
        pass


def test_n02_a_network_of_ipv6_counts_as_one() -> None:
    visitors = Visitors()
    for number in range(MOST_READS):
        with visitors.visit(f"2001:db8::{number:x}"):
            pass
    with pytest.raises(RateLimited), visitors.visit("2001:db8::ffff"):
        pass


def test_i26_few_addresses_are_remembered() -> None:
    """I26: Breaks when: an address that is not seen any more is kept for ever."""
    visitors = Visitors()
    for number in range(MOST_PLACES + 50):
        with visitors.visit(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"):
            pass
    assert len(visitors._seen) == MOST_PLACES


def test_n02_only_so_many_are_served_at_once() -> None:
    """N02: Breaks when: requests from many addresses are not counted together."""
    visitors = Visitors()
    with ExitStack() as stack:
        for number in range(AT_ONCE):
            stack.enter_context(visitors.visit(f"192.0.2.{number}"))
        with pytest.raises(RateLimited), visitors.visit("192.0.2.99"):
            pass
    with visitors.visit("192.0.2.99"):
        pass
