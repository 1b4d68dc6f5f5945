"""Each viewer gets events in the format that it asked for."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from chatapp.consumers.outlet import Outlet
from chatapp.live.bus import Published
from chatapp.live.events import TitleChanged
from chatapp.rendering import fragments
from chatapp.rendering.pool import RenderingPool

TITLE = TitleChanged(conversation_id=1, event_no=3, at=timezone.now(), title="A <b>title</b>")
PUBLISHED = Published(
    type=TITLE.type, event_no=3, json=TITLE.as_json(), html=fragments.render_event(TITLE)
)


async def frames(*, as_json: bool) -> list[str]:
    """What is sent for the same event, as the viewer's own and as everybody's."""
    sent: list[str] = []

    async def send(text: str) -> None:
        sent.append(text)

    outlet = Outlet(send, RenderingPool(), user_id=1, as_json=as_json)
    await outlet.send_event(TITLE)
    await outlet.send_published(PUBLISHED)
    return sent


@pytest.mark.parametrize("as_json", [True, False])
async def test_an_event_of_ones_own_is_as_one_for_all(as_json: bool) -> None:
    own, for_all = await frames(as_json=as_json)
    assert own == for_all


async def test_json_is_the_event_and_html_a_fragment() -> None:
    (as_json, _), (as_html, _) = await frames(as_json=True), await frames(as_json=False)
    assert json.loads(as_json)["title"] == "A <b>title</b>"
    assert 'data-event="title-changed"' in as_html
    assert "<b>" not in as_html
