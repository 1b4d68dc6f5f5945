"""What somebody did, as its record says it, in plain words."""

from __future__ import annotations

_LOOKS = {
    "conversation": "looked at the conversation",
    "summary": "read a summary",
    "messages": "read messages",
    "log": "read a model call",
}
_WHOLE = {
    "Added.": "added the {}",
    "Deleted.": "deleted the {}",
    "Changed nothing.": "saved the {} as it was",
}
_CHANGED = "Changed "
_RESET = "Reset what was learned: "
_KINDS = ("user", "group", "model profile", "connection", "tool server")


def act_in_words(what: str) -> str:
    """A look by its page, or an act: "user: Changed Email address." is "changed Email address of
    the user". What was recorded in words of its own stays.
    """
    kind, _, act = what.partition(": ")
    if what in _LOOKS:
        return _LOOKS[what]
    if act in _WHOLE:
        return _WHOLE[act].format(kind)
    if act.startswith(_CHANGED):
        return f"changed {act[len(_CHANGED) :].rstrip('.,')} of the {kind}"
    if act.startswith(_RESET):
        return f"reset what was learned of the {kind}: {act[len(_RESET) :].rstrip('.,')}"
    # The rest of an act that was too long for one record.
    return f"and {act.rstrip('.,')} of the {kind}" if kind in _KINDS and act else what
