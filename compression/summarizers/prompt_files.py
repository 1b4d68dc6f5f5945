"""Prompts as files: instructions for a model below a head with their name and description.

::

    ---
    name: Terse notes
    description: Shorter lines than the packaged prompt asks for.
    ---
    You keep the notes of a conversation …

The version of a prompt is made from the instructions alone, so that another name is no other
prompt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

#: The file that asks for a summary, in the package and in a host's folder.
COMPACT = "compact.md"
#: Bytes of a file; the packaged one has 3,000.
LARGEST = 32 * 1024
#: Characters of a name and of a description.
LONGEST_NAME, LONGEST_DESCRIPTION = 80, 400
#: Parts of the answer that are read; instructions that do not name them get no usable answer.
ANSWER_PARTS = ("narrative", "add", "resolve", "supersede", "lift", "sources")
_FENCE = "---"
_FIELDS = {"name": LONGEST_NAME, "description": LONGEST_DESCRIPTION}


class PromptUnusable(ValueError):
    """A file that is no prompt; its text says why, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The instructions of one file."""

    name: str
    description: str
    text: str
    path: str = ""
    """Of a host's own file; empty for the packaged one."""

    @property
    def version(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of the instructions."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def parsed(source: str, path: str = "") -> Prompt:
    """The prompt in the text of a file. Raises PromptUnusable."""
    lines = source.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise PromptUnusable("It does not begin with a line of three hyphens.")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
    if not end:
        raise PromptUnusable("Its head does not end with a line of three hyphens.")
    head = _head(lines[1:end])
    text = "\n".join(lines[end + 1 :]).strip("\n") + "\n"
    if not text.strip():
        raise PromptUnusable("It has no instructions below its head.")
    if not text.isprintable() and any(ord(sign) < 32 and sign not in "\n\t" for sign in text):
        raise PromptUnusable("It holds control characters.")
    missing = [part for part in ANSWER_PARTS if f'"{part}"' not in text]
    if missing:
        raise PromptUnusable(
            f'It does not ask for "{missing[0]}", which answers must have. Begin with a copy of '
            "the packaged file."
        )
    return Prompt(name=head["name"], description=head["description"], text=text, path=path)


def _head(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in filter(str.strip, lines):
        field, colon, value = line.partition(":")
        field, value = field.strip(), value.strip()
        if field not in _FIELDS or not colon:
            raise PromptUnusable("Its head has lines other than “name: …” and “description: …”.")
        if field in found:
            raise PromptUnusable(f"Its head has “{field}” twice.")
        if not value or len(value) > _FIELDS[field] or not value.isprintable():
            raise PromptUnusable(f"Its {field} must have 1 to {_FIELDS[field]} characters.")
        found[field] = value
    if missing := [field for field in _FIELDS if field not in found]:
        raise PromptUnusable(f"Its head has no “{missing[0]}: …”.")
    return found


@cache
def packaged() -> Prompt:
    """The prompt that comes along."""
    return parsed(resources.files("compression").joinpath("prompts", COMPACT).read_text("utf-8"))


def read(folder: Path) -> Prompt | None:
    """The prompt in a host's folder; None if it has no such file. Raises PromptUnusable."""
    path = folder / COMPACT
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        if folder.is_dir():
            return None
        raise PromptUnusable("There is no such folder.") from None
    except OSError as error:
        raise PromptUnusable(f"It cannot be read: {error.strerror}.") from None
    if len(content) > LARGEST:
        raise PromptUnusable(f"It has more than {LARGEST:,} bytes.")
    try:
        return parsed(content.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise PromptUnusable("It is not UTF-8 text.") from None


@cache
def compact(folder: str) -> Prompt:
    """The prompt that holds: that of ``folder`` if it has one, else the packaged one.

    Read once in the life of a process, so that all parts of a summary follow the same. Raises
    PromptUnusable.
    """
    return (read(Path(folder)) if folder else None) or packaged()
