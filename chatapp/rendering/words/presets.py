"""The presets of compression in a reader's words."""

from __future__ import annotations

from dataclasses import dataclass

from compression.planning import presets


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One choice: its name in forms, its title, and what it does."""

    name: str
    title: str
    words: str
    chosen: bool
    percent: int | None = None
    """Of the room for a request, at which it compresses; None where no figure says it."""
    turns: int | None = None
    """Kept word for word."""


def _figures(name: str, threshold: float, keep_turns: int) -> tuple[int, int]:
    figures = presets.PRESETS[name]
    return round(100 * (figures.threshold or threshold)), figures.keep_turns or keep_turns


def choices(chosen: str, *, threshold: float, keep_turns: int) -> list[Preset]:
    """All presets; ``threshold`` and ``keep_turns`` are the server's."""
    words = {}
    known = {name: _figures(name, threshold, keep_turns) for name in presets.PRESETS}
    for name, sentence in (
        (presets.VERBATIM, "At {} % of the room for a request; keeps the {} word for word."),
        (presets.BALANCED, "At {} %, as set on the server; keeps the {}."),
        (presets.EARLY, "At {} % of the room for a request; shorter and cheaper requests."),
    ):
        percent, turns = known[name]
        words[name] = sentence.format(percent, "last turn" if turns == 1 else f"last {turns} turns")
    words[presets.BY_HAND] = "Never by itself. Once it is full, the oldest are left out."
    words[presets.OWN] = "With the figures below."
    titles = {
        presets.VERBATIM: "Keep more verbatim",
        presets.BALANCED: "Balanced",
        presets.EARLY: "Summarise early",
        presets.BY_HAND: "Only when you ask",
        presets.OWN: "Your own figures",
    }
    found = []
    for name, title in titles.items():
        at, kept = known.get(name, (None, None))
        found.append(
            Preset(
                name=name,
                title=title,
                words=words[name],
                chosen=name == chosen,
                percent=at,
                turns=kept,
            )
        )
    return found
