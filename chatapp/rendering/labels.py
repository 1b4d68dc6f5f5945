"""Labels: the words on the screen for stored values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatapp.text.safety import visible
from compression.summarizers.extractive import LABEL
from compression.types import Extracted

_CAUSES = {
    "threshold": "at the threshold",
    "background": "prepared in the background",
    "manual": "asked for",
    "overflow": "because the request was too large",
    "edit": "edited by a person",
    "restore": "carried over from the earlier conversation",
    "clear": "cleared by a person",
}
_TAKEN_BACK = {
    "edit": "Takes back the edit",
    "clear": "Takes back the new start",
    "restore": "Removes what was carried over",
}
_STATUS_LABELS = {"superseded": "replaced"}
_DONE_FIRST = {
    "continue": "nothing",
    "mask": "old tool results were masked",
    "prepare": "a summary was begun in the background",
    "compress": "the conversation was compressed",
    "drop_reasoning": "the model's earlier reasoning was left out",
    "truncate": "the oldest turns were left out",
    "wind_down": "the model was told to finish",
    "block": "the request was not sent",
}


def maker(model: str) -> str:
    """The writer of a summary: a model's name, or that there was none."""
    return "extract, no model" if model == LABEL else visible(model)


def cause(version: Mapping[str, Any]) -> str:
    """The cause of a version, or the person who changed it."""
    restored = version["restored_from"]
    if restored:
        return f"restored from version {restored}"
    if restored is not None:
        afresh = version["instead_of"] == "clear"
        return "the new start undone" if afresh else "the summary removed"
    return _CAUSES.get(version["trigger"], str(version["trigger"]))


def trigger(value: str) -> str:
    """The cause of versions with this trigger."""
    return "restored or carried over" if value == "restore" else _CAUSES.get(value, value)


def taken_back(trigger: str) -> str:
    """The effect of undoing a version that is not a compression."""
    return _TAKEN_BACK.get(trigger, "")


def status_label(status: str) -> str:
    """A version's status in a word."""
    return _STATUS_LABELS.get(status, status)


def extracted(parts: Sequence[Mapping[str, Any]]) -> str:
    """The parts of a summary that an extract wrote: "part 8 of 9", "parts 1, 8 of 9"."""
    if not parts:
        return ""
    numbers = ", ".join(str(one["part"]) for one in parts)
    return f"part{'s' if len(parts) > 1 else ''} {numbers} of {parts[-1]['parts']} by extract"


def extracted_part(part: Mapping[str, Any]) -> str:
    """The same for one part, with its messages and the reason."""
    sentence = visible(str(Extracted(**part)))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def time_left(seconds: int) -> str:
    """A remaining time, roughly: "about 20 s left", "about 3 min left"."""
    if seconds < 1:
        return "nearly done"
    if seconds < 100:
        step = 5 if seconds > 10 else 1
        return f"about {-(-seconds // step) * step} s left"
    return f"about {-(-seconds // 60)} min left"


def done_first(decision: Mapping[str, str]) -> str:
    """The steps taken before a request was sent, and why."""
    done = _DONE_FIRST.get(decision["action"], decision["action"])
    reason = decision.get("reason", "")
    return f"{done}: {reason[:1].lower()}{reason[1:]}" if reason else done


def masked_words(results: int, calls: int) -> str:
    """The messages of a batch of masks: "6 tool results and the arguments of 2 calls masked"."""
    parts = []
    if results:
        parts.append(f"{results} tool result{'s' if results > 1 else ''}")
    if calls:
        parts.append(f"the arguments of {calls} call{'s' if calls > 1 else ''}")
    words = " and ".join(parts)
    return f"{words[:1].upper()}{words[1:]} masked"
