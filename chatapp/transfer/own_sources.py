"""What the summaries of our own export were made of, told again for the messages as stored.

A version names its source by a fingerprint of the messages. Taking hidden characters out of them
would change it, and no version could be put back. So where a version's source still stood in the
file, it is given the fingerprint of the same messages as they are stored here; where it did not,
as after an edit, it keeps the one that fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatapp.transfer import fields
from chatapp.transfer.values import ForeignMessage
from compression.store import Fingerprint, Version

#: Spans that are followed at once; those of our own versions hardly overlap. Each message is hashed
#: twice for each of them, and a file could name thousands.
MOST_OPEN = 8


class Sources:
    """The fingerprints of each version's span, in the file and here, taken as messages are read."""

    def __init__(self, summaries: Iterable[Any]) -> None:
        self._ends: dict[int, set[int]] = {}
        for one in map(fields.mapping, summaries):
            first, through = one.get("first_seq"), one.get("through_seq")
            if isinstance(first, int) and isinstance(through, int):
                self._ends.setdefault(first, set()).add(through)
        self._open: dict[int, tuple[Fingerprint, Fingerprint]] = {}
        self._known: dict[tuple[int, int, str], str] = {}

    def add(self, seq: int, raw: Mapping[str, Any], message: ForeignMessage) -> None:
        """The next message, as it stands in the file and as it was read."""
        if seq in self._ends and len(self._open) < MOST_OPEN:
            self._open[seq] = Fingerprint(), Fingerprint()
        for first, (there, here) in list(self._open.items()):
            if not message.superseded:
                call = str(raw.get("tool_call_id") or "")
                there.add(seq, message.role, _sent(raw.get("text"), raw.get("added_context")), call)
                text = _sent(message.text, message.added_context)
                here.add(seq, message.role, text, message.tool_call_id)
            if seq in self._ends[first]:
                self._known[first, seq, there.hexdigest()] = here.hexdigest()
            if seq >= max(self._ends[first]):
                del self._open[first]

    def stored(self, version: Version) -> str:
        """The fingerprint that the version is to have here."""
        given = version.source_fingerprint
        return self._known.get((version.first_seq, version.through_seq, given), given)


def _sent(text: Any, added: Any) -> str:
    """What the model would be sent of a message."""
    said = text if isinstance(text, str) else ""
    return f"{said}\n\n{added}" if isinstance(added, str) and added else said
