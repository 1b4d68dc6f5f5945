"""Checks of what people type: each function returns a clean value or raises InvalidInput."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from math import nan

from django.conf import settings

from chatapp.context.reply_options import EFFORTS, LEAST_ANSWER, MOST_ANSWER, MOST_TEMPERATURE
from chatapp.conversations.tools.approvals import Decision
from chatapp.errors import InvalidInput
from chatapp.text.lengths import INSTRUCTIONS_LENGTH, NAME_LENGTH, PROMPT_LENGTH, TITLE_LENGTH
from chatapp.text.safety import problems, without_hidden
from compression.planning import defaults, presets

# Characters. Longer than a message may be, so that nothing pasted into a draft is lost.
DRAFT_LENGTH = 2_000_000
FOCUS_LENGTH = 500
KEY_LENGTH = 4_000
USUAL_SHARE_DAYS, MOST_SHARE_DAYS = 30, 3650
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


def share_days(fields: Mapping[str, str]) -> int | None:
    """The days for which a shared link opens; None: until it is revoked."""
    days = number({"days": fields.get("days") or str(USUAL_SHARE_DAYS)}, "days")
    if days is None or days > MOST_SHARE_DAYS:
        raise InvalidInput.of(
            "days", f"Choose at most {MOST_SHARE_DAYS} days, or 0 for a link that does not expire."
        )
    return days or None


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


def threshold(
    fields: Mapping[str, str], name: str = "threshold", whole: float = 1.0
) -> float | None:
    """A share of the budget that compression takes as it is; None for the default.

    The field ``name`` has it in parts of ``whole``.
    """
    value = fields.get(name, "").strip()
    if not value:
        return None
    try:
        share = float(value) / whole
    except ValueError:
        share = nan
    if not defaults.possible(share):
        low, high = whole * defaults.LOWEST_THRESHOLD, whole * defaults.HIGHEST_THRESHOLD
        raise InvalidInput.of(name, f"This must be a number from {low:g} to {high:g}.")
    return share


def threshold_percent(fields: Mapping[str, str]) -> float | None:
    """The same in percent, as the form has it."""
    return threshold(fields, "threshold_percent", 100.0)


def compression_preset(fields: Mapping[str, str]) -> dict[str, float | int | bool | None]:
    """The settings that the chosen preset of compression changes."""
    changes = presets.changes_to(fields.get("compression", ""))
    if changes is None:
        names = ", ".join((*presets.PRESETS, presets.BY_HAND, presets.OWN))
        raise InvalidInput.of("compression", f"Choose one of: {names}.")
    return changes


def temperature(fields: Mapping[str, str]) -> float | None:
    """How freely the model chooses its words; None for the model's own."""
    value = fields.get("temperature", "").strip()
    if not value:
        return None
    try:
        chosen = float(value)
    except ValueError:
        chosen = nan
    if not 0 <= chosen <= MOST_TEMPERATURE:
        raise InvalidInput.of("temperature", f"This must be a number from 0 to {MOST_TEMPERATURE}.")
    return chosen


def reasoning_effort(fields: Mapping[str, str]) -> str:
    """How long the model thinks before it answers; empty for the model's own."""
    value = fields.get("reasoning_effort", "").strip()
    if value and value not in EFFORTS:
        raise InvalidInput.of("reasoning_effort", f"Choose one of: {', '.join(EFFORTS)}.")
    return value


def answer_tokens(fields: Mapping[str, str]) -> int | None:
    """The longest reply; None for as long as there is room."""
    tokens = number(fields, "answer_tokens")
    if tokens is not None and not LEAST_ANSWER <= tokens <= MOST_ANSWER:
        raise InvalidInput.of(
            "answer_tokens",
            f"This must be a whole number from {LEAST_ANSWER} to {MOST_ANSWER:,}.",
        )
    return tokens


def own_instructions(fields: Mapping[str, str]) -> str:
    """A person's own instructions, which all their requests carry."""
    text = fields.get("instructions", "").replace("\r\n", "\n").strip()
    return storable("instructions", text, longest=INSTRUCTIONS_LENGTH)


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
