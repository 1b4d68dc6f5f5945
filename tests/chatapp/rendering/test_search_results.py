"""What was found in one conversation: the first messages, and one way to the others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.template.loader import render_to_string

from chatapp.conversations.searching import Found, Group, MessageHit
from chatapp.text.search_terms import Part

PARTS = (Part(text="A heron", marked=True),)


def group(*, found: int, here: int) -> Group:
    """So many messages were found, so many of them stand on this page."""
    hits = tuple(
        MessageHit(
            code="c",
            title="Herons",
            seq=seq,
            role="user",
            created_at=datetime(2026, 2, 1, tzinfo=UTC),
            parts=PARTS,
        )
        for seq in range(1, here + 1)
    )
    return Group(code="c", parts=PARTS, count=found, messages=hits)


@pytest.mark.parametrize(
    ("found", "here", "inside", "folded", "leads_on"),
    [
        (3, 3, "", False, False),
        (5, 5, "", True, False),
        (6, 4, "", False, True),
        (6, 4, "c", True, False),
    ],
)
def test_one_way_leads_to_the_other_messages(
    found: int, here: int, inside: str, folded: bool, leads_on: bool
) -> None:
    """Breaks when: "1 more" and "All 6" stand below three messages, so that the sum is wrong."""
    shown = Found(query="heron", page=1, has_more=False, messages=[], titles=[])
    html = render_to_string(
        "partials/found/group.html",
        {"group": group(found=found, here=here), "found": shown, "inside": inside},
    )
    assert ("<details" in html) is folded
    assert ("All 6 in this conversation" in html) is leads_on
