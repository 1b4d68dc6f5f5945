"""Leases on compressing a conversation: claims that expire by the database's clock.

Each function is one unit of work, a single UPDATE or SELECT except in :func:`cancel`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from compression import conf
from compression.exceptions import CompressionCancelled
from compression.models import CompressibleConversation
from compression.store.rows import RELEASED, conversations, free, insert, writable
from compression.types import SummaryStatus, Trigger

NOBODY = "nobody"
"""The token of a lease whose holder is known to have died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionState:
    """A run as a screen shows it, read from the lease each time and never remembered."""

    running: bool = False
    trigger: Trigger | None = None
    locks_input: bool = False
    """The page locks its input as a courtesy; a message sent anyway is accepted."""
    started_at: datetime | None = None
    died: Trigger | None = None
    """Trigger of the last run if its process died and no other run has begun since."""


def claim(conversation_id: int, *, trigger: Trigger, locks_input: bool) -> str | None:
    """Take the lease. Returns its token, or None if another run holds it or the row is gone."""
    token = secrets.token_hex(16)
    claimed = (
        writable(conversation_id)
        .filter(free())
        .update(
            compression_token=token,
            compression_lease_expires_at=_expiry(),
            compression_started_at=Now(),
            compression_trigger=trigger.value,
            compression_locks_input=locks_input,
            **conf.conversation_model().compression_changes("claim"),
        )
    )
    return token if claimed else None


def renew(conversation_id: int, token: str) -> bool:
    """Hold the lease for another ``LEASE_SECONDS``. False: it is lost, so stop the work."""
    return bool(
        writable(conversation_id)
        .filter(compression_token=token)
        .update(compression_lease_expires_at=_expiry())
    )


def promote(conversation_id: int, *, trigger: Trigger, locks_input: bool) -> bool:
    """Make a background run one that a request waits for.

    The run, in whichever process, notices at its end that its trigger changed, and applies its
    draft instead of saving it. False when there is no background run.
    """
    return bool(
        writable(conversation_id)
        .filter(compression_trigger=Trigger.BACKGROUND.value)
        .exclude(free())
        .update(
            compression_trigger=trigger.value,
            compression_locks_input=locks_input,
            **conf.conversation_model().compression_changes("promote"),
        )
    )


def lease_trigger(conversation_id: int, token: str) -> Trigger | None:
    """The current trigger of the run with this token; None when its lease is lost."""
    trigger = (
        conversations(conversation_id)
        .filter(compression_token=token)
        .values_list("compression_trigger", flat=True)
        .first()
    )
    return Trigger(trigger) if trigger else None


def release(conversation_id: int, token: str) -> bool:
    """Give the lease back if this run still holds it. False when it does not."""
    return bool(_release(Q(compression_token=token), conversation_id))


def cancel(conversation_id: int) -> bool:
    """Take the lease away from its holder; that run stops at its next renewal.

    The cancellation is stored as an attempt, so that a later step without a summary can say why.
    It does not count for the breaker.
    """
    with transaction.atomic():
        held = conversations(conversation_id).exclude(compression_token="").select_for_update()
        found = held.values_list("compression_trigger", "compression_version").first()
        if found is None:
            return False
        trigger, version = found
        if conversations(conversation_id).exclude(free()).exists():
            insert(
                conversation_id,
                status=SummaryStatus.FAILED,
                parent=version,
                trigger=trigger,
                reason=CompressionCancelled.default_message,
                audit={"final": False, "cancelled": True},
            )
        return bool(_release(~Q(compression_token=""), conversation_id))


def release_all() -> int:
    """Free every lease, when the caller knows that no living process can hold one.

    Returns how many there were. The rows still tell which runs died, as after an expiry.
    """
    model = conf.conversation_model()
    held = model._default_manager.exclude(compression_token="")
    return held.filter(compression_lease_expires_at__isnull=False).update(
        compression_token=NOBODY,
        compression_lease_expires_at=None,
        **model.compression_changes("release"),
    )


def compression_state(conversation: CompressibleConversation) -> CompressionState:
    """The run of a row as it was read; asks the database's clock only if a token is set."""
    token = conversation.compression_token
    if not token:
        return CompressionState()
    alive = conversations(conversation.pk).filter(compression_token=token).exclude(free()).exists()
    if not alive:
        return CompressionState(died=Trigger(conversation.compression_trigger))
    return _running(conversation)


def _running(conversation: CompressibleConversation) -> CompressionState:
    return CompressionState(
        running=True,
        trigger=Trigger(conversation.compression_trigger),
        locks_input=conversation.compression_locks_input,
        started_at=conversation.compression_started_at,
    )


def under_way() -> Q:
    """The condition that a run is alive by the database's clock, for a host's own query.

    For a row that was read in part, :func:`compression_state` would read the rest later, when the
    run may be over.
    """
    return ~free()


def read_state(conversation_id: int) -> CompressionState:
    """The current run; not running when the conversation does not exist."""
    row = conversations(conversation_id).exclude(free()).first()
    return CompressionState() if row is None else _running(row)


def _expiry() -> object:
    return Now() + timedelta(seconds=conf.settings().lease_seconds)


def _release(held: Q, conversation_id: int) -> int:
    return (
        conversations(conversation_id)
        .filter(held)
        .update(**RELEASED, **conf.conversation_model().compression_changes("release"))
    )
