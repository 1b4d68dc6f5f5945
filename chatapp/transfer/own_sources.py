"""New source fingerprints for the summaries in our own exports, made from the imported messages.

A version names its source by a fingerprint of the messages. Removing hidden characters from them
would change it, and no version could be restored. So a version whose source is unchanged in the
file gets the fingerprint of the same messages as they are stored here. Any other, for instance one
before an edit, keeps its own, which matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatapp.transfer import fields
from chatapp.transfer.values import ForeignMessage
from compression.store import Fingerprint, Version

#: Spans that are followed at once; those of our versions hardly overlap. Each message is hashed
#: twice for each span, and a file could name thousands.
MOST_OPEN = 8


class Sources:
    """The fingerprints of all versions' spans, in the file and here, computed during reading."""

    def __init__(self, summaries: Iterable[Any]) -> None:
        self._ends: dict[int, set[int]] = {}
        for one in map(fields.mapping, summaries):
            first, through = one.get("first_seq"), one.get("through_seq")
            if isinstance(first, int) and isinstance(through, int):
                self._ends.setdefault(first, set()).add(through)
        self._open: dict[int, tuple[Fingerprint, Fingerprint]] = {}
        self._known: dict[tuple[int, int, str], str] = {}

    def add(self, seq: int, raw: Mapping[str, Any], message: ForeignMessage) -> None:
        """Add the next message, as it is in the file and as it was read."""
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
        """The fingerprint that the version gets here."""
        given = version.source_fingerprint
        return self._known.get((version.first_seq, version.through_seq, given), given)


def _sent(text: Any, added: Any) -> str:
    """The text of a message that the model would be sent."""
    said = text if isinstance(text, str) else ""
    return f"{said}\n\n{added}" if isinstance(added, str) and added else said
