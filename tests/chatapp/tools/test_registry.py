"""What a turn's requests offer."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.tools import registry
from tests.chatapp.context.test_request import snapshot_of
from tests.chatapp.tools_at_hand import offering, tool


async def test_nothing_is_offered_unless_it_is_switched_on(settings: Any) -> None:
    settings.CURRENT_TIME_TOOL = False
    assert await registry.tools_for(snapshot_of([])) == ()
    settings.CURRENT_TIME_TOOL = True
    assert [one.name for one in await registry.tools_for(snapshot_of([]))] == ["current_time"]


async def test_every_source_is_asked(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: a source that an app has added is left out."""
    settings.CURRENT_TIME_TOOL = True
    monkeypatch.setattr(registry, "SOURCES", [*registry.SOURCES, offering(tool())])
    names = [one.name for one in await registry.tools_for(snapshot_of([]))]
    assert names == ["current_time", "weather"]
