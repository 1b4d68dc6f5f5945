"""Changing the lines that a project keeps; each change makes a new version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chatapp import wiring
from chatapp.actions.projects.settings import tell
from chatapp.conversations.ownership import aowned
from chatapp.conversations.projects import line_versions, suggestions
from chatapp.conversations.projects.lines import (
    KeptLines,
    Source,
    changed,
    counted,
    refused,
    section_kept,
)
from compression.exceptions import StaleVersion
from compression.ledger.lines import Act, LineChange
from compression.types import Section

# Tries to add a line while others are added: it depends on none of them.
_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Done:
    """The project's lines after a change."""

    slug: str
    version: int
    key: str = ""
    """The line that was added or rewritten, or the one after a struck one; empty for none."""


async def change_line(user_id: int, slug: str, change: LineChange, version: int) -> Done:
    """Change a line of version ``version``. Doing the same again changes nothing.

    Raises NotFound, StaleVersion when that is not the newest version any more, InvalidInput and
    SummaryInvalid.
    """
    if change.act is Act.ADD:
        return await _add(user_id, slug, change, None)
    base = await line_versions.abase(user_id, slug)
    done = _present(base.kept, change)
    if base.version != version and done is None:
        raise StaleVersion(
            "The lines have changed meanwhile. Look at them again; nothing was done.",
            fields={"current_version": base.version},
        )
    if done is not None:
        return Done(slug=slug, version=base.version, key=done)
    kept = changed(base.kept, change)
    return await _stored(user_id, slug, base, kept, _after(base.kept, kept, change))


def _present(kept: KeptLines, change: LineChange) -> str | None:
    """The key to go on from if the change was made before; None if it was not."""
    keys = {line.key: line.text for line in kept.lines}
    if change.key in keys:
        same = change.act is Act.REWRITE and keys[change.key] == change.text.strip()
        return change.key if same else None
    known = {f"e{one.id}" for one in kept.ledger.entries}
    if change.act is Act.STRIKE and change.key in known:
        return next(iter(keys), "")
    return None


def _after(before: KeptLines, kept: KeptLines, change: LineChange) -> str:
    """The line to go on from: the changed one, or the neighbour of a struck one."""
    old, new = [one.key for one in before.lines], [one.key for one in kept.lines]
    added = [key for key in new if key not in old]
    if added:
        return added[0]
    if change.key not in old or not new:
        return ""
    return new[min(old.index(change.key), len(new) - 1)]


async def keep(user_id: int, code: str, key: str, version: int | None) -> Done:
    """Keep a line of the conversation's summary for its project.

    Raises NotFound, StaleVersion when ``version`` is not the active one of the summary, and
    InvalidInput for a conversation without project.
    """
    line, source, slug = await suggestions.asummary_line(user_id, code, key, version)
    change = LineChange(act=Act.ADD, section=section_kept(line), text=line.text)
    return await _add(user_id, slug, change, source)


async def accept(user_id: int, slug: str, section: Section, text: str, code: str) -> Done:
    """Keep a suggested line, which comes from one of the person's conversations.

    Raises NotFound and InvalidInput.
    """
    await aowned(user_id, code)
    change = LineChange(act=Act.ADD, section=section, text=text)
    return await _add(user_id, slug, change, Source(code=code))


async def refuse(user_id: int, slug: str, section: Section, text: str) -> Done:
    """Never suggest this line again, unless that is undone. Raises NotFound."""
    return await _retried(user_id, slug, lambda kept: refused(kept, section, text))


async def _add(user_id: int, slug: str, change: LineChange, source: Source | None) -> Done:
    return await _retried(user_id, slug, lambda kept: changed(kept, change, source))


async def _retried(user_id: int, slug: str, change: Callable[[KeptLines], KeptLines]) -> Done:
    """A change that fits any version."""
    for last in (False,) * (_TRIES - 1) + (True,):
        base = await line_versions.abase(user_id, slug)
        kept = change(base.kept)
        added = [one.key for one in kept.lines if one not in base.kept.lines]
        try:
            return await _stored(user_id, slug, base, kept, added[0] if added else "")
        except StaleVersion:
            if last:
                raise
    raise AssertionError


async def _stored(
    user_id: int, slug: str, base: line_versions.Base, kept: KeptLines, key: str
) -> Done:
    if kept is base.kept:
        return Done(slug=slug, version=base.version, key=key)
    kept = await asyncio.to_thread(counted, kept, wiring.services().counter)
    made = await line_versions.achange(user_id, slug, base.version, kept)
    await tell(made.conversations)
    return Done(slug=slug, version=made.version, key=key)


async def undo(user_id: int, slug: str, version: int) -> Done:
    """Take back the change that made ``version``. Raises NotFound and StaleVersion."""
    made = await line_versions.aundo(user_id, slug, version)
    await tell(made.conversations)
    return Done(slug=slug, version=made.version)


async def redo(user_id: int, slug: str, version: int) -> Done:
    """Bring back what the Undo that made ``version`` took. Raises NotFound and StaleVersion."""
    made = await line_versions.aredo(user_id, slug, version)
    await tell(made.conversations)
    return Done(slug=slug, version=made.version)
