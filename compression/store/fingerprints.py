"""Whether what a summary was made of is still what the conversation says (I14)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from compression.ports import Transcript
from compression.store.rows import Version, summaries
from compression.types import Item


def fingerprint(items: Iterable[Item]) -> str:
    """SHA-256, hexadecimal, over (seq, text) of the live items; empty when there are none.

    A tool's result counts by its seq and the call it answers: what the model sees of it changes
    when it is masked, though nobody changed it.
    """
    digest = hashlib.sha256()
    empty = True
    for item in items:
        said = item.tool_call_id if item.role == "tool" else item.text
        digest.update(json.dumps([item.seq, said]).encode() + b"\n")
        empty = False
    return "" if empty else digest.hexdigest()


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
