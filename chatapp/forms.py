"""Checks of what people type: each function returns a clean value or raises InvalidInput."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from math import nan

from django.conf import settings

from chatapp.conversations.tools.approvals import Decision
from chatapp.errors import InvalidInput
from chatapp.text.lengths import NAME_LENGTH, PROMPT_LENGTH, TITLE_LENGTH
from chatapp.text.safety import problems, without_hidden
from compression.planning import defaults

# Characters. Longer than a message may be, so that nothing pasted into a draft is lost.
DRAFT_LENGTH = 2_000_000
FOCUS_LENGTH = 500
KEY_LENGTH = 4_000
# The largest integer that all databases store.
LARGEST = 2**63 - 1


def storable(name: str, text: str, *, longest: int) -> str:
    """A text of at most ``longest`` characters that all databases can store."""
    found = problems(text)
    if found:
        raise InvalidInput.of(name, found[0])
    if len(text) > longest:
        raise InvalidInput.of(
            name, f"This text has {len(text):,} characters; at most {longest:,} are allowed."
        )
    return text


def message_text(fields: Mapping[str, str]) -> str:
    """The text of a message: not blank, not too long, line ends as ``\\n``."""
    text = fields.get("text", "").replace("\r\n", "\n")
    if not without_hidden(text).strip():
        raise InvalidInput.of("text", "The message is empty. Write something first.")
    return storable("text", text, longest=settings.MESSAGE_MAX_LENGTH)


def draft(fields: Mapping[str, str]) -> str:
    """A draft, perhaps empty. Line ends as ``\\n``."""
    return storable("text", fields.get("text", "").replace("\r\n", "\n"), longest=DRAFT_LENGTH)


def client_msg_id(fields: Mapping[str, str]) -> uuid.UUID:
    """The sender's id of a message, by which a repeated send is recognised."""
    try:
        return uuid.UUID(fields.get("client_msg_id", ""))
    except ValueError:
        raise InvalidInput.of(
            "client_msg_id", "The message needs a client_msg_id, a UUID made by the sender."
        ) from None


def optional_id(fields: Mapping[str, str]) -> uuid.UUID:
    """The sender's id, or a new one if none is given."""
    return client_msg_id(fields) if fields.get("client_msg_id") else uuid.uuid4()


def number(fields: Mapping[str, str], name: str) -> int | None:
    """An integer that is not negative; None when the field is absent or empty."""
    value = fields.get(name, "").strip()
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 19 or int(value) > LARGEST:
        raise InvalidInput.of(name, "This must be a whole number.")
    return int(value)


def required_number(fields: Mapping[str, str], name: str) -> int:
    """An integer that is not negative, and must be given."""
    value = number(fields, name)
    if value is None:
        raise InvalidInput.of(name, "This must be a whole number.")
    return value


def title(fields: Mapping[str, str]) -> str:
    """A title on one line."""
    text = " ".join(fields.get("title", "").split())
    return storable("title", text, longest=TITLE_LENGTH)


def model_name(fields: Mapping[str, str]) -> str:
    """A model's name; empty for the default."""
    return storable("model", fields.get("model", "").strip(), longest=NAME_LENGTH)


def system_prompt(fields: Mapping[str, str]) -> str:
    """A conversation's own prompt."""
    text = fields.get("system_prompt", "").replace("\r\n", "\n")
    return storable("system_prompt", text, longest=PROMPT_LENGTH)


def project(fields: Mapping[str, str]) -> str:
    """A project's slug; empty for none."""
    return storable("project", fields.get("project", "").strip(), longest=NAME_LENGTH)


def threshold(fields: Mapping[str, str]) -> float | None:
    """A share of the budget that compression takes as it is; None for the default."""
    value = fields.get("threshold", "").strip()
    if not value:
        return None
    try:
        share = float(value)
    except ValueError:
        share = nan
    if not defaults.possible(share):
        low, high = defaults.LOWEST_THRESHOLD, defaults.HIGHEST_THRESHOLD
        raise InvalidInput.of("threshold", f"This must be a number from {low:g} to {high:g}.")
    return share


def tool_key(fields: Mapping[str, str]) -> str:
    """A person's key for a tool server: one line that a header can carry."""
    key = storable("key", fields.get("key", "").strip(), longest=KEY_LENGTH)
    if not key:
        raise InvalidInput.of("key", "Enter a key.")
    if not (key.isascii() and key.isprintable()):
        raise InvalidInput.of("key", "A key has letters, digits and signs on one line.")
    return key


def tool_decision(fields: Mapping[str, str]) -> Decision:
    """What is decided about a call of a tool."""
    match fields.get("decision"):
        case "once" | "always" | "refuse" as decision:
            return decision
    raise InvalidInput.of("decision", "Choose once, always or refuse.")
