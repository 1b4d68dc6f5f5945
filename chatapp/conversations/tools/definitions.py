"""The definitions of a server's tools: as reported, and as an administrator approved them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from chatapp.models import ToolDefinition, ToolServer
from compression.database import in_database_thread

#: Characters of a sentence about a failure that are kept.
_PROBLEM_LENGTH = 500


def sha256_of(raw: str) -> str:
    """The hash that pins a definition."""
    return hashlib.sha256(raw.encode()).hexdigest()


@transaction.atomic
def record(server_id: int, reported: Mapping[str, str]) -> None:
    """Store what a server lists now: its tools' names and their raw objects.

    A tool whose object is not the approved one is in quarantine from now on.
    """
    # Locks the row, so that two connections do not add the same tool.
    if not ToolServer.objects.filter(pk=server_id).update(read_at=timezone.now(), problem=""):
        return
    known = {one.name: one for one in ToolDefinition.objects.filter(server_id=server_id)}
    for name, raw in reported.items():
        row = known.get(name) or ToolDefinition(server_id=server_id, name=name)
        sha256 = sha256_of(raw)
        if row.pk is None or row.missing or row.reported_sha256 != sha256:
            row.reported, row.reported_sha256, row.missing = raw, sha256, False
            row.save()
    gone = [one.pk for name, one in known.items() if name not in reported]
    ToolDefinition.objects.filter(pk__in=gone, missing=False).update(missing=True)


def record_problem(server_id: int, problem: str) -> None:
    """Store why a server's definitions could not be read; the known ones stay as they are."""
    ToolServer.objects.filter(pk=server_id).update(
        read_at=timezone.now(), problem=problem[:_PROBLEM_LENGTH]
    )


@transaction.atomic
def approve(server_id: int, seen: Mapping[str, str], by: str) -> list[str]:
    """Approve definitions as an administrator has seen them: names and hashes.

    Returns the names of those that are approved now. One that has changed since is left out.
    """
    approved = []
    rows = ToolDefinition.objects.select_for_update().filter(server_id=server_id, missing=False)
    for row in rows.filter(name__in=list(seen)):
        if seen[row.name] == row.reported_sha256:
            row.approved, row.approved_sha256 = row.reported, row.reported_sha256
            row.approved_at, row.approved_by = timezone.now(), by
            row.save()
            approved.append(row.name)
    return approved


def withdraw(server_id: int, names: list[str]) -> None:
    """Take the approval of these tools back."""
    ToolDefinition.objects.filter(server_id=server_id, name__in=names).update(
        approved="", approved_sha256="", approved_at=None, approved_by=""
    )


arecord = in_database_thread(record, lane="background")
arecord_problem = in_database_thread(record_problem, lane="background")
