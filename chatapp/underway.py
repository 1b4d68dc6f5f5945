"""How far the compressions are that run in this process, for a page that is loaded meanwhile.

The database knows that one runs, not how far it is: lost with the process is a figure only. Of a
run elsewhere a page learns as soon as that one goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run has said of itself; 0 for what is not known."""

    messages: int = 0
    tokens_written: int = 0


_NOTHING = Progress()
_known: dict[int, Progress] = {}


def begins(conversation_id: int, messages: int) -> None:
    """A run takes in so many messages; 0 when it is not said, and what was said of it stays."""
    known = of(conversation_id)
    _known[conversation_id] = replace(known, messages=messages or known.messages)


def writes(conversation_id: int, tokens: int) -> Progress:
    """It has written so many tokens. All that is known of it now."""
    progress = _known[conversation_id] = replace(of(conversation_id), tokens_written=tokens)
    return progress


def ends(conversation_id: int) -> None:
    """It is over."""
    _known.pop(conversation_id, None)


def of(conversation_id: int) -> Progress:
    """What is known of the run under way."""
    return _known.get(conversation_id, _NOTHING)
