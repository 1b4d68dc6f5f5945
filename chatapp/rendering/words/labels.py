"""Labels: the words on the screen for stored values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatapp.rendering.number_format import short
from chatapp.text.safety import visible
from compression.judging.stored_audit import extracted_parts
from compression.summarizers.extractive import LABEL
from compression.types import Extracted

_CAUSES = {
    "threshold": "at the threshold",
    "background": "prepared in the background",
    "manual": "asked for",
    "preview": "shown before it is applied",
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
#: The section of a summary → its heading on the screen, and the word for one line of it and for
#: several. The empty name is the narrative's, whose lines are not counted.
_SECTIONS = {
    "": ("What happened", "", ""),
    "constraints": ("Rules", "rule", "rules"),
    "decisions": ("Decisions", "decision", "decisions"),
    "files": ("Files", "file", "files"),
    "done": ("Done", "finished task", "finished tasks"),
    "pending": ("To do", "open task", "open tasks"),
    "context": ("Facts", "fact", "facts"),
}
_STATUS_LABELS = {"superseded": "replaced"}
_PARTS = {
    "system": "Instructions",
    "summary": "Summary",
    "pinned": "Pinned messages",
    "tools": "Tools",
    "tail": "Messages, word for word",
    "adjustment": "Counted otherwise by this model",
    "reserve": "Reserve, kept free for the reply",
    "free": "Still free",
}
_FINDINGS = {
    "unfitting": "Rules that found no room",
    "missing": "Numbers, names, paths, quotations and dates",
    "evicted": "Lines taken out to make room",
    "refused": "Lines refused, because the messages do not say so",
}
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

_KINDS = {"chat": "reply", "summary": "summary", "probe": "check of a summary", "title": "title"}
_INSTRUCTIONS_OF = {
    "chat": "The chat's own",
    "own": "Yours, for all conversations",
    "conversation": "For this conversation",
    "project": "For the project",
    "project-lines": "Kept for the project",
}
_OPTIONS = {
    "max_tokens": "at most {:,} tokens",
    "temperature": "temperature {:g}",
    "reasoning_effort": "reasoning effort {}",
}
_OPTION_NAMES = {"temperature": "the temperature", "reasoning_effort": "the reasoning effort"}


def kind_label(kind: str) -> str:
    """What a model call was for."""
    return _KINDS.get(kind, visible(kind))


def maker(model: str) -> str:
    """The writer of a summary: a model's name, or that there was none."""
    return "extract, no model" if model == LABEL else visible(model)


def cause(trigger: str, restored_from: int | None, instead_of: str) -> str:
    """The cause of a version, or the person who changed it.

    ``instead_of`` is the trigger of the version before it.
    """
    if restored_from:
        return f"restored from version {restored_from}"
    if restored_from is not None:
        return "the new start undone" if instead_of == "clear" else "the summary removed"
    return _CAUSES.get(trigger, trigger)


def trigger(value: str) -> str:
    """The cause of versions with this trigger."""
    return "restored or carried over" if value == "restore" else _CAUSES.get(value, value)


def taken_back(trigger: str) -> str:
    """The effect of undoing a version that is not a compression."""
    return _TAKEN_BACK.get(trigger, "")


def part(name: str) -> str:
    """A part of the window, or of a request."""
    return _PARTS.get(name, name)


def finding(kind: str) -> str:
    """A list of what a summary leaves out."""
    return _FINDINGS[kind]


def section(name: str | None) -> str:
    """The heading of a section of the summary on the screen; None: the narrative's."""
    heading, *_ = _SECTIONS.get(name or "", (name or "", "", ""))
    return heading


def sections() -> list[tuple[str, str]]:
    """The name and the heading of each section of a summary, in their order."""
    return [(name, heading) for name, (heading, *_) in _SECTIONS.items()]


def counted_changes(added: int, changed: int, gone: int) -> str:
    """How many lines of a summary differ: "2 added, 1 changed, 3 gone"."""
    counts = ((added, "added"), (changed, "changed"), (gone, "gone"))
    return ", ".join(f"{count} {words}" for count, words in counts if count)


def status_label(status: str) -> str:
    """A version's status in a word."""
    return _STATUS_LABELS.get(status, status)


def extracted(parts: Sequence[Mapping[str, Any]]) -> str:
    """The parts of a summary that an extract wrote: "part 8 of 9", "parts 1, 8 of 9"."""
    found = extracted_parts(parts)
    if not found:
        return ""
    numbers = ", ".join(str(one.part) for one in found)
    return f"part{'s' if len(found) > 1 else ''} {numbers} of {found[-1].parts} by extract"


def extracted_part(part: Mapping[str, Any]) -> str:
    """The same for one part, with its messages and the reason."""
    sentence = visible(str(Extracted(**part)))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def section_label(section: str) -> str:
    """The word before one line of a section: "Rule"; empty for the narrative."""
    _, word, _ = _SECTIONS.get(section, ("", "", ""))
    return f"{word[:1].upper()}{word[1:]}"


def kept(counts: Mapping[str, int], between: str = ", ") -> str:
    """What a summary keeps, the two most binding kinds of it: "3 rules, 2 decisions kept"."""
    words = [
        f"{number} {_SECTIONS[section][1 + (number > 1)]}"
        for section, number in counts.items()
        if section in _SECTIONS
    ]
    return f"{between.join(words[:2])} kept" if words else ""


def compressed_aloud(before: int, after: int, counts: Mapping[str, int]) -> str:
    """The figures of a compression for the ear, where an arrow and a dot are noise.

    "3.5k to 307 tokens, 3 rules and 2 decisions kept"; what is unknown is left out.
    """
    tokens = f"{short(before)} to {short(after)} tokens" if after else ""
    return ", ".join(filter(None, (tokens, kept(counts, " and "))))


def time_left(seconds: int) -> str:
    """A remaining time, roughly: "about 20 s left", "about 3 min left"."""
    if seconds < 1:
        return "nearly done"
    if seconds < 100:
        step = 5 if seconds > 10 else 1
        return f"about {-(-seconds // step) * step} s left"
    return f"about {-(-seconds // 60)} min left"


def thought_for(seconds: float | None) -> str:
    """What the reasoning of a finished reply is headed: "Thought for 6 s", "Reasoning" if unknown.

    The time that it took is not known of imported messages and of those of earlier versions.
    """
    if seconds is None:
        return "Reasoning"
    whole = round(seconds)
    if whole < 1:
        return "Thought for a moment"
    minutes, rest = divmod(whole, 60)
    return f"Thought for {minutes} min {rest} s" if minutes else f"Thought for {rest} s"


def done_first(decision: Mapping[str, str]) -> str:
    """The steps taken before a request was sent, and why."""
    done = _DONE_FIRST.get(decision["action"], decision["action"])
    reason = decision.get("reason", "")
    return f"{done}: {reason[:1].lower()}{reason[1:]}" if reason else done


def instructions_of(origin: str) -> str:
    """The author and the reach of a part of the instructions."""
    return _INSTRUCTIONS_OF.get(origin, origin)


def sent_along(options: Mapping[str, Any]) -> str:
    """The options of a request: "temperature 0.2, at most 2,048 tokens"."""
    return ", ".join(
        words.format(options[name]) for name, words in _OPTIONS.items() if name in options
    )


def not_taken(names: Sequence[str]) -> str:
    """The chosen options that a model does not take: "the temperature"."""
    return " and ".join(_OPTION_NAMES.get(name, name) for name in names)


def masked_words(results: int, calls: int) -> str:
    """The messages of a batch of masks: "6 tool results and the arguments of 2 calls masked"."""
    parts = []
    if results:
        parts.append(f"{results} tool result{'s' if results > 1 else ''}")
    if calls:
        parts.append(f"the arguments of {calls} call{'s' if calls > 1 else ''}")
    words = " and ".join(parts)
    return f"{words[:1].upper()}{words[1:]} masked"
