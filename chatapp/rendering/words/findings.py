"""Findings: what a summary leaves out, in the words of the checks that each version went through.

Pure. An imported conversation brings its own audits, which may have any shape: whatever is no list
of texts is passed over, and everything is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compression.judging.salience import normalise

#: Lines of one list on the screen.
SHOWN = 100
#: Lines of one list of an audit that are looked at, and characters of each.
READ, LONGEST = 1000, 300
#: Versions that a summary may have come from, newest first, that are looked at.
VERSIONS = 200

_NO_ROOM = ("a rule is left out, there is no room: ", "left out, there is no room: ")
_REFUSED = "dropped: "
_PEOPLES = ("edit", "restore", "clear")
#: The lists in the order of the screen.
KINDS = ("unfitting", "missing", "evicted", "refused")


@dataclass(frozen=True, kw_only=True)
class Found:
    """One list of what is left out."""

    kind: str
    """``unfitting`` (rules without room), ``missing`` (details that only the messages have),
    ``evicted`` (taken out for later ones) or ``refused`` (not supported by the messages)."""
    lines: tuple[str, ...]
    more: int
    """How many are not in ``lines``."""

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.lines) + self.more


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a summary leaves out, and how many of the details it was asked for are in it."""

    asked: int
    """Numbers, names, paths, quotations and dates of the messages; 0 if nobody looked."""
    kept: int
    lists: tuple[Found, ...]


def of_version(version: Mapping[str, Any]) -> Findings:
    """The findings of one version about the messages that it took in."""
    return _findings([version], str(version.get("text") or ""))


def of_active(versions: Sequence[Mapping[str, Any]]) -> Findings | None:
    """The findings of the active version and of those it was made from; None without one.

    A version takes in only the messages since the one before, so that what the summary of a whole
    conversation leaves out is in the audits of all of them. What a later version or a person has
    put back is not among it.
    """
    active = next((one for one in versions if one.get("status") == "active"), None)
    if active is None or not active.get("text"):
        return None
    return _findings(list(_lineage(versions, active)), str(active["text"]))


def _lineage(
    versions: Sequence[Mapping[str, Any]], active: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """The version and its ancestors: the one it restored, or else the one it was made on."""
    by_number = {one.get("version"): one for one in versions}
    seen: set[Any] = set()
    one: Mapping[str, Any] | None = active
    while one is not None and one.get("version") not in seen and len(seen) < VERSIONS:
        seen.add(one.get("version"))
        yield one
        restored = one.get("restored_from")
        # Before a new start, or without a summary, nothing had been left out yet.
        if one.get("trigger") == "clear" or restored == 0:
            return
        one = by_number.get(one.get("parent") if restored is None else restored)


def _findings(versions: Sequence[Mapping[str, Any]], text: str) -> Findings:
    present = normalise(text)
    gathered: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    asked = kept = unlisted = 0
    begun: set[Any] = set()
    for version in versions:
        audit, by_person = version.get("audit"), version.get("trigger") in _PEOPLES
        # Written anew since, of the same messages, which have one audit then.
        if not isinstance(audit, Mapping) or (not by_person and version.get("first_seq") in begun):
            continue
        missing = _lines(audit.get("missing"))
        for kind, lines in (("missing", missing), *_told(audit)):
            gathered[kind].update(dict.fromkeys(lines))
        # A person's version has a copy of the audit of the version it was made on.
        if by_person:
            continue
        begun |= {version["first_seq"]} if version.get("first_seq") else set()
        salient, retained = _count(audit.get("salient")), _count(audit.get("retained"))
        asked, kept = asked + salient, kept + min(retained, salient)
        unlisted += max(0, salient - retained - len(missing)) if missing else 0
    lists = []
    for kind, lines_of_kind in gathered.items():
        left = [line for line in lines_of_kind if normalise(line) not in present]
        if left:
            more = len(left) - len(left[:SHOWN]) + (unlisted if kind == "missing" else 0)
            lists.append(Found(kind=kind, lines=tuple(left[:SHOWN]), more=more))
    return Findings(asked=asked, kept=kept, lists=tuple(lists))


def _told(audit: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The other lists: some are told of among the notes, which begin with what was done."""
    notes = _lines(audit.get("notes"))
    yield "evicted", _lines(audit.get("evicted"))
    refused = [*_lines(audit.get("dropped")), *(one for one in notes if one.startswith(_REFUSED))]
    yield "refused", [one.removeprefix(_REFUSED) for one in refused]
    yield (
        "unfitting",
        [one.removeprefix(head) for one in notes for head in _NO_ROOM if one.startswith(head)],
    )


def _lines(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        return []
    texts = (one.strip()[:LONGEST] for one in value[:READ] if isinstance(one, str))
    return [one for one in texts if one]


def _count(value: Any) -> int:
    known = isinstance(value, int) and not isinstance(value, bool)
    return min(max(0, value), 10**9) if known else 0
