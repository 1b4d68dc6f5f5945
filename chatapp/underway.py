"""How much the compressions of this process have written, for a page that is loaded meanwhile.

The database knows that one runs and what it takes in; how far it is changes too often to be stored.
Of a run elsewhere a page learns as soon as that one goes on.
"""

from __future__ import annotations

_written: dict[int, int] = {}


def writes(conversation_id: int, tokens: int) -> None:
    """A run has written so many tokens of its summary."""
    _written[conversation_id] = tokens


def ends(conversation_id: int) -> None:
    """It is over."""
    _written.pop(conversation_id, None)


def of(conversation_id: int) -> int:
    """Tokens that the run under way has written; 0 when it is not known here."""
    return _written.get(conversation_id, 0)
