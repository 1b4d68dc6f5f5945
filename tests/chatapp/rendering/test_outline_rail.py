"""The outline's list and its rail."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from chatapp.live.outline import Entry, Outline, Stratum
from chatapp.rendering.outline_rail import HEIGHT, in_order, rail

NOW = datetime(2027, 1, 5, 12, tzinfo=UTC)


def entry(seq: int) -> Entry:
    return Entry(seq=seq, role="user", line=f"m{seq}", created_at=NOW, pinned=False)


def stratum(first: int, through: int, **more: Any) -> Stratum:
    values = {"version": 1, "cleared": False, "created_at": NOW, **more}
    return Stratum(first_seq=first, through_seq=through, **values)


def outline(*seqs: int, strata: tuple[Stratum, ...] = (), **more: Any) -> Outline:
    values = {"pins": [], "last_seq": 10, "event_no": 1, **more}
    return Outline(entries=[entry(seq) for seq in seqs], strata=list(strata), **values)


def places(page: Outline) -> list[float]:
    """Entries by their seq, strata by half a seq more."""
    return [one.seq if isinstance(one, Entry) else one.through_seq + 0.5 for one in in_order(page)]


def test_each_stratum_is_on_one_page() -> None:
    """It follows the entry at or before its end; pages that meet have it once.

    Breaks when: a page takes strata that end where its last entry does.
    """
    strata = (stratum(1, 2), stratum(3, 4), stratum(5, 6))
    first = outline(1, 3, has_newer=True, strata=strata)
    second = outline(5, 7, begins_after=3, strata=strata)
    assert places(first) == [1, 2.5, 3]
    assert places(second) == [4.5, 5, 6.5, 7]
    assert places(outline(1, 3, 5, 7, strata=strata)) == places(first) + places(second)


def test_the_rail_is_the_whole_conversation() -> None:
    """Bands follow each other from top to bottom, and none is too low to be seen.

    Breaks when: a band begins at its first message's end, or the live messages have none.
    """
    strata = (stratum(1, 4, cleared=True), stratum(5, 9_990))
    shown = rail(outline(strata=strata, last_seq=10_000, pins=[1, 5_001]))
    assert [band.kind for band in shown.bands] == ["cleared", "summary", "verbatim"]
    assert shown.bands[0].y == 0
    assert all(one.y <= other.y for one, other in pairwise(shown.bands))
    assert all(0 < band.height <= HEIGHT for band in shown.bands)
    assert shown.pins == [0, HEIGHT / 2]
    assert rail(outline(last_seq=0)).bands == []
    assert [band.kind for band in rail(outline(1)).bands] == ["verbatim"]
