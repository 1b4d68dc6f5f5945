"""Signals that compression sends to the host.

The sender is always the host's conversation model. Receivers should be ``async``. An error in one
is logged and affects neither the run nor other receivers.

``compression_started``
    ``conversation_id``, ``trigger`` (:class:`Trigger`), ``message_count``, ``source_tokens``
    (ruler tokens of the span), ``locks_input``. Sent again, with ``locks_input`` true, when a
    request comes to wait for a background run.
``compression_progress``
    ``conversation_id``, and the fields of :class:`Progress`: ``tokens_written`` (by the present
    attempt), ``part`` and ``parts``, ``first_seq`` and ``through_seq`` (the messages of this part),
    ``seconds_left`` or None, ``lines`` (the newest of the part that was finished last). At most
    about four a second, and one as each part begins.
``compression_completed``
    ``conversation_id``, ``outcome`` (:class:`Outcome`). Once for each run that was announced as
    started, however it ended. A background run that prepared a draft succeeds with version 0.
``compression_withdrawn``
    ``conversation_id``. A run that held the lease found nothing to do before it started.
``masks_changed``
    ``conversation_id``, ``change`` (:class:`MaskChange`), ``on``. Messages were masked, or a person
    took a batch of masks off (``on`` is false). Sent once the change is stored.
``summary_changed``
    ``conversation_id``, ``version``. A person changed the summary, wherever: by an edit, an undo
    or redo, by restoring a version, or by clearing it. Sent once the change is stored.
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
masks_changed = Signal()


async def send(signal: Signal, **facts: Any) -> None:
    """Send to every receiver; Django logs those that raise."""
    await signal.asend_robust(sender=conf.conversation_model(), **facts)
