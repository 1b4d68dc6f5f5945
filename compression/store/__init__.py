"""Every query and write of compression: the only package of this app that touches the ORM.

Each function is synchronous and one unit of work in its own transaction. Its twin with an ``a``
prefix is awaited; the twin's work runs to its end even if its awaiter is cancelled.
"""

from __future__ import annotations

from compression.database import in_database_thread
from compression.store.again import read_again
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
from compression.store.masks import put_on, take_off
from compression.store.parts import drop_parts, finished_parts, keep_parts
from compression.store.previews import (
    Finished,
    Preview,
    apply_preview,
    discard_preview,
    discarded_at,
    preview,
    preview_over,
    save_preview,
)
from compression.store.reviews import decide, mark_seen
from compression.store.rows import Base, FitDraft, Version, read_base, read_version
from compression.store.spans import StandsFor, stands_for
from compression.store.versions import (
    bring_versions,
    carried_over,
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

aapply = in_database_thread(apply)
aapply_preview = in_database_thread(apply_preview)
aapply_ready = in_database_thread(apply_ready)
abreaker = in_database_thread(breaker)
acancel = in_database_thread(cancel)
aclaim = in_database_thread(claim)
aclear = in_database_thread(clear)
adiscard_preview = in_database_thread(discard_preview)
adiscard_ready = in_database_thread(discard_ready)
adiscarded_at = in_database_thread(discarded_at)
adrop_parts = in_database_thread(drop_parts)
aedit = in_database_thread(edit)
afinished_parts = in_database_thread(finished_parts)
akeep_parts = in_database_thread(keep_parts)
alease_trigger = in_database_thread(lease_trigger)
apreview = in_database_thread(preview)
apromote = in_database_thread(promote)
aput_on = in_database_thread(put_on)
aread = in_database_thread(read)
aread_again = in_database_thread(read_again)
aread_base = in_database_thread(read_base)
aread_ready = in_database_thread(read_ready)
aread_state = in_database_thread(read_state)
aready = in_database_thread(ready)
arecord_attempt = in_database_thread(record_attempt)
aredo = in_database_thread(redo)
arelease = in_database_thread(release)
arenew = in_database_thread(renew)
arestore = in_database_thread(restore)
asave_preview = in_database_thread(save_preview)
asave_ready = in_database_thread(save_ready)
atake_off = in_database_thread(take_off)
aundo = in_database_thread(undo)
aundone = in_database_thread(undone)
aversions = in_database_thread(versions)

__all__ = [
    "REPLACES_READY",
    "Base",
    "Breaker",
    "CompressionState",
    "Fingerprint",
    "Finished",
    "FitDraft",
    "Preview",
    "StandsFor",
    "Version",
    "aapply",
    "aapply_preview",
    "aapply_ready",
    "abreaker",
    "acancel",
    "aclaim",
    "aclear",
    "adiscard_preview",
    "adiscard_ready",
    "adiscarded_at",
    "adrop_parts",
    "aedit",
    "afinished_parts",
    "akeep_parts",
    "alease_trigger",
    "apply",
    "apply_preview",
    "apply_ready",
    "apreview",
    "apromote",
    "aread",
    "aread_again",
    "aread_base",
    "aread_ready",
    "aread_state",
    "aready",
    "arecord_attempt",
    "aredo",
    "arelease",
    "arenew",
    "arestore",
    "asave_preview",
    "asave_ready",
    "aundo",
    "aundone",
    "aversions",
    "breaker",
    "bring_versions",
    "cancel",
    "carried_over",
    "carry_over",
    "claim",
    "clear",
    "compression_state",
    "copy_versions",
    "decide",
    "discard_preview",
    "discard_ready",
    "discarded_at",
    "drop_parts",
    "edit",
    "fingerprint",
    "fingerprint_matches",
    "finished_parts",
    "keep_parts",
    "lease_trigger",
    "mark_seen",
    "preview",
    "preview_over",
    "promote",
    "read",
    "read_again",
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
    "save_preview",
    "save_ready",
    "stale",
    "stands_for",
    "under_way",
    "undo",
    "undone",
    "versions",
]
