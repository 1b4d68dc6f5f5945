"""The settings and summaries of a conversation in our own export.

A file may have been changed. Summaries that do not fit its messages are all left out and counted: a
summary must never stand for messages that do not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from chatapp.context.reply_options import (
    EFFORTS,
    LEAST_ANSWER,
    MOST_ANSWER,
    MOST_TEMPERATURE,
    ReplyOptions,
)
from chatapp.text.lengths import PROJECT_NAME_LENGTH, PROMPT_LENGTH
from chatapp.text.safety import clean
from chatapp.transfer import fields
from chatapp.transfer.openai_messages import MOST_CHARACTERS
from chatapp.transfer.own_sources import Sources
from chatapp.transfer.values import OwnState
from compression.ledger.ledger import from_json
from compression.planning import defaults
from compression.store import Version
from compression.types import SummaryStatus, Trigger

SUMMARIES_LEFT_OUT = "summary version"
PROMPT_LEFT_OUT = "system prompt"
#: Most versions of a conversation's summary.
VERSIONS = 10_000
#: The largest value of an integer column.
_LARGEST = 2**31 - 1


def read(
    value: Mapping[str, Any], left_out: Counter[str], *, sources: Sources, messages: int
) -> OwnState:
    """The settings, and the versions of the summary if they stand for these messages.

    ``messages`` is the number of messages read; 0 if their seqs differ from those in the file,
    which the summaries cite. ``sources`` has seen all messages.
    """
    about = fields.mapping(value.get("conversation"))
    versions, active = _versions(value, left_out, sources, messages)
    prompt = fields.text(about.get("system_prompt"), left_out)
    if len(prompt) > PROMPT_LENGTH:
        left_out[PROMPT_LEFT_OUT] += 1
        prompt = ""
    threshold = about.get("threshold")
    if not (isinstance(threshold, float) and defaults.possible(threshold)):
        threshold = None
    keep_turns = _count(about.get("keep_turns"), most=defaults.MOST_KEEP_TURNS)
    off, shown = about.get("compression_off"), about.get("preview_first")
    return OwnState(
        system_prompt=prompt,
        model=fields.name(about.get("model")),
        threshold=threshold,
        keep_turns=keep_turns or None,
        compression_off=off if isinstance(off, bool) else None,
        options=_options(about),
        preview_first=shown if isinstance(shown, bool) else None,
        project=" ".join(fields.name(about.get("project")).split())[:PROJECT_NAME_LENGTH],
        pinned=bool(about.get("pinned")),
        archived=bool(about.get("archived")),
        truncated_through=_count(about.get("truncated_through"), most=messages) or 0,
        versions=versions,
        active=active,
    )


def _options(about: Mapping[str, Any]) -> ReplyOptions:
    """The choices for replies; those that no form would take are left to the model."""
    temperature: Any = about.get("temperature")
    effort = about.get("reasoning_effort")
    tokens = _count(about.get("answer_tokens"), most=MOST_ANSWER) or 0
    known = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not known or not 0 <= temperature <= MOST_TEMPERATURE:
        temperature = None
    return ReplyOptions(
        temperature=None if temperature is None else float(temperature),
        reasoning_effort=effort if effort in EFFORTS else "",
        answer_tokens=tokens if tokens >= LEAST_ANSWER else None,
    )


def _versions(
    value: Mapping[str, Any], left_out: Counter[str], sources: Sources, messages: int
) -> tuple[tuple[Version, ...], int]:
    """The versions, oldest first, and the active one's number; none if they do not fit."""
    listed = fields.listing(value.get("summaries"))
    if not listed:
        return (), 0
    about = fields.mapping(value.get("conversation"))
    active = _count(about.get("summary_version"), most=VERSIONS)
    try:
        if len(listed) > VERSIONS or not messages:
            raise ValueError("they cannot stand for these messages")
        changed: Counter[str] = Counter()
        found = sorted((_version(one, changed) for one in listed), key=lambda one: one.version)
        _check(found, active, about.get("compressed_through"), messages)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        left_out[SUMMARIES_LEFT_OUT] += len(listed)
        return (), 0
    left_out.update(changed)
    return tuple(replace(one, source_fingerprint=sources.stored(one)) for one in found), active or 0


def _check(found: list[Version], active: int | None, through: Any, messages: int) -> None:
    """Raise ValueError unless the versions follow one another and stand for these messages."""
    numbers = [one.version for one in found]
    if len(set(numbers)) < len(numbers) or numbers[-1] != active:
        raise ValueError("versions are missing")
    for one in found:
        if one.parent >= one.version or one.through_seq > messages:
            raise ValueError("it stands for what is not there")
    if found[-1].through_seq != through:
        raise ValueError("the boundary is another one")


def _version(value: Mapping[str, Any], changed: Counter[str]) -> Version:
    """One version; repairs of its texts are counted in ``changed``.

    Raises an error that ``_versions`` handles if the value is none.
    """
    text = value["text"]
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise ValueError("not a summary")
    fingerprint = value["source_fingerprint"]
    if not isinstance(fingerprint, str) or len(fingerprint) > 64:
        raise ValueError("not a fingerprint")
    cost = value.get("cost")
    restored = value.get("restored_from")
    ledger = from_json(_storable(value["ledger"], changed), _storable(value["narrative"], changed))
    for entry in ledger.entries:
        if not isinstance(entry.text, str) or not all(isinstance(n, int) for n in entry.sources):
            raise ValueError("not an entry")
    return Version(
        id=0,
        version=_required(value["version"], least=1),
        parent=_required(value["parent"]),
        restored_from=None if restored is None else _required(restored),
        status=SummaryStatus.SUPERSEDED,
        trigger=Trigger(value["trigger"]),
        reason="",
        text=fields.storable(text, changed),
        ledger=ledger,
        first_seq=_required(value["first_seq"]),
        through_seq=_required(value["through_seq"]),
        message_count=_required(value["message_count"]),
        source_fingerprint=clean(fingerprint),
        source_tokens=_required(value["source_tokens"]),
        summary_tokens=_required(value["summary_tokens"]),
        usage_before=_number(value.get("usage_before")),
        usage_after=_number(value.get("usage_after")),
        model=fields.name(value.get("model")),
        prompt_version=fields.name(value.get("prompt_version"))[:64],
        cost=None if cost is None else Decimal(str(round(min(abs(float(cost)), 1e5), 6))),
        duration=_number(value.get("duration")),
        degraded=bool(value.get("degraded")),
        audit=_storable(fields.mapping(value.get("audit")), changed),
        # 0 means some person; storing replaces it by the person who imports.
        author_id=0 if value.get("by_person") else None,
        created_at=fields.time(value.get("created_at"), Counter()) or datetime.now(UTC),
    )


def _storable(value: Any, changed: Counter[str]) -> Any:
    """A JSON value in a form that both databases can store, with its texts treated as messages'."""
    if isinstance(value, str):
        return fields.storable(value, changed)
    if isinstance(value, Mapping):
        return {clean(str(name)): _storable(one, changed) for name, one in value.items()}
    if isinstance(value, list):
        return [_storable(one, changed) for one in value]
    return value


def _count(value: Any, *, most: int) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return None


def _required(value: Any, *, least: int = 0) -> int:
    found = _count(value, most=_LARGEST)
    if found is None or found < least:
        raise ValueError("not a count")
    return found


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    if not -1e9 < number < 1e9:
        raise ValueError("not a likely number")
    return number
