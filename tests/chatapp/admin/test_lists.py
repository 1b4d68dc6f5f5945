"""The lists of the admin: the state of a summary in one column, and filters as chips above."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chatapp.models import Conversation, Summary
from compression.admin.states import ICONS, STATES, state_of
from compression.models import Review
from compression.types import SummaryStatus
from tests.reviewing import BASE, browser_of, conversation_of, page, summarise

pytestmark = pytest.mark.django_db

LIST = f"{BASE}summary/"


@pytest.fixture
def root() -> Client:
    return browser_of(User.objects.create_superuser("root"))


@pytest.fixture
def rows(alice: User) -> list[Summary]:
    """A row of each status and each review."""
    made = []
    kinds: list[tuple[SummaryStatus, Review | None]] = [
        *((status, None) for status in SummaryStatus if status != SummaryStatus.PARTIAL),
        *((SummaryStatus.ACTIVE, review) for review in Review),
        (SummaryStatus.SUPERSEDED, Review.APPROVED),
    ]
    for number, (status, review) in enumerate(kinds):
        row = summarise(conversation_of(alice, f"{number}", "two", "three", "four"), "x")
        values: dict[str, Any] = {"status": status.value, "review": review and review.value}
        Summary.objects.filter(pk=row.pk).update(**values)
        row.refresh_from_db()
        made.append(row)
    return made


def table(client: Client, query: str = "") -> str:
    return page(client, f"{LIST}?{query}").partition('id="result_list"')[2]


def test_each_row_is_found_by_its_state_and_by_no_other(root: Client, rows: list[Summary]) -> None:
    """Breaks when: the words of the column and the filter's condition do not go together."""
    found = {
        name: {
            int(key) for key in re.findall(r"summary/(\d+)/review/", table(root, f"state={name}"))
        }
        for name in STATES
    }
    wanted: dict[str, set[int]] = {name: set() for name in STATES}
    for row in rows:
        wanted[state_of(row)].add(row.pk)
    assert found == wanted
    assert set(ICONS) == set(STATES)
    assert all(wanted.values())


def test_the_state_is_said_in_words_beside_its_icon(root: Client, rows: list[Summary]) -> None:
    cells = re.findall(r'field-state">(.*?)</td>', table(root), re.DOTALL)
    assert len(cells) == len(rows)
    said = {re.sub(r"<[^>]*>", "", one).strip() for one in cells}
    assert {"not yet seen", "seen", "approved", "needs work", "refused", "failed"} <= said
    assert "replaced, approved" in said
    assert all("aria-hidden" in one for one in cells)


def test_filters_are_chips_that_name_what_is_chosen(root: Client, rows: list[Summary]) -> None:
    """Breaks when: Django's sidebar is back, or a filter is called after a column."""
    for name in ("summary", "conversation", "modelcall", "accessrecord"):
        text = page(root, f"{BASE}{name}/")
        assert 'class="filter-chips"' in text, name
        assert "changelist-filter" not in text, name
        for odd in ("By at", "By deleted at", "By degraded", "Deleted at"):
            assert odd not in text, name
    text = html.unescape(page(root, f"{LIST}?state=needs_work"))
    chips = text.partition('class="filter-chips"')[2].partition("</nav>")[0]
    assert re.search(r"chosen.*?State\s*<b>needs work</b>", chips, re.DOTALL)
    assert 'href="?"' in chips.partition("Clear filters")[0].rpartition("<a")[2]


def test_conversations_are_told_apart_by_whether_they_are_deleted(
    root: Client, alice: User
) -> None:
    for title in ("it stays", "it went"):
        talk = conversation_of(alice, title, "two", title=title)
        if title == "it went":
            talk.deleted_at = timezone.now()
            talk.save(update_fields=["deleted_at"])
    text = page(root, f"{BASE}conversation/?deleted=yes")
    assert ("it went" in text, "it stays" in text) == (True, False)
    text = page(root, f"{BASE}conversation/?deleted=no")
    assert ("it went" in text, "it stays" in text) == (False, True)


def test_a_row_says_of_a_conversation_only_what_is_unusual(root: Client, alice: User) -> None:
    """Breaks when: zeros and dashes in columns of their own stand for what is usual."""
    conversation_of(alice, "plain", "two", title="a plain one")
    kept = conversation_of(alice, "kept", "two", "three", "four", title="a kept one")
    summarise(kept, "x", degraded=True)
    Conversation.objects.filter(pk=kept.pk).update(deleted_at=timezone.now())
    text = page(root, f"{BASE}conversation/").partition('id="result_list"')[2]
    said = {
        cells[0]: cells[1:]
        for row in re.findall(r"<tr>(.*?)</tr>", text.partition("<tbody>")[2], re.DOTALL)
        if (cells := [re.sub(r"<[^>]*>", "", one) for one in re.findall(r"<t[hd].*?</t[hd]>", row)])
    }
    assert said["a plain one"][1:5] == ["–", "2", "–", "–"]
    assert said["a kept one"][2:5] == [
        "4",
        "version 1, to message 2",
        "summary by extract, deleted",
    ]
