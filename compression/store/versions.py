"""A person's changes to a summary: undo, redo, restore, edit, clear. Each is one transaction.

Every change writes version n+1 with one conditional UPDATE. A version may be restored only while
every message that it stands for is unchanged (I14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, QuerySet
from django.db.models.functions import Now

from compression import conf
from compression.exceptions import (
    NothingToCompress,
    NothingToUndo,
    StaleSource,
    StaleVersion,
)
from compression.ledger.lines import remembered
from compression.models import AbstractSummary, Change
from compression.ports import Transcript
from compression.store.drafts import retire
from compression.store.fingerprints import fingerprint, fingerprint_matches
from compression.store.rows import (
    Base,
    Version,
    clean,
    conversations,
    insert,
    read_base,
    read_version,
    summaries,
    to_version,
)
from compression.store.worded import worded
from compression.types import Item, Ledger, SummaryStatus, Trigger


def versions(conversation_id: int, *, attempts: bool = False) -> tuple[Version, ...]:
    """All versions, newest first; with ``attempts`` also rows that never became a version."""
    rows = summaries(conversation_id).exclude(status=SummaryStatus.PARTIAL.value).order_by("-pk")
    if not attempts:
        rows = rows.filter(version__gt=0)
    return tuple(to_version(row) for row in rows)


def restore(
    conversation_id: int,
    version: int,
    *,
    author_id: int | None,
    transcript: Transcript,
    expected_version: int | None = None,
) -> int:
    """Make an older version's content the active one; 0 means no summary. Returns the new version.

    Raises StaleVersion when there is no such version, the summary changed meanwhile, or
    ``expected_version`` is not the active one, and StaleSource when a message under it was
    superseded or removed.
    """
    with transaction.atomic():
        base = _expected(conversation_id, expected_version)
        return _restore(base, version, author_id, transcript)


def undo(
    conversation_id: int,
    *,
    author_id: int | None,
    transcript: Transcript,
    expected_version: int | None = None,
) -> int:
    """Restore what the active version was made on. Raises NothingToUndo, or as restore()."""
    with transaction.atomic():
        base = _expected(conversation_id, expected_version)
        if not base.version:
            raise NothingToUndo
        active = read_version(conversation_id, base.version)
        if active.stands_for == 0:
            raise NothingToUndo
        return _restore(base, active.parent, author_id, transcript)


def redo(
    conversation_id: int,
    *,
    author_id: int | None,
    transcript: Transcript,
    expected_version: int | None = None,
) -> int:
    """Restore what the last undo took away. Raises NothingToUndo, or as restore()."""
    with transaction.atomic():
        base = _expected(conversation_id, expected_version)
        following = _following(base)
        if following is None:
            raise NothingToUndo("There is nothing to redo.")
        return _restore(base, following, author_id, transcript)


def undone(conversation_id: int) -> bool:
    """Whether a later version was undone; automatic compression then waits until 0.95."""
    return redoes(conversation_id) is not None


def redoes(conversation_id: int) -> Trigger | None:
    """The trigger of the version that :func:`redo` would bring back; None when there is none."""
    following = _following(read_base(conversation_id))
    return None if following is None else read_version(conversation_id, following).trigger


def edit(
    base: Base, text: str, ledger: Ledger, *, author_id: int | None, summary_tokens: int
) -> int:
    """Replace version ``base.version`` by a person's text. Returns the new version.

    Raises StaleVersion with both texts when the summary changed meanwhile.
    """
    with transaction.atomic():
        values: dict[str, Any] = {"summary_tokens": summary_tokens}
        if base.version:
            values = _content(read_version(base.conversation_id, base.version)) | values
        values |= {"text": clean(text), "ledger": ledger, "degraded": False}
        return _write(base, "edit", Trigger.EDIT, author_id, base.boundary, values)


def clear(
    conversation_id: int,
    *,
    author_id: int | None,
    transcript: Transcript,
    through_seq: int | None = None,
) -> int:
    """Move the boundary after the last ended turn, or to ``through_seq``, with no summary.

    Returns the new version. Raises NothingToCompress when the boundary is there already, and
    StaleVersion when the summary changed meanwhile.
    """
    with transaction.atomic():
        base = read_base(conversation_id)
        items = transcript.items(conversation_id, after_seq=base.boundary, through_seq=through_seq)
        first_open = next((item.seq for item in items if item.open), None)
        cleared = [item for item in items if first_open is None or item.seq < first_open]
        if not cleared and not base.text:
            raise NothingToCompress(
                "There is nothing to clear: there is no new message since the last summary."
            )
        boundary = cleared[-1].seq if cleared else base.boundary
        values = {
            "first_seq": base.boundary + 1,
            "through_seq": boundary,
            "message_count": len(cleared),
            "source_fingerprint": fingerprint(cleared),
            "source_tokens": sum(item.tokens for item in cleared),
        }
        return _write(base, "clear", Trigger.CLEAR, author_id, boundary, values)


def stale(base: Base, text: str) -> StaleVersion:
    """The conflict error with both texts, which the screen shows side by side."""
    return StaleVersion(
        fields={
            "submitted_text": text,
            "current_text": base.text,
            "current_version": base.version,
        },
    )


def _expected(conversation_id: int, version: int | None) -> Base:
    """The summary as it is; raises StaleVersion if a person has read another ``version`` of it."""
    base = read_base(conversation_id)
    if version is not None and version != base.version:
        raise StaleVersion("The summary has changed meanwhile. Look at it again; nothing was done.")
    return base


def _restore(base: Base, version: int, author_id: int | None, transcript: Transcript) -> int:
    values: dict[str, Any] = {"restored_from": 0, "parent": 0}
    boundary = 0
    if version:
        target = read_version(base.conversation_id, version)
        if not fingerprint_matches(base.conversation_id, target, transcript):
            raise StaleSource(
                fields={
                    "version": version,
                    "submitted_text": target.text,
                    "current_text": base.text,
                }
            )
        values = _content(target)
        values |= {"restored_from": target.stands_for, "parent": target.parent}
        boundary = target.through_seq
    return _write(base, "restore", Trigger.RESTORE, author_id, boundary, values)


def _following(base: Base) -> int | None:
    """The newest version made on the restored content; None if the last change was no restore.

    A version made on a restored copy counts as made on the copied version.
    """
    if not base.version:
        return None
    made = _made(conversation=base.conversation_id)
    stands_for = {number: number if old is None else old for number, _, old in made}
    stands_for[0] = 0
    if stands_for[base.version] == base.version:
        return None
    shown = stands_for[base.version]
    children = [
        number for number, parent, old in made if old is None and stands_for.get(parent) == shown
    ]
    return children[-1] if children else None


@worded(conversation=BigIntegerField)
def _made(conversation: int) -> QuerySet[AbstractSummary, tuple[int, int, int | None]]:
    rows = summaries(conversation).filter(version__gt=0).order_by("version")
    return rows.values_list("version", "parent", "restored_from")


def _content(version: Version) -> dict[str, Any]:
    """The fields that hold a version's text and say which messages it stands for."""
    copied = [
        "text",
        "ledger",
        "first_seq",
        "through_seq",
        "message_count",
        "source_fingerprint",
        "source_tokens",
        "summary_tokens",
        "model",
        "prompt_version",
        "degraded",
        "audit",
    ]
    return {name: getattr(version, name) for name in copied}


def _write(
    base: Base,
    change: Change,
    trigger: Trigger,
    author_id: int | None,
    boundary: int,
    values: dict[str, Any],
) -> int:
    """Write version n+1. Needs no lease: a draft that comes later finds version n superseded."""
    version = base.version + 1
    changed = (
        conversations(base.conversation_id)
        .filter(compression_version=base.version)
        .update(
            compressed_context=values.get("text", ""),
            # Without summary and boundary, nothing is compressed.
            compressed_at=Now() if values.get("text") or boundary else None,
            compressed_through=boundary,
            compression_version=version,
            **conf.conversation_model().compression_changes(change),
        )
    )
    if not changed:
        raise stale(read_base(base.conversation_id), values.get("text", ""))
    retire(base.conversation_id)
    insert(
        base.conversation_id,
        status=SummaryStatus.ACTIVE,
        parent=values.pop("parent", base.version),
        version=version,
        trigger=trigger.value,
        author_id=author_id,
        **values,
    )
    return version


def copy_versions(source_id: int, target_id: int, *, through_seq: int) -> int:
    """Copy to a branch the versions whose span lies within its messages.

    Returns the active version's number. The target has no version yet, and holds messages 1 to
    ``through_seq`` with the same seqs.
    """
    with transaction.atomic():
        rows = summaries(source_id).filter(version__gt=0, through_seq__lte=through_seq)
        kept = [to_version(row) for row in rows.order_by("version")]
        if not kept:
            return 0
        for version in kept:
            insert(
                target_id,
                status=SummaryStatus.SUPERSEDED,
                parent=version.parent,
                version=version.version,
                trigger=version.trigger.value,
                restored_from=version.restored_from,
                author_id=version.author_id,
                **_content(version),
            )
        newest = kept[-1]
        summaries(target_id).filter(version=newest.version).update(
            status=SummaryStatus.ACTIVE.value
        )
        _start_with(target_id, newest.text, newest.through_seq, newest.version)
        return newest.version


def bring_versions(
    target_id: int, versions: Sequence[Version], *, active: int, author_id: int | None
) -> None:
    """Give an imported conversation the versions of its summary, oldest first.

    It has no version yet, and holds the messages they stand for with the same seqs. ``author_id``
    becomes the author of what a person wrote.
    """
    with transaction.atomic():
        for version in versions:
            of_active = version.version == active
            key = insert(
                target_id,
                status=SummaryStatus.ACTIVE if of_active else SummaryStatus.SUPERSEDED,
                parent=version.parent,
                version=version.version,
                trigger=version.trigger.value,
                restored_from=version.restored_from,
                author_id=None if version.author_id is None else author_id,
                usage_before=version.usage_before,
                usage_after=version.usage_after,
                cost=version.cost,
                duration=version.duration,
                **_content(version),
            )
            # The insert sets this column to the present time, whatever value it is given.
            summaries(target_id).filter(pk=key).update(created_at=version.created_at)
            if of_active:
                _start_with(target_id, version.text, version.through_seq, version.version)


def carry_over(
    target_id: int,
    base: Base,
    *,
    summary_tokens: int,
    author_id: int | None,
    quoted: Sequence[Item] = (),
) -> int:
    """Give a conversation that continues another its summary as version 1.

    ``quoted`` are the first messages of the new conversation, which each request quotes: the
    boundary is after them.
    """
    with transaction.atomic():
        started = replace(base, conversation_id=target_id, boundary=0, version=0)
        values: dict[str, Any] = {
            "text": base.text,
            "ledger": remembered(base.ledger),
            "summary_tokens": summary_tokens,
        }
        boundary = quoted[-1].seq if quoted else 0
        if quoted:
            values |= {
                "first_seq": quoted[0].seq,
                "through_seq": boundary,
                "message_count": len(quoted),
                "source_fingerprint": fingerprint(quoted),
                "source_tokens": sum(item.tokens for item in quoted),
            }
        return _write(started, "restore", Trigger.RESTORE, author_id, boundary, values)


def carried_over(conversation_id: int) -> str:
    """The text of the summary with which :func:`carry_over` began a conversation; else empty."""
    first = summaries(conversation_id).filter(
        version=1, trigger=Trigger.RESTORE.value, restored_from=None
    )
    return first.values_list("text", flat=True).first() or ""


def _start_with(conversation_id: int, text: str, boundary: int, version: int) -> None:
    conversations(conversation_id).update(
        compressed_context=text,
        compressed_at=Now(),
        compressed_through=boundary,
        compression_version=version,
        **conf.conversation_model().compression_changes("restore"),
    )
