"""What a version was made of, so that it can be written anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compression.exceptions import NothingToCompress, StaleSource, StaleVersion
from compression.ledger.ledger import render
from compression.ledger.persons import with_persons
from compression.ports import Transcript
from compression.store.fingerprints import fingerprint_matches
from compression.store.rows import Base, Version, read_base, read_version
from compression.types import Item, Trigger

_NO_MODEL = "This summary was not made from messages, so it cannot be written anew."


def read_again(
    conversation_id: int, version: int, transcript: Transcript
) -> tuple[Base, tuple[Item, ...], int]:
    """The summary that ``version`` was made on, the live items after it, and where the span ends.

    The summary has all that a person wrote or took out since, and the number of ``version``, which
    must still be the active one when the new draft is applied. Raises StaleVersion when it is not
    active now, StaleSource when an earlier message has changed, and NothingToCompress.
    """
    base = read_base(conversation_id)
    if base.version != version:
        raise StaleVersion("The summary has changed meanwhile. Look at it again; nothing was done.")
    made = _made(conversation_id, version)
    before = Base(conversation_id=conversation_id)
    if made.parent:
        parent = read_version(conversation_id, made.parent)
        if not fingerprint_matches(conversation_id, parent, transcript):
            raise StaleSource
        before = replace(before, ledger=parent.ledger, boundary=parent.through_seq)
    ledger = with_persons(before.ledger, base.ledger)
    again = replace(before, ledger=ledger, text=render(ledger), version=version)
    items: Sequence[Item] = transcript.items(conversation_id, after_seq=again.boundary)
    return again, tuple(items), made.through_seq


def _made(conversation_id: int, version: int) -> Version:
    """The version made from messages that this one repeats, edits or restores."""
    seen = set[int]()
    while version and version not in seen:
        seen.add(version)
        one = read_version(conversation_id, version)
        if one.restored_from:
            version = one.restored_from
        elif one.trigger is Trigger.EDIT:
            version = one.parent
        elif one.trigger in (Trigger.CLEAR, Trigger.RESTORE):
            break
        else:
            return one
    raise NothingToCompress(_NO_MODEL)
