"""Signals to the host while compression works.

The sender is always the host's conversation model. Receivers should be ``async``; one that
raises is logged and changes nothing for the run or for other receivers.

``compression_started``
    ``conversation_id``, ``trigger`` (:class:`Trigger`), ``message_count``, ``source_tokens``
    (ruler tokens of the span), ``locks_input``. Sent again, with ``locks_input`` true, when a
    background run becomes the one that the conversation waits for.
``compression_progress``
    ``conversation_id``, and the fields of :class:`Progress`: ``tokens_written`` (by the present
    attempt), ``part`` and ``parts``, ``first_seq`` and ``through_seq`` (the messages of this part),
    ``seconds_left`` or None. About four a second at most, and one as each part begins.
``compression_completed``
    ``conversation_id``, ``outcome`` (:class:`Outcome`). Once for each run that had started,
    however it ended. A background run that prepared a draft succeeds with version 0.
``compression_withdrawn``
    ``conversation_id``. A run that held the conversation found nothing to do before it started.
``summary_changed``
    ``conversation_id``, ``version``. A person changed the summary, by whatever door: an edit, an
    undo or redo, a restored version, or none any more. Sent once it is stored.
"""

from __future__ import annotations

from typing import Any

from django.dispatch import Signal

from compression import conf

compression_started = Signal()
compression_progress = Signal()
compression_completed = Signal()
compression_withdrawn = Signal()
summary_changed = Signal()


async def send(signal: Signal, **facts: Any) -> None:
    """Tell every receiver; Django logs those that raise."""
    await signal.asend_robust(sender=conf.conversation_model(), **facts)
