"""Compression's settings of one conversation in a few words instead of figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A conversation's own settings of compression; None: the server's."""

    threshold: float | None = None
    keep_turns: int | None = None
    compression_off: bool = False


BALANCED, VERBATIM, EARLY, BY_HAND, OWN = "balanced", "verbatim", "early", "by_hand", "own"
PRESETS = {
    BALANCED: Figures(),
    VERBATIM: Figures(threshold=0.92, keep_turns=6),
    EARLY: Figures(threshold=0.6),
}


def preset_of(figures: Figures) -> str:
    """The name of the preset with these figures; ``own`` for any others."""
    if figures.compression_off:
        return BY_HAND
    return next((name for name, known in PRESETS.items() if known == figures), OWN)


def changes_to(name: str) -> dict[str, float | int | bool | None] | None:
    """The settings that a preset changes; None if there is no such preset.

    ``own`` switches compression on and leaves the figures, ``by_hand`` leaves them too.
    """
    if name in (OWN, BY_HAND):
        return {"compression_off": name == BY_HAND}
    figures = PRESETS.get(name)
    if figures is None:
        return None
    return {
        "threshold": figures.threshold,
        "keep_turns": figures.keep_turns,
        "compression_off": False,
    }
