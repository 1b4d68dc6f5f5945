"""What a person did to a summary, carried to an earlier ledger of it. Pure."""

from __future__ import annotations

from compression.types import Ledger, Origin


def with_persons(earlier: Ledger, later: Ledger) -> Ledger:
    """The ``earlier`` ledger with all that a person wrote, pinned or took out in the ``later`` one.

    ``later`` was made from it, so that ids name the same entries in both.
    """
    entries = {one.id: one for one in earlier.entries}
    entries |= {one.id: one for one in later.entries if one.origin is Origin.PERSON}
    # A sentence that a person took out leaves no trace but its absence.
    told = [one for one in later.narrative if one.origin is Origin.PERSON]
    kept = [one for one in earlier.narrative if one in later.narrative and one not in told]
    return Ledger(entries=tuple(entries.values()), narrative=(*kept, *told))
