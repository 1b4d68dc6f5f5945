"""The definitions of a server's tools: as reported, and as an administrator approved them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chatapp.models import ToolDefinition, ToolServer
from compression.database import in_database_thread

#: The fields of a definition that nobody has approved.
NOT_APPROVED: Final[Mapping[str, Any]] = {
    "approved": "",
    "approved_sha256": "",
    "approved_at": None,
    "approved_by": "",
}
#: Characters of a sentence about a failure that are kept.
_PROBLEM_LENGTH = 500


def sha256_of(raw: str) -> str:
    """The hash that pins a definition."""
    return hashlib.sha256(raw.encode()).hexdigest()


@transaction.atomic
def record(server_id: int, reported: Mapping[str, str]) -> None:
    """Store what a server lists now: its tools' names and their raw objects.

    A tool whose object is not the approved one is in quarantine from now on. What the server no
    longer lists is kept only if it was approved.
    """
    # Locks the row, so that two connections do not add the same tool.
    if not ToolServer.objects.filter(pk=server_id).update(read_at=timezone.now(), problem=""):
        return
    rows = ToolDefinition.objects.filter(server_id=server_id)
    known = {name: rest for name, *rest in rows.values_list("name", "reported_sha256", "missing")}
    for name, raw in reported.items():
        sha256 = sha256_of(raw)
        if known.get(name) != [sha256, False]:
            rows.update_or_create(
                server_id=server_id,
                name=name,
                defaults={"reported": raw, "reported_sha256": sha256, "missing": False},
            )
    gone = rows.exclude(name__in=list(reported))
    gone.filter(approved_sha256="").delete()
    gone.filter(missing=False).update(missing=True)


@transaction.atomic
def quarantine(server_id: int, reported: Mapping[str, str]) -> None:
    """Withdraw tools that a server, asked before a call, does not list as they were approved.

    Nothing else is stored: a server could list something new before each call. A tool that is
    listed again is offered again; one that has changed, once an administrator has looked.
    """
    approved = ToolDefinition.objects.filter(
        server_id=server_id, reported_sha256=F("approved_sha256")
    )
    for name, sha256, missing in approved.values_list("name", "approved_sha256", "missing"):
        row, raw = approved.filter(name=name), reported.get(name)
        if raw is not None and sha256_of(raw) != sha256:
            row.update(reported=raw, reported_sha256=sha256_of(raw), missing=False)
        elif missing != (raw is None):
            row.update(missing=raw is None)


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
    ToolDefinition.objects.filter(server_id=server_id, name__in=names).update(**NOT_APPROVED)


arecord = in_database_thread(record, lane="background")
aquarantine = in_database_thread(quarantine, lane="background")
arecord_problem = in_database_thread(record_problem, lane="background")
