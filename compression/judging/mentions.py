"""Paths, commands, names and figures in messages and in arguments of calls, as they were written.

A command is known by where it stands: after a prompt, in a shell's code, marked as code, in an
argument of that name. None is taken from a tool's result, or whoever writes a page or a file could
put a sentence into the summary. Pure, and linear in the text.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compression.judging.cues import WINDOW
from compression.judging.redaction import REDACTED, redacted
from compression.judging.salience import IDENTIFIER, NAME, PATH, URL, normalise
from compression.types import Item


class Kind(StrEnum):
    """What a mention is; addresses are paths too."""

    PATH = "paths"
    COMMAND = "commands"
    NAME = "names"
    FIGURE = "figures"


WEIGHTS = {"user": 3.0, "assistant": 1.0, "tool": 0.3}
"""What a mention in a message of this role counts."""
IN_CODE = 1.0
"""The most that it counts in code and console output, which a user only pastes."""
LONGEST_COMMAND = 160
LONGEST = 80
"""Characters of any other mention; longer ones are not kept."""
SHORT = 16
"""Characters that each mention counts as besides its own: shorter ones hardly cost less."""
LONGEST_ARGUMENT = 4_000
"""Characters of a call's argument that are searched."""

# In what is named "console", lines without a prompt are what a command showed.
_SHELLS = frozenset({"bash", "bat", "cmd", "fish", "powershell", "ps1", "sh", "shell", "zsh"})
_FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)[ \t]*([\w+-]{0,40})")
# "$ make", "(venv) $ make", "root@box:/srv# make"; not "$ 0.02".
_PROMPTED = re.compile(
    r"[ \t]{0,8}(?:\([\w.-]{1,40}\)[ \t])?"
    r"(?:[\w.-]{1,40}@[\w.-]{1,60}[^\s$#]{0,80}[$#]|\$)[ \t]+(?=[A-Za-z./~_])(.+)"
)
_INLINE = re.compile(rf"(?<!`)`([^`\n]{{3,{LONGEST_COMMAND}}})`(?!`)")
# A program and its arguments, and no code: "x = 1", "if x:" and "f(x)" do not match.
_TYPED = re.compile(
    r"(?:[.~]?/)?([a-z][\w./+-]{0,80})(?:[ \t]+[^\s(){};]{0,99}[^\s(){};,:=]){1,20}"
)
# An option, or an argument that looks like a path.
_OPTION = re.compile(r"\s(?:--?[A-Za-z]|\S{0,99}[./]\S)")
_COMMAND_ARGUMENT = re.compile(r"(?:^|_)(?:command|cmd|script)", re.IGNORECASE)
_SECRET_ARGUMENT = re.compile(r"pass|secret|token|key|credential|auth", re.IGNORECASE)
# Two words with a slash between them are as often prose: "and/or".
_WORDS = re.compile(r"[^\W\d_]+/[^\W\d_]+")
# An order number or the like: capitals and digits.
_CODE = re.compile(r"\b(?=[A-Z0-9]{0,11}\d)(?=[A-Z0-9]{0,11}[A-Z])[A-Z0-9]{4,12}\b")
_NUMBER = re.compile(r"(?<![\w.])[-+v$€£#]?(\d[\d.,:/-]{1,20})(?<![.,:/-])")
_BEFORE = re.compile(r"(?:[^\W\d_][\w'-]{0,20}[ \t]?[=:]?[ \t]){1,2}\Z")
_AFTER = re.compile(r"[ \t]?[%°€$£]|[ \t][^\W\d_]{1,12}\b")


@dataclass(slots=True)
class Mention:
    """A path, a command, a name or a figure, as it was written."""

    text: str
    key: str
    """What is looked for in a summary, normalised: the text, or of a figure only its number."""
    weight: float = 0.0
    seqs: list[int] = field(default_factory=list)

    @property
    def worth(self) -> float:
        """Its weight for its room, so that one long address does not cost ten paths."""
        return self.weight / (len(self.text) + SHORT)


def mentions(items: Sequence[Item]) -> dict[Kind, list[Mention]]:
    """All mentions in the items, best first: those of the user, those said often, the latest."""
    found: dict[Kind, dict[str, Mention]] = {kind: {} for kind in Kind}
    for item in items:
        for kind, text, key, prose in _mentioned(item):
            normal = normalise(key)
            longest = LONGEST_COMMAND if kind is Kind.COMMAND else LONGEST
            if REDACTED in text or len(normal) < 2 or len(text) > longest:
                continue
            one = found[kind].setdefault(normal, Mention(text=" ".join(text.split()), key=normal))
            if not one.seqs or one.seqs[-1] != item.seq:
                one.seqs.append(item.seq)
                one.weight += WEIGHTS[item.role] if prose else min(IN_CODE, WEIGHTS[item.role])
    return {
        kind: sorted(known.values(), key=lambda one: (-one.worth, -one.seqs[-1]))
        for kind, known in found.items()
    }


def _mentioned(item: Item) -> Iterator[tuple[Kind, str, str, bool]]:
    """Kind, text and key of each mention of an item, without secrets, and whether it is in prose.

    A command counts as much wherever it stands; the calls' arguments count as code.
    """
    for line, language in _code_and_prose("".join(redacted(item.text))):
        if item.role != "tool":
            for command in _commands(line, language):
                yield Kind.COMMAND, command, command, True
        prose = language is None
        yield from ((*word, prose) for word in _words(line, prose=prose))
    for name, value in _arguments(item.tool_calls):
        command = value.strip().partition("\n")[0].strip()
        if _COMMAND_ARGUMENT.search(name) and " " in command and "`" not in command:
            yield Kind.COMMAND, command, command, True
        for line in value.split("\n"):
            yield from ((*word, False) for word in _words(line, prose=False))


def _code_and_prose(text: str) -> Iterator[tuple[str, str | None]]:
    """Each line, long ones in pieces, and the language of the code that it is in.

    The language is empty if the code names none, and None for prose.
    """
    language: str | None = None
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence is not None:
            language = fence[1].casefold() if language is None else None
        elif line.strip():
            for start in range(0, len(line), WINDOW):
                yield line[start : start + WINDOW], language


def _commands(line: str, language: str | None) -> Iterator[str]:
    """The commands of a line: after a prompt, in a shell's code, or typed and marked as code."""
    prompted = _PROMPTED.match(line)
    if prompted is not None:
        found = [prompted[1]]
    elif language is None:
        found = [one for one in _INLINE.findall(line) if _typed(one)]
    elif language in _SHELLS:
        found = [] if line.lstrip().startswith("#") else [line]
    elif not language and _typed(line.strip()) and _OPTION.search(line.strip()):
        found = [line]
    else:
        found = []
    for one in found:
        command = one.strip().rstrip("\\").rstrip()
        # A single word is guessed as easily as kept.
        if " " in command and "`" not in command:
            yield command


def _typed(text: str) -> bool:
    match = _TYPED.fullmatch(text)
    return match is not None and not keyword.iskeyword(match[1])


def _words(line: str, *, prose: bool) -> Iterator[tuple[Kind, str, str]]:
    """The paths and names of a line; of prose the figures too, if a word says what they are of."""
    for pattern, kind in ((URL, Kind.PATH), (PATH, Kind.PATH), (IDENTIFIER, Kind.NAME)):
        for match in pattern.findall(line):
            trimmed = match.rstrip(".,;:!?)'\"*")
            if not _WORDS.fullmatch(trimmed):
                yield kind, trimmed, trimmed
        line = pattern.sub(" ", line)
    for match in _CODE.findall(line):
        yield Kind.NAME, match, match
    if not prose:
        return
    for match in NAME.findall(line):
        yield Kind.NAME, match, match
    line = _CODE.sub(" ", line)
    for number in _NUMBER.finditer(line):
        start, end = number.span()
        before = _BEFORE.search(line[max(0, start - 50) : start])
        after = _AFTER.match(line, end)
        if before or after:
            text = (before[0] if before else "") + number[0] + (after[0] if after else "")
            yield Kind.FIGURE, text, number[1]


def _arguments(calls: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The texts among the arguments of calls, each with the name it stands under, without secrets.

    A list of texts is one text: a command in its parts.
    """
    for call in calls:
        function = call.get("function")
        written = function.get("arguments") if isinstance(function, Mapping) else None
        try:
            values = json.loads(written) if isinstance(written, str) else None
        except (ValueError, RecursionError):
            continue
        waiting: list[tuple[str, Any]] = [("", values)]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, dict):
                waiting += reversed([(key, one) for key, one in value.items()])
            elif isinstance(value, list) and all(isinstance(one, str) for one in value):
                waiting.append((name, " ".join(value)))
            elif isinstance(value, list):
                waiting += [(name, one) for one in reversed(value)]
            elif isinstance(value, str) and not _SECRET_ARGUMENT.search(name):
                yield name, "".join(redacted(value))[:LONGEST_ARGUMENT]
