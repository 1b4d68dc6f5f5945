"""Progress of this process's compressions, for a page that is loaded meanwhile.

The database knows that one runs, what it takes in and which part of that it is at; how much it has
written changes too often to be stored. Of a run elsewhere a page learns that as soon as it goes on.
"""

from __future__ import annotations

from compression.types import Progress

_progress: dict[int, Progress] = {}


def goes_on(conversation_id: int, progress: Progress) -> bool:
    """Note how far a run is; returns whether it has begun another part."""
    before = _progress.get(conversation_id, Progress(part=0))
    _progress[conversation_id] = progress
    return progress.part != before.part


def ends(conversation_id: int) -> None:
    """Forget a run that is over."""
    _progress.pop(conversation_id, None)


def of(conversation_id: int) -> Progress | None:
    """Progress of the run under way; None when it is not known here."""
    return _progress.get(conversation_id)
