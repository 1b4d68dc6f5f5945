"""The rounds of a turn, counted."""

from __future__ import annotations

from compression.tools.rounds import Rounds


def test_so_many_requests_offer_tools_and_then_none() -> None:
    """Breaks when: the last request still offers tools."""
    rounds = Rounds(most=2)
    offers = []
    for _ in range(4):
        offers.append(rounds.offers)
        rounds = rounds.after(offered=rounds.offers)
    assert offers == [True, True, False, False]


def test_a_request_without_tools_is_no_round() -> None:
    """Recall may be offered only after a compression in the midst of a turn."""
    assert Rounds(most=1).after(offered=False).offers
    assert not Rounds(most=0).offers
