"""Calls of tools, checked before anything runs: known, not too many, and fitting their schema.

A call that may not run is answered by a sentence that begins with ``error:``, so that the model can
mend it.
"""

from __future__ import annotations

import logging
import re
import secrets
import string
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compression.tools.arguments import InvalidArguments, read
from compression.tools.tool import Tool

logger = logging.getLogger(__name__)

#: Characters of the ids that we give calls. One provider takes exactly nine letters and digits.
ID_LENGTH = 9
_ID_CHARACTERS = string.ascii_letters + string.digits
#: Calls of one message that are run; more are answered by an error.
MOST_CALLS = 16
#: Characters of a name in an error.
_SHOWN = 60
#: Names of tools in an error.
_MOST_NAMES = 20
#: Said of a call that may have begun, and gave no result.
UNKNOWN_EFFECT = "It is not known whether the call took effect."
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def error(sentence: str) -> str:
    """The result of a call that gave none, for the model: ``error:`` and a sentence."""
    return f"error: {sentence}"


def new_id(taken: Container[str]) -> str:
    """An id of nine letters and digits that is not ``taken``."""
    while (made := "".join(secrets.choice(_ID_CHARACTERS) for _ in range(ID_LENGTH))) in taken:
        continue
    return made


def wire_name(name: str) -> str:
    """A name that a model called, as servers take it back."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64] or "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A call that may run."""

    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Checker:
    """Checks the calls of one turn, whose tools it counts."""

    most_calls: int = MOST_CALLS
    _used: dict[str, int] = field(default_factory=dict)

    def check(self, calls: Sequence[tuple[str, str]], tools: Iterable[Tool]) -> list[Checked | str]:
        """What may run of each call (name, arguments) of one message, or the error that answers it.

        Takes long for long arguments, and for schemas that are hard to check.
        """
        known = {tool.name: tool for tool in tools}
        return [
            self._check(number, name, arguments, known)
            for number, (name, arguments) in enumerate(calls)
        ]

    def _check(
        self, number: int, name: str, arguments: str, known: Mapping[str, Tool]
    ) -> Checked | str:
        tool = known.get(name)
        if number >= self.most_calls:
            return error(
                f"At most {self.most_calls} tools are run for one message, so this one was not. "
                "Call it again if you still need it."
            )
        if tool is None:
            names = ", ".join(sorted(known)[:_MOST_NAMES]) or "none"
            if len(known) > _MOST_NAMES:
                names += f" and {len(known) - _MOST_NAMES} more"
            shown = name[:_SHOWN] or "no name"
            return error(f"There is no tool named {shown!r}. The tools are: {names}.")
        counted = tool.counted_with or name
        if tool.most_calls is not None and self._used.get(counted, 0) >= tool.most_calls:
            return error(
                f"{name} may be called {tool.most_calls} times in one turn, and was. "
                "Answer with what you have."
            )
        try:
            found = read(arguments)
        except InvalidArguments as refusal:
            return error(f"{refusal} Call {name} again with one JSON object.")
        from compression.tools.schemas import misfit

        if (unfit := misfit(found, tool.parameters)) is not None:
            return error(f"The arguments do not fit {name}: {unfit}.")
        self._used[counted] = self._used.get(counted, 0) + 1
        return Checked(tool=tool, arguments=found)


def offerable(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """The tools that a request can offer: named as servers want it, each name once, with a schema.

    Others are left out and logged, because a server refuses a whole request for one of them.
    """
    kept: dict[str, Tool] = {}
    for tool in tools:
        trouble = _trouble(tool, kept)
        if trouble:
            logger.warning("The tool %r is not offered: %s.", tool.name[:_SHOWN], trouble)
        else:
            kept[tool.name] = tool
    return tuple(kept.values())


def _trouble(tool: Tool, kept: Container[str]) -> str:
    if not _NAME.fullmatch(tool.name):
        return "its name is not 1 to 64 letters, digits, _ and -"
    if tool.name in kept:
        return "another tool has its name"
    if not isinstance(tool.parameters, Mapping) or tool.parameters.get("type") != "object":
        return "its schema is not one of an object"
    # Imported late, because the library takes a tenth of a second, and most chats have no tools.
    from compression.tools.schemas import flaw

    return flaw(tool.parameters)
