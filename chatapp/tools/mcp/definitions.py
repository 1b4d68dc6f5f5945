"""Raw definitions of MCP tools: whether they can be offered, and as what. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from chatapp.text.safety import clean, without_hidden
from compression.tools.approval import exact

#: Characters of a name that models are told.
NAME_LENGTH = 64
#: Characters of one definition as it is stored, and tools of one server: what OpenAI takes in all.
MOST_CHARACTERS = 64_000
MOST_TOOLS = 128
# Between the server's name and the tool's.
_BETWEEN = "__"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
# Digits of a hash that tell apart what would have the same name.
_HASHED = 8
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


def offered_name(server: str, tool: str) -> str:
    """The name that models are told: ``server__tool``, of 64 letters, digits, ``_`` and ``-``.

    Server names have no ``_``, so no two servers' tools share a name. A name that had to be changed
    or cut ends with a hash of the original one, so that no two tools of a server share one either.
    """
    plain = f"{server}{_BETWEEN}{_NOT_IN_A_NAME.sub('_', tool)}"
    if plain == f"{server}{_BETWEEN}{tool}" and len(plain) <= NAME_LENGTH:
        return plain
    hashed = hashlib.sha256(tool.encode(errors="surrogatepass")).hexdigest()[:_HASHED]
    return f"{plain[: NAME_LENGTH - _HASHED - 1]}_{hashed}"


def described(raw: Mapping[str, Any]) -> str:
    """The description for the model, without characters that no reader of it sees."""
    text = raw.get("description") or raw.get("title") or raw.get("name") or ""
    return clean(without_hidden(str(text))).strip()


def parameters_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the arguments."""
    schema = raw.get("inputSchema")
    return dict(schema) if isinstance(schema, dict) else {}


def is_read_only(raw: Mapping[str, Any]) -> bool:
    """Whether the server marked the tool as one that changes nothing."""
    annotations = raw.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True


def flaw(raw: Any) -> str:
    """The reason why a definition can never be offered, as a sentence; empty if it can."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str) or not raw["name"].strip():
        return "It has no name."
    if len(exact(raw)) > MOST_CHARACTERS:
        return f"It has more than {MOST_CHARACTERS:,} characters."
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "Its schema of arguments is none: that must be an object's."
    # Some validators would fetch them, from whatever address they name.
    if any(not reference.startswith("#") for reference in _references(schema)):
        return "Its schema refers to another document."
    # Imported late, as by compression's tools: few deployments have tool servers.
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except Exception:
        # Beside its own error the library raises whatever a pattern or an address in it causes.
        return "Its schema of arguments is not valid JSON Schema."
    return ""


def _references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield from (str(value) for key, value in here.items() if key in _REFERENCES)
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here


def parsed(stored: str) -> dict[str, Any]:
    """A stored definition as the object that it is."""
    found = json.loads(stored)
    assert isinstance(found, dict)
    return found
