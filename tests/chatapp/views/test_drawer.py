"""What the drawer asks for: the last reply, the versions, and what a summary leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.models import Summary
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always keep in mind that the harbour of Malmö opens at nine and closes at five. " * 35


@pytest.fixture
async def compressed(client: AsyncClient, code: str, upstream: FakeUpstream) -> str:
    """Alice's conversation with a summary."""
    for number in range(4):
        await send(client, code, f"Question {number}. {WORDS}")
        await settle()
    await client.post(f"/c/{code}/compact/", headers=JSON)
    await settle()
    return code


async def test_the_last_reply(client: AsyncClient, code: str, bob: User) -> None:
    """Breaks when: it is not the last, or a stranger is told of it."""
    path = f"/c/{code}/context/?reply"
    assert (await client.get(path, headers=JSON)).json() == {"turn": None}
    for headers in (HTMX, {}):
        assert b"There is no reply yet." in (await client.get(path, headers=headers)).content
    for text in ("One", "Two"):
        last = (await send(client, code, text))["turn"]
        await settle()
    told = (await client.get(path, headers=JSON)).json()["turn"]
    assert told == (await client.get(f"/c/{code}/turns/{last}/", headers=JSON)).json()
    for headers in (HTMX, {}):
        shown = (await client.get(path, headers=headers)).content.decode()
        assert ("<html" in shown) is (headers is not HTMX)
        assert f'href="#m-{told["seq"]}"' in shown
        assert 'data-tab="reply"' in shown
    stranger = await signed_in(bob)
    for headers in (JSON, HTMX, {}):
        assert (await stranger.get(path, headers=headers)).status_code == 404


async def test_the_versions_are_a_view_of_their_own(client: AsyncClient, compressed: str) -> None:
    path = f"/c/{compressed}/summaries/"
    summary = (await client.get(path, headers=HTMX)).content.decode()
    versions = (await client.get(f"{path}?versions", headers=HTMX)).content.decode()
    assert ('class="versions"' in summary, 'class="prose lines"' in summary) == (False, True)
    assert ('class="versions"' in versions, 'class="prose"' in versions) == (True, False)
    page = (await client.get(path)).content.decode()
    assert 'class="versions"' in page
    assert 'class="prose lines"' in page
    told = await client.get(f"{path}?versions", headers=JSON)
    assert told.json() == (await client.get(path, headers=JSON)).json()


SHAPES: list[Any] = [
    None,
    [],
    "missing",
    {"salient": "many", "missing": {"a": 1}, "notes": [None, 3, ["x"]], "dropped": 5},
    {"missing": ["<script>alert(1)</script>"], "salient": 10**30, "retained": -4},
    {"accounting": 7, "probe": [], "extracted": {"part": 1}, "floor": "x"},
    {
        "accounting": {"tokens_before": "x", "tokens_after": [], "cost_before": "much"},
        "probe": {"asked": {}, "right": None, "error": []},
        "extracted": [1, {"part": "x", "reason": "no"}, {"part": 1, "parts": 2, "reason": 5}],
    },
]


@pytest.mark.parametrize("audit", SHAPES, ids=lambda audit: str(audit)[:12])
async def test_an_imported_audit_breaks_no_page(
    client: AsyncClient, compressed: str, audit: Any
) -> None:
    """Breaks when: what a file says that the checks have found is taken to have their shape."""
    stored = audit if isinstance(audit, dict) else {"missing": audit, "notes": audit}
    await Summary.objects.filter(conversation__code=compressed).aupdate(audit=stored)
    for path in ("summaries/", "summaries/?versions", "context/", ""):
        for headers in (HTMX, {}):
            answer = await client.get(f"/c/{compressed}/{path}", headers=headers)
            assert answer.status_code == 200
            assert b"<script>alert" not in answer.content
