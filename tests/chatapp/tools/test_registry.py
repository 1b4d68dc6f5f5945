"""What a turn's requests offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chatapp.context.request import StoredMessage
from chatapp.tools import registry
from tests.chatapp.context.test_request import snapshot_of
from tests.chatapp.tools_at_hand import offering, tool
from tests.compression.hosting import COUNTER, SIZES


async def names(*sources: registry.ToolSource, **snapshot: Any) -> list[str]:
    """The tools that these sources give, for a conversation without messages."""
    found = await registry.all_of(sources)(snapshot_of([], **snapshot), SIZES)
    return [one.name for one in found]


async def test_nothing_is_offered_unless_it_is_switched_on(settings: Any) -> None:
    settings.CURRENT_TIME_TOOL, settings.FETCH_HOSTS = False, []
    assert await names(registry.built_in) == []
    settings.CURRENT_TIME_TOOL, settings.FETCH_HOSTS = True, ["example.org"]
    assert await names(registry.built_in) == ["current_time", "fetch_page"]


async def test_older_messages_are_looked_up_once_some_are_left_out() -> None:
    """Breaks when: a model is offered tools that find nothing, or none after a truncation."""
    assert await names(registry.recall(COUNTER)) == []
    for left_out in ({"boundary": 7}, {"truncated_through": 7}):
        assert await names(registry.recall(COUNTER), **left_out) == [
            "search_history",
            "read_messages",
        ]


async def test_what_is_masked_can_be_looked_up_before_any_boundary() -> None:
    """Breaks when: a model sees that a result is masked, and has no tool to read it."""
    said = StoredMessage(seq=3, role="tool", text="4021 files", token_count=9, masked=True)
    offered = await registry.recall(COUNTER)(snapshot_of([said]), SIZES)
    assert [one.name for one in offered] == ["search_history", "read_messages"]
    assert await registry.recall(COUNTER)(snapshot_of([replace(said, masked=False)]), SIZES) == ()


async def test_every_source_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: a source that an app has added is left out."""
    monkeypatch.setattr(registry, "SOURCES", [offering(tool("sky"))])
    assert await names(offering(tool()), offering(tool("sea"))) == ["weather", "sea", "sky"]
