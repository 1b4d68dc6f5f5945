"""Fingerprints of a summary's source, to see whether its messages have changed (I14)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from compression.ports import Transcript
from compression.store.rows import Version, summaries
from compression.types import Item, Role


class Fingerprint:
    """A fingerprint being computed: SHA-256 over (seq, text) of live items, in their order.

    A tool result counts with its seq and the call it answers, not with its text, which masking
    changes.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._empty = True

    def add(self, seq: int, role: Role, text: str, tool_call_id: str) -> None:
        """Add an item; ``text`` as in :attr:`Item.text`."""
        said = tool_call_id if role == "tool" else text
        self._digest.update(json.dumps([seq, said]).encode() + b"\n")
        self._empty = False

    def hexdigest(self) -> str:
        """The fingerprint so far, hexadecimal; empty when there are no items."""
        return "" if self._empty else self._digest.hexdigest()


def fingerprint(items: Iterable[Item]) -> str:
    """The fingerprint of these items; empty when there are none."""
    made = Fingerprint()
    for item in items:
        made.add(item.seq, item.role, item.text, item.tool_call_id)
    return made.hexdigest()


def span_matches(
    conversation_id: int,
    transcript: Transcript,
    *,
    first_seq: int,
    through_seq: int,
    expected: str,
) -> bool:
    """Whether the live messages of one span still have this fingerprint."""
    if through_seq == 0 or first_seq > through_seq:
        return expected == ""
    items = transcript.items(conversation_id, after_seq=first_seq - 1, through_seq=through_seq)
    return fingerprint(items) == expected


def fingerprint_matches(conversation_id: int, version: Version, transcript: Transcript) -> bool:
    """Whether a version may be shown to the model: no message under it has changed.

    A version's ledger contains entries of its ancestors, so their spans are checked too. An empty
    summary always passes, since it says nothing.
    """
    chain = {
        number: (parent, (first_seq, through_seq, expected), text)
        for number, parent, first_seq, through_seq, expected, text in summaries(conversation_id)
        .filter(version__gt=0, version__lt=version.version)
        .values_list("version", "parent", "first_seq", "through_seq", "source_fingerprint", "text")
    }
    parent, text = version.parent, version.text
    span = (version.first_seq, version.through_seq, version.source_fingerprint)
    seen: set[tuple[int, int, str]] = set()
    while text:
        if span not in seen:
            seen.add(span)
            first_seq, through_seq, expected = span
            if not span_matches(
                conversation_id,
                transcript,
                first_seq=first_seq,
                through_seq=through_seq,
                expected=expected,
            ):
                return False
        if parent not in chain:
            break
        parent, span, text = chain[parent]
    return True
