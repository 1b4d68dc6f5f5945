"""JSON schemas of tools, which come from anywhere: checked themselves, and arguments by them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry

logger = logging.getLogger(__name__)

#: Seconds for one pattern of a schema, which may be one that backtracks without end.
_PATTERN_SECONDS = 0.1


def misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """How arguments break a schema, in words for the model; None if they fit."""
    try:
        validator = _validator(json.dumps(schema, sort_keys=True))
        found = min(validator.iter_errors(arguments), key=_depth, default=None)
    except Exception as trouble:
        # Whatever a schema from outside makes the library do, the call does not run.
        logger.info("A tool's schema could not be checked: %r", trouble)
        return "its schema cannot be checked"
    if found is None:
        return None
    place = "".join(f"[{part!r}]" for part in found.absolute_path)
    return f"{place + ': ' if place else ''}{found.message[:300].rstrip('.')}"


def _depth(found: ValidationError) -> int:
    return len(found.absolute_path)


def flaw(schema: Mapping[str, Any]) -> str:
    """Why a schema is none, in a few words; empty if it is one."""
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except Exception as trouble:
        # Beside its own error the library raises whatever a pattern or an address in it causes.
        return f"its schema is none ({type(trouble).__name__})"
    return ""


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    """The validator of a schema, given as JSON. Raises SchemaError for what is no schema.

    It loads nothing: a reference to another document is an error when it is needed.
    """
    parsed = json.loads(schema)
    kind = validator_for(parsed, default=Draft202012Validator)
    kind.check_schema(parsed)
    safe = extend(
        kind,
        {
            "pattern": _pattern,
            "patternProperties": _left_to_the_tool,
            "additionalProperties": _additional,
        },
    )
    return safe(parsed, registry=Registry())


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """The keyword ``pattern``, within a time."""
    if not validator.is_type(instance, "string"):
        return
    try:
        fits = regex.search(pattern, instance, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        fits = False
    if not fits:
        yield ValidationError(f"{instance!r:.100} does not match {pattern!r:.100}")


def _left_to_the_tool(
    validator: Any, patterns: Any, instance: Any, schema: Any
) -> Iterable[ValidationError]:
    """The keyword ``patternProperties``, which the library matches without a limit of time."""
    return ()


def _additional(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterable[ValidationError]:
    """The keyword ``additionalProperties``, unless names are also given by patterns."""
    if "patternProperties" in schema or not validator.is_type(instance, "object"):
        return
    extras = [name for name in instance if name not in schema.get("properties", {})]
    if validator.is_type(allowed, "object"):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif allowed is False and extras:
        yield ValidationError(f"there are no arguments named {', '.join(map(repr, extras))}"[:300])
