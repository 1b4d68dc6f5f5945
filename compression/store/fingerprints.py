"""Fingerprints: is the source of a summary still what the conversation says (I14)?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from compression.ports import Transcript
from compression.store.rows import Version, summaries
from compression.types import Item, Role


class Fingerprint:
    """A fingerprint in the making: SHA-256 over (seq, text) of live items, added in their order.

    A tool's result counts by its seq and the call it answers: what the model sees of it changes
    when it is masked, though nobody changed it.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._empty = True

    def add(self, seq: int, role: Role, text: str, tool_call_id: str) -> None:
        """Add an item; ``text`` as :attr:`Item.text`."""
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
    """Whether the live messages of one span have this fingerprint now."""
    if through_seq == 0 or first_seq > through_seq:
        return expected == ""
    items = transcript.items(conversation_id, after_seq=first_seq - 1, through_seq=through_seq)
    return fingerprint(items) == expected


def fingerprint_matches(conversation_id: int, version: Version, transcript: Transcript) -> bool:
    """Whether a version may be shown to the model: its source, all the way down, still stands.

    A version's ledger carries its ancestors' entries, so their spans are looked at too. An empty
    summary says nothing, so nothing that was taken back can come back with it.
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
