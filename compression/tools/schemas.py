"""JSON schemas of tools, which come from anywhere: checked themselves, and arguments by them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry

logger = logging.getLogger(__name__)

#: Seconds for the arguments of one call. A schema may have patterns that backtrack without end, or
#: parts that are applied again and again.
SECONDS = 0.5
#: Characters of the place and of the reason in what the model is told.
_MOST_WORDS = 300

_ends_at: ContextVar[float] = ContextVar("ends_at")
Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """How arguments break a schema, in words for the model; None if they fit.

    Takes at most about :data:`SECONDS`, after which the schema counts as one that cannot be
    checked.
    """
    _ends_at.set(time.monotonic() + SECONDS)
    try:
        validator = _validator(json.dumps(schema, sort_keys=True))
        found = min(validator.iter_errors(arguments), key=_depth, default=None)
    except Exception as trouble:
        # Whatever a schema from outside makes the library do, the call does not run.
        logger.info("A tool's schema could not be checked: %r", trouble)
        return "its schema cannot be checked"
    if found is None:
        return None
    place = "".join(f"[{part!r}]" for part in found.absolute_path)[:_MOST_WORDS]
    return f"{place + ': ' if place else ''}{found.message[:_MOST_WORDS].rstrip('.')}"


def _depth(found: ValidationError) -> int:
    return len(found.absolute_path)


def flaw(schema: Mapping[str, Any]) -> str:
    """Why a schema is none, in a few words; empty if it is one."""
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except Exception as trouble:
        # The library raises many kinds of errors for what a server may send as a schema.
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
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _left_to_the_tool,
        "additionalProperties": _additional,
    }
    if '"patternProperties"' in schema:
        # The library looks for names by their patterns, in this part or in one beside it.
        own["unevaluatedProperties"] = _left_to_the_tool
    keywords = {name: _in_time(work) for name, work in {**kind.VALIDATORS, **own}.items()}
    # A part that names a dialect would be checked by the library's own class for that.
    plain = json.loads(schema, object_hook=_without_dialect)
    return extend(kind, keywords)(plain, registry=Registry())


def _without_dialect(part: dict[str, Any]) -> dict[str, Any]:
    named = isinstance(part.get("$schema"), str)
    return {key: value for key, value in part.items() if not (named and key == "$schema")}


def _in_time(keyword: Keyword) -> Keyword:
    """The keyword, which raises TimeoutError once the time of the call is over."""

    def checked(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterable[ValidationError] | None:
        _seconds_left()
        return keyword(validator, value, instance, schema)

    return checked


def _seconds_left() -> float:
    """Seconds left for this call. Raises TimeoutError if there are none."""
    left = _ends_at.get() - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """The keyword ``pattern``, within the time of the call."""
    if not validator.is_type(instance, "string"):
        return
    if regex.search(pattern, instance, timeout=_seconds_left()) is None:
        yield ValidationError(f"{instance!r:.100} does not match {pattern!r:.100}")


def _left_to_the_tool(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterable[ValidationError]:
    """A keyword by which the library matches patterns without a limit of time."""
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
