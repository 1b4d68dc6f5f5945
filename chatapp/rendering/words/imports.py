"""What an import left out, and why, in a reader's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chatapp.text.safety import visible

# What a reader of the file counts → one of them, several, and why they are not here.
_WORDS = {
    "message of another branch": (
        "message of an earlier attempt",
        "messages of earlier attempts",
        "What you saw last is here; what you or the model had replaced before that is not.",
    ),
    "cycle in the tree of messages": (
        "loop between messages",
        "loops between messages",
        "The file is damaged there; what stood before the loop is here.",
    ),
    "system message": (
        "message of the system",
        "messages of the system",
        "They give orders to a model, and nobody here has written them.",
    ),
    "system prompt": (
        "system prompt",
        "system prompts",
        "It gives orders to a model. Write it into the conversation's settings if you want it.",
    ),
    "hidden message": (
        "hidden message",
        "hidden messages",
        "They were not shown where they come from, either.",
    ),
    "note on how long was thought": (
        "note on how long was thought",
        "notes on how long was thought",
        "The thoughts themselves are here, where the file has them.",
    ),
    "empty message": ("empty message", "empty messages", "There was nothing in them."),
    "message without a known role": (
        "message by nobody known",
        "messages by nobody known",
        "The file does not say whether you or the model wrote them.",
    ),
    "attached file": (
        "attached file",
        "attached files",
        "The export has only their names; a line in the message says where each was.",
    ),
    "tool call without id or name": (
        "call of a tool without its name",
        "calls of tools without their names",
        "It cannot be told what was called.",
    ),
    "function_call of the old form": (
        "call of a tool in an old form",
        "calls of tools in an old form",
        "Today's models could not read them.",
    ),
    "name of a speaker": (
        "name of a speaker",
        "names of speakers",
        "Here a conversation has two: you and the model.",
    ),
    "summary version": (
        "version of a summary",
        "versions of summaries",
        "They do not fit the messages in the file; the messages themselves are all here.",
    ),
    "pin, for which there is no room": (
        "pin",
        "pins",
        "The model's window has no room for more. The messages themselves are here.",
    ),
    "time that is no time": (
        "time that is none",
        "times that are none",
        "The messages are here, in their order.",
    ),
    "text with hidden characters, which were taken out": (
        "text with hidden characters",
        "texts with hidden characters",
        "They could carry words that only a model sees, and were taken out. All else is here.",
    ),
    "text of a message beyond its first million characters": (
        "message beyond a million characters",
        "messages beyond a million characters",
        "The first million is here.",
    ),
    "character that cannot be stored, replaced": (
        "text with characters that cannot be stored",
        "texts with characters that cannot be stored",
        "A sign stands in their place.",
    ),
}
_PART = "part of type "
_PICTURES = frozenset({"image_asset_pointer", "image", "image_url"})
_SOUNDS = frozenset(
    {"audio_asset_pointer", "audio", "input_audio", "real_time_user_audio_video_asset_pointer"}
)
_IN_ITS_PLACE = "Only text can be brought; a line in the message says where each was."


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """One kind of what was left out."""

    count: int
    what: str
    why: str = ""


def left_out(counts: Mapping[str, int]) -> list[LeftOut]:
    """What an import left out, most first; kinds unknown here keep the reader's own words."""
    found = [_described(kind, count) for kind, count in counts.items()]
    return sorted(found, key=lambda one: -one.count)


def _described(kind: str, count: int) -> LeftOut:
    one, many, why = _WORDS.get(kind) or _part_words(kind) or (kind, kind, "")
    return LeftOut(count=count, what=visible(one if count == 1 else many), why=why)


def _part_words(kind: str) -> tuple[str, str, str] | None:
    if not kind.startswith(_PART):
        return None
    name = kind.removeprefix(_PART)
    if name in _PICTURES:
        return "picture", "pictures", _IN_ITS_PLACE
    if name in _SOUNDS:
        return "recording", "recordings", _IN_ITS_PLACE
    return f"part of type {name}", f"parts of type {name}", _IN_ITS_PLACE
