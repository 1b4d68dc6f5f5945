from __future__ import annotations

from dataclasses import asdict

import pytest

from compression.planning import defaults, presets
from compression.planning.presets import Figures, changes_to, preset_of


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_is_recognised_by_its_figures(name: str) -> None:
    """Breaks when: two presets have the same figures, or one has impossible ones."""
    figures = presets.PRESETS[name]
    assert preset_of(figures) == name
    assert figures.threshold is None or defaults.possible(figures.threshold)
    assert changes_to(name) == asdict(figures)


def test_other_figures_are_the_persons_own() -> None:
    own = Figures(threshold=0.7)
    assert preset_of(own) == presets.OWN
    assert changes_to(presets.OWN) == {"compression_off": False}, "the figures stay"


def test_off_is_a_choice_of_its_own() -> None:
    """Breaks when: who switches it on again has lost the figures."""
    assert preset_of(Figures(threshold=0.7, compression_off=True)) == presets.BY_HAND
    assert changes_to(presets.BY_HAND) == {"compression_off": True}


def test_there_are_no_others() -> None:
    assert changes_to("") is None
    assert changes_to("always") is None
