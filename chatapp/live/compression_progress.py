"""The progress of this process's compressions, for pages that are loaded meanwhile.

The database stores that a run is under way, its messages and its present part. The tokens written
change too often to be stored; for a run in another process, a page gets them with its next event.
"""

from __future__ import annotations

from compression.types import Progress

_progress: dict[int, Progress] = {}


def goes_on(conversation_id: int, progress: Progress) -> bool:
    """Note the progress of a run; returns whether it has begun another part."""
    before = _progress.get(conversation_id, Progress(part=0))
    _progress[conversation_id] = progress
    return progress.part != before.part


def ends(conversation_id: int) -> None:
    """Forget a finished run."""
    _progress.pop(conversation_id, None)


def of(conversation_id: int) -> Progress | None:
    """The progress of the present run; None if it is unknown in this process."""
    return _progress.get(conversation_id)
