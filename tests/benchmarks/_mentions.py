"""Paths, commands, names and figures in messages, calls, code and console output.

Linear in the text; each is looked for as it was written, and compared without case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compression.judging.redaction import REDACTED, redacted
from compression.judging.salience import IDENTIFIER, NAME, PATH, URL, normalise
from compression.types import Item


class Kind(StrEnum):
    """What a mention is."""

    PATH = "paths"
    COMMAND = "commands"
    NAME = "names"
    FIGURE = "figures"


LONGEST = 160
"""Characters of a mention; longer ones are left out."""
MOST = 2_000
"""Mentions of one kind, so that time and memory stay linear."""
LONGEST_ARGUMENT = 4_000
"""Characters of a call's argument that are searched."""

_PROGRAMS = (
    "aider|ansible(?:-playbook)?|apt(?:-get)?|aws|az|bash|brew|bundle|cargo|cat|cd|chmod|chown|cmake"
    "|composer|conda|cp|curl|deno|diff|django-admin|docker(?:-compose)?|dotnet|echo|export|find|flask"
    "|gcc|gcloud|gem|gh|git|go|gradle|grep|gunzip|head|helm|jq|kill|kubectl|ls|make|mkdir|mvn|mv|mypy"
    "|mysql|nc|nmap|node|npm|npx|objdump|openssl|perl|php|pip3?|pnpm|podman|poetry|psql|pytest"
    "|python3?|rails|rake|redis-cli|rm|rsync|ruby|ruff|rustc|scp|sed|sh|sqlite3|ssh|strings|sudo"
    "|systemctl|tail|tar|terraform|touch|tox|tsc|unzip|uv|uvicorn|wget|which|yarn"
)
_WORDS = r"[ \t]+(?![=:,.;)(])[^\n`]{1,200}"
_IN_CODE = re.compile(rf"^[ \t]{{0,8}}(?:[$#%>][ \t]+)?((?:\./[\w./-]+|{_PROGRAMS}){_WORDS})", re.M)
_PROMPTED = re.compile(
    r"^[ \t]{0,8}(?:\$|[\w.~/-]{0,30}@[\w.@~:/-]{1,60}[$#%])[ \t]+(?=[A-Za-z./~_])(\S[^\n]{0,200})",
    re.M,
)
_QUOTED = re.compile(rf"`((?:\./[\w./-]+|{_PROGRAMS}){_WORDS})`")
_ARGUMENT = re.compile(r"command|cmd|script|shell", re.I)
_CODE = re.compile(r"\b(?=[A-Z0-9]{0,11}\d)(?=[A-Z0-9]{0,11}[A-Z])[A-Z0-9]{4,12}\b")
_FIGURE = re.compile(
    r"(?:[^\W\d_][\w'-]{0,20}[ \t]?[=:]?[ \t]){0,3}"
    r"(?<![\w.])[-+v$€£#]?(\d[\d.,:/-]{1,20})(?<![.,:/-])(?:[ \t]?[%°€$£]|[ \t][^\W\d_]{1,12}\b)?"
)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.M)


@dataclass(slots=True)
class Mention:
    """A path, a command, a name or a figure, as it was written."""

    text: str
    key: str
    """What is looked for in a summary, normalised: the text; of a figure its number alone."""
    seqs: list[int] = field(default_factory=list)


def mentions(items: Sequence[Item]) -> dict[Kind, list[Mention]]:
    """All mentions in the items, in the order in which they were first made."""
    found: dict[Kind, dict[str, Mention]] = {kind: {} for kind in Kind}
    for item in items:
        for kind, text, key in _mentioned(item):
            normal = normalise(key)
            if REDACTED in text or len(normal) < 2 or len(text) > LONGEST:
                continue
            known = found[kind]
            if normal not in known:
                if len(known) >= MOST:
                    continue
                known[normal] = Mention(text=" ".join(text.split()), key=normal)
            one = known[normal]
            if not one.seqs or one.seqs[-1] != item.seq:
                one.seqs.append(item.seq)
    return {kind: list(known.values()) for kind, known in found.items()}


def _mentioned(item: Item) -> Iterator[tuple[Kind, str, str]]:
    """Kind, text and key of each mention of an item, its calls included."""
    text = "".join(redacted(item.text))
    for name, value in _arguments(item.tool_calls):
        text += f"\n{value}"
        if _ARGUMENT.search(name):
            first = value.strip().split("\n")[0]
            yield Kind.COMMAND, first, first
    for command in _commands(text):
        yield Kind.COMMAND, command, command
    for pattern, kind in ((URL, Kind.PATH), (PATH, Kind.PATH), (IDENTIFIER, Kind.NAME)):
        for match in pattern.findall(text):
            trimmed = match.rstrip(".,;:!?)'\"*")
            yield kind, trimmed, trimmed
        text = pattern.sub(" ", text)
    for pattern in (_CODE, NAME):
        for match in pattern.findall(text):
            yield Kind.NAME, match, match
    text = _CODE.sub(" ", text)
    for found in _FIGURE.finditer(text):
        yield Kind.FIGURE, found[0].strip(), found[1]


def _arguments(calls: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The texts among the arguments of calls, by their names, without secrets."""
    for call in calls:
        function = call.get("function")
        written = function.get("arguments") if isinstance(function, Mapping) else None
        try:
            values = json.loads(written) if isinstance(written, str) else None
        except (ValueError, RecursionError):
            continue
        if isinstance(values, dict):
            for name, value in values.items():
                if isinstance(value, str):
                    yield name, "".join(redacted(value[:LONGEST_ARGUMENT]))


def _commands(text: str) -> Iterator[str]:
    """The commands of a text: quoted, after a prompt, or at the start of a line of code."""
    for number, part in enumerate(_FENCE.split(text)):
        patterns = (_IN_CODE, _PROMPTED) if number % 2 else (_QUOTED, _PROMPTED)
        for pattern in patterns:
            for match in pattern.findall(part):
                yield match.strip().rstrip("\\").rstrip()
