"""The versions of a project's lines: the newest, changing it, Undo and Redo."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from chatapp.conversations.projects.lines import KeptLines, Source, as_json, read
from chatapp.conversations.projects.rows import conversations_of, owned_project
from chatapp.live.project_views import LineOrigin, ProjectLine, ProjectLines
from chatapp.models import Conversation, Project, ProjectVersion
from compression.database import in_database_thread, snapshot
from compression.exceptions import StaleVersion

#: Versions that are kept; Undo reaches no further.
MOST_VERSIONS = 100
_OUTDATED = "The lines have changed meanwhile. Look at them again; nothing was done."


@dataclass(frozen=True, kw_only=True)
class Base:
    """The newest version, of which a change is made."""

    project_id: int
    version: int
    kept: KeptLines


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The result of a change."""

    version: int
    conversations: list[int]
    """Those whose open pages are to be told."""


def base(user_id: int, slug: str) -> Base:
    """The lines of the person's project as they are now. Raises NotFound."""
    row = owned_project(user_id, slug)
    return Base(project_id=row.pk, version=row.lines_version, kept=read(row.lines))


@transaction.atomic
def change(user_id: int, slug: str, version: int, kept: KeptLines) -> Changed:
    """Store the lines as the version after ``version``.

    Raises NotFound, and StaleVersion when that is not the newest any more.
    """
    row = owned_project(user_id, slug)
    _require_newest(row, version)
    return _write(row, as_json(kept), content_of=version + 1, before=_content_of(row))


@transaction.atomic
def undo(user_id: int, slug: str, version: int) -> Changed:
    """Bring back the lines from before the change that made ``version``. A second try does nothing.

    Raises NotFound, and StaleVersion when there is nothing to undo or the lines have changed since.
    """
    row = owned_project(user_id, slug)
    target = _before(row, version)
    if target is not None and _is_repeated(row, version, target):
        return Changed(version=row.lines_version, conversations=[])
    _require_newest(row, version)
    if target is None:
        raise StaleVersion("There is nothing to undo.", fields={"current_version": version})
    return _bring_back(row, target)


@transaction.atomic
def redo(user_id: int, slug: str, version: int) -> Changed:
    """Bring back the lines that Undo, which made ``version``, took away; raises as :func:`undo`."""
    row = owned_project(user_id, slug)
    target = _undone(row, version)
    if target is not None and _is_repeated(row, version, target):
        return Changed(version=row.lines_version, conversations=[])
    _require_newest(row, version)
    if target is None:
        raise StaleVersion("There is nothing to redo.", fields={"current_version": version})
    return _bring_back(row, target)


@snapshot()
def view(user_id: int, slug: str) -> ProjectLines:
    """The lines for the person. Raises NotFound."""
    row = owned_project(user_id, slug)
    kept = read(row.lines)
    titles = _titles(user_id, {one.code for one in kept.sources.values()})
    lines = []
    for line in kept.lines:
        id_ = int(line.key[1:])
        source = kept.sources.get(id_)
        lines.append(
            ProjectLine(
                key=line.key,
                section=str(line.section or ""),
                text=line.text,
                tokens=kept.tokens.get(id_, 0),
                origin=_origin(source, titles) if source else None,
            )
        )
    return ProjectLines(
        version=row.lines_version,
        lines=lines,
        can_undo=_before(row, row.lines_version) is not None,
        can_redo=_undone(row, row.lines_version) is not None,
    )


def _titles(user_id: int, codes: set[str]) -> dict[str, str]:
    rows = Conversation.objects.filter(owner_id=user_id, code__in=codes, deleted_at__isnull=True)
    return {str(code): title for code, title in rows.values_list("code", "title")}


def _origin(source: Source, titles: dict[str, str]) -> LineOrigin:
    there = source.code in titles
    return LineOrigin(
        code=source.code if there else "",
        title=titles.get(source.code, ""),
        seqs=list(source.seqs) if there else [],
    )


def _require_newest(row: Project, version: int) -> None:
    if row.lines_version != version:
        raise StaleVersion(_OUTDATED, fields={"current_version": row.lines_version})


def _version(row: Project, version: int) -> ProjectVersion | None:
    return row.versions.filter(version=version).first()


def _content_of(row: Project) -> int:
    """The version whose lines are in force; 0 before the first."""
    newest = _version(row, row.lines_version)
    return newest.content_of if newest else 0


def _before(row: Project, version: int) -> int | None:
    """The version whose lines Undo of ``version`` brings back, 0 for none; None: no way back."""
    here = _version(row, version)
    made = _version(row, here.content_of) if here else None
    if made is None or (made.before and _version(row, made.before) is None):
        return None
    return made.before


def _undone(row: Project, version: int) -> int | None:
    """The version whose lines Undo has just taken away; None if there is none."""
    here = _version(row, version)
    if here is None or here.content_of == here.version:
        return None
    later = row.versions.filter(before=here.content_of, version__gt=here.content_of)
    # A row that Undo or Redo wrote repeats the content of another.
    made = [one for one in later.order_by("-version") if one.content_of == one.version]
    return made[0].version if made else None


def _is_repeated(row: Project, version: int, target: int) -> bool:
    """Whether the step from ``version`` to the content of ``target`` is the one just done."""
    return row.lines_version == version + 1 and _content_of(row) == target


def _bring_back(row: Project, target: int) -> Changed:
    made = _version(row, target)
    lines = made.lines if made else {}
    return _write(row, lines, content_of=target, before=made.before if made else 0)


def _write(row: Project, lines: dict[str, object], *, content_of: int, before: int) -> Changed:
    version = row.lines_version + 1
    written = Project.objects.filter(pk=row.pk, lines_version=row.lines_version).update(
        lines=lines, lines_version=version
    )
    if not written:
        raise StaleVersion(_OUTDATED, fields={"current_version": version})
    ProjectVersion.objects.create(
        project=row, version=version, content_of=content_of, before=before, lines=lines
    )
    row.versions.filter(version__lte=version - MOST_VERSIONS).delete()
    return Changed(version=version, conversations=conversations_of(row))


abase = in_database_thread(base)
achange = in_database_thread(change)
aundo = in_database_thread(undo)
aredo = in_database_thread(redo)
aview = in_database_thread(view)
