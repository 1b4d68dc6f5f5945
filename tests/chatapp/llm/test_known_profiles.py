"""What a process knows of models without asking: for how long, and which word is newer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chatapp.llm.known_profiles import PROFILE_LIVES, KnownProfiles
from chatapp.llm.profiles import Profile
from chatapp.profile_store import StoredProfiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(StoredProfiles):
    """The rows of a database, and something that happens while they are read."""

    rows: dict[str, Profile] = field(default_factory=dict)
    meanwhile: list[Callable[[], None]] = field(default_factory=list)

    def profile(self, name: str) -> Profile | None:
        row = self.rows.get(name)
        for happen in self.meanwhile:
            happen()
        return row

    def profiles(self) -> list[Profile]:
        return list(self.rows.values())


class Known:
    """What is known, with rows and a clock of its own."""

    def __init__(self, *stored: Profile) -> None:
        self.rows = Rows(rows={one.name: one for one in stored})
        self.now = 1000.0
        self.profiles = KnownProfiles(self.rows, lambda: self.now)


A = Profile(name="a", window=4096)
B = Profile(name="b", window=8000)


def test_it_works() -> None:
    known = Known(replace(B, available=False), A)
    assert known.profiles.get("a") is None
    known.profiles.recall()
    assert (known.profiles.get("a"), known.profiles.get("b")) == (A, B)
    assert known.profiles.first_stored == "a", "the server has no other by now"


def test_it_is_recalled_once_and_gives_way_to_what_was_found_out() -> None:
    """Breaks when: what is stored replaces what was learned, or is read for every page."""
    known = Known(A, B)
    learned = replace(A, window=3000)
    known.profiles.know(learned)
    known.profiles.recall()
    assert known.profiles.get("a") == learned
    known.rows.rows["c"] = Profile(name="c")
    known.profiles.recall()
    assert known.profiles.get("c") is None


def test_the_revision_rises_with_each_change_and_no_other() -> None:
    known = Known()
    known.profiles.know(A)
    known.profiles.know(replace(A))
    assert known.profiles.revision == 1
    known.profiles.believe(replace(A, calibration=2.0))
    assert known.profiles.revision == 2


def test_what_was_read_is_believed_until_its_time_or_a_doubt() -> None:
    known = Known()
    known.profiles.know(A)
    assert known.profiles.believed("a") is None
    known.profiles.believe(A)
    assert known.profiles.believed("a") == A
    known.now += PROFILE_LIVES
    assert known.profiles.believed("a") is None
    known.profiles.believe(A)
    known.profiles.doubt("a")
    assert known.profiles.believed("a") is None
    assert known.profiles.get("a") == A


def test_a_row_is_read_again_at_most_every_few_seconds() -> None:
    known = Known(A)
    known.profiles.reread("a")
    changed = replace(A, window=2000)
    known.rows.rows["a"] = changed
    known.profiles.reread("a")
    assert known.profiles.get("a") == A
    known.now += PROFILE_LIVES
    known.profiles.reread("a")
    assert known.profiles.get("a") == changed
    known.rows.rows.clear()
    known.now += PROFILE_LIVES
    known.profiles.reread("a")
    assert known.profiles.get("a") == changed


def test_what_was_learned_while_a_row_was_read_is_newer() -> None:
    """Breaks when: the row that was read replaces what came meanwhile."""
    known = Known(A)
    learned = replace(A, window=3000)
    known.rows.meanwhile.append(lambda: known.profiles.know(learned))
    known.profiles.reread("a")
    assert known.profiles.get("a") == learned
