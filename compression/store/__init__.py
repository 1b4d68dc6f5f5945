"""Every query and write of compression: the only package of this app that touches the ORM.

Each function is synchronous and one unit of work in its own transaction. Its twin with an ``a``
prefix is awaited; the twin's work runs to its end even if its awaiter is cancelled.
"""

from __future__ import annotations

from compression.database import across
from compression.store.drafts import (
    REPLACES_READY,
    Breaker,
    apply,
    apply_ready,
    breaker,
    discard_ready,
    read,
    read_ready,
    ready,
    record_attempt,
    save_ready,
)
from compression.store.fingerprints import Fingerprint, fingerprint, fingerprint_matches
from compression.store.leases import (
    CompressionState,
    cancel,
    claim,
    compression_state,
    lease_trigger,
    promote,
    read_state,
    release,
    release_all,
    renew,
    under_way,
)
from compression.store.parts import drop_parts, finished_parts, keep_parts
from compression.store.rows import Base, FitDraft, Version, read_base, read_version
from compression.store.spans import StandsFor, stands_for
from compression.store.versions import (
    bring_versions,
    carry_over,
    clear,
    copy_versions,
    edit,
    redo,
    redoes,
    restore,
    stale,
    undo,
    undone,
    versions,
)

aapply = across(apply)
aapply_ready = across(apply_ready)
abreaker = across(breaker)
acancel = across(cancel)
aclaim = across(claim)
aclear = across(clear)
adiscard_ready = across(discard_ready)
adrop_parts = across(drop_parts)
aedit = across(edit)
afinished_parts = across(finished_parts)
akeep_parts = across(keep_parts)
alease_trigger = across(lease_trigger)
apromote = across(promote)
aread = across(read)
aread_base = across(read_base)
aread_ready = across(read_ready)
aread_state = across(read_state)
aready = across(ready)
arecord_attempt = across(record_attempt)
aredo = across(redo)
arelease = across(release)
arenew = across(renew)
arestore = across(restore)
asave_ready = across(save_ready)
aundo = across(undo)
aundone = across(undone)
aversions = across(versions)

__all__ = [
    "REPLACES_READY",
    "Base",
    "Breaker",
    "CompressionState",
    "Fingerprint",
    "FitDraft",
    "StandsFor",
    "Version",
    "aapply",
    "aapply_ready",
    "abreaker",
    "acancel",
    "aclaim",
    "aclear",
    "adiscard_ready",
    "adrop_parts",
    "aedit",
    "afinished_parts",
    "akeep_parts",
    "alease_trigger",
    "apply",
    "apply_ready",
    "apromote",
    "aread",
    "aread_base",
    "aread_ready",
    "aread_state",
    "aready",
    "arecord_attempt",
    "aredo",
    "arelease",
    "arenew",
    "arestore",
    "asave_ready",
    "aundo",
    "aundone",
    "aversions",
    "breaker",
    "bring_versions",
    "cancel",
    "carry_over",
    "claim",
    "clear",
    "compression_state",
    "copy_versions",
    "discard_ready",
    "drop_parts",
    "edit",
    "fingerprint",
    "fingerprint_matches",
    "finished_parts",
    "keep_parts",
    "lease_trigger",
    "promote",
    "read",
    "read_base",
    "read_ready",
    "read_state",
    "read_version",
    "ready",
    "record_attempt",
    "redo",
    "redoes",
    "release",
    "release_all",
    "renew",
    "restore",
    "save_ready",
    "stale",
    "stands_for",
    "under_way",
    "undo",
    "undone",
    "versions",
]
