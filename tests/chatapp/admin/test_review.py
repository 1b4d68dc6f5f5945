"""The review screen: what it shows to whom, what it records, and what a reviewer does on it."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chatapp.models import AccessRecord, Conversation, Message, Summary
from compression import store
from compression.admin.queue import SAMPLED
from compression.types import SummaryStatus, Trigger
from tests.reviewing import (
    AUDIT,
    BASE,
    SECRET,
    TRANSCRIPT,
    browser_of,
    conversation_of,
    draft_of,
    page,
    review_path,
    staff,
    summarise,
    summary_path,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

LIST = f"{BASE}summary/"
EVERYTHING = ("view_summary", "change_summary", "view_message", "view_audit", "view_conversation")
DETAIL = "only-in-the-original-77"


@pytest.fixture
def conversation(alice: User) -> Conversation:
    said = f"{SECRET}. The part is called Only-in-the-Original-77, as you know. And so on."
    return conversation_of(alice, said, "two", "three", "four", "five", "six")


@pytest.fixture
def summary(conversation: Conversation) -> Summary:
    return summarise(conversation, "Use spaces", "Ship on Friday")


@pytest.fixture
def reviewer() -> User:
    return staff("reviewer", *EVERYTHING)


@pytest.fixture
def client(reviewer: User) -> Client:
    return browser_of(reviewer)


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


def post(client: Client, summary: Summary, action: str, **fields: Any) -> Any:
    fields.setdefault("version", str(summary.version))
    return client.post(review_path(summary), {"action": action, **fields})


def state(conversation: Conversation) -> tuple[int, str, int]:
    conversation.refresh_from_db()
    return (
        conversation.compression_version,
        conversation.compressed_context,
        Summary.objects.filter(conversation=conversation).count(),
    )


def queue(client: Client) -> dict[str, int]:
    """The links above the list: reason → count."""
    text = page(client, LIST)
    found = re.findall(r'href="[?]queue=(\w+)"[^>]*>.*?"count">(\d+)<', text, re.DOTALL)
    return {name: int(count) for name, count in found}


def listed(client: Client, query: str) -> set[int]:
    """The keys of the rows in the list."""
    return {int(key) for key in re.findall(r"summary/(\d+)/review/", rows_of(client, query))}


def rows_of(client: Client, query: str) -> str:
    return page(client, f"{LIST}?{query}").partition('id="result_list"')[2]


# What is shown, and to whom


def test_it_works(client: Client, summary: Summary) -> None:
    text = html.unescape(page(client, review_path(summary)))
    for shown in ("Use spaces", "Ship on Friday", SECRET, "75 %", DETAIL, "at the threshold"):
        assert shown in text
    assert 'data-line="e1" data-seqs="1"' in text
    assert 'data-seq="1"' in text
    assert 'data-seq="2"' not in text, "no line comes from it"
    assert "<h1>A talk</h1>" in text
    assert "nav-sidebar" not in text


def test_a_message_names_the_lines_that_come_from_it(client: Client, summary: Summary) -> None:
    """By their heading, and from the second on with a number.

    Breaks when: the links say nothing of where they lead.
    """
    text = page(client, review_path(summary))
    source = text.partition('data-seq="1"')[2].partition("</li>")[0]
    links = re.findall(r'href="#line-(\w+)" title="([^"]+)">\s*([^<]*?)\s*</a>', source)
    assert links == [("e1", "Use spaces", "Decisions,"), ("e2", "Ship on Friday", "Decisions 2")]


def test_what_only_the_messages_have_is_said_once(client: Client, summary: Summary) -> None:
    """Breaks when: the audit's list repeats the details that can be added above it."""
    text = page(client, review_path(summary))
    audit = text.partition("What the audit found")[2]
    assert "an evicted line" in audit
    assert "Only in the originals" not in audit
    assert DETAIL not in audit


def test_a05_who_may_see_summaries_only_sees_no_message(
    summary: Summary, conversation: Conversation
) -> None:
    """A05: neither the sources nor what only they hold; and nobody can fetch it by a chip.

    Breaks when: the screen reads the messages, or the audit's list, without asking.
    """
    for permissions, chips in ((), False), (("view_audit",), True):
        person = staff(f"only-{chips}", "view_summary", "change_summary", *permissions)
        client = browser_of(person)
        text = page(client, review_path(summary))
        assert "Use spaces" in text
        assert "not read messages" in text
        assert SECRET not in text
        assert (DETAIL in text) == chips
        assert "/chatapp/message/" not in text
        assert not AccessRecord.objects.filter(what="messages").exists()
    before = state(conversation)
    blind = browser_of(User.objects.get(username="only-False"))
    assert post(blind, summary, "chip", detail=DETAIL).status_code == 403
    assert state(conversation) == before
    # With the list and without the messages, the detail itself is added and no word around it.
    assert post(client, summary, "chip", detail=DETAIL).status_code == 302
    assert "only-in-the-original-77" in state(conversation)[1]
    assert "as you know" not in state(conversation)[1]


def test_each_look_is_recorded_messages_beside_the_summary(
    client: Client, reviewer: User, summary: Summary
) -> None:
    """Breaks when: messages are shown on the review without their record."""
    page(client, review_path(summary))
    looks = AccessRecord.objects.order_by("pk").values_list("viewer_name", "what")
    assert list(looks) == [("reviewer", "summary"), ("reviewer", "messages")]
    # Whether something has changed is asked every few seconds, and tells nothing.
    answer = client.get(f"{review_path(summary)}now/")
    assert answer.json() == {"version": 1, "running": False, "url": review_path(summary)}
    assert AccessRecord.objects.count() == 2


def test_a05_what_is_asked_again_and_again_is_closed_too(summary: Summary) -> None:
    """A05: Breaks when: ``now_view`` answers whoever asks."""
    path = f"{review_path(summary)}now/"
    assert browser_of(staff("nobody")).get(path).status_code == 403
    assert browser_of(staff("other", "view_message")).get(path).status_code == 403
    assert Client().get(path).status_code == 302
    root = browser_of(User.objects.create_superuser("root"))
    assert root.get(f"{LIST}999/review/now/").status_code == 403
    assert root.get(f"{LIST}x/review/").status_code == 302


def test_who_may_only_look_changes_nothing_and_leaves_it_unseen(
    summary: Summary, conversation: Conversation
) -> None:
    """Breaks when: a look without the permission to change counts as a review."""
    looker = browser_of(staff("looker", "view_summary"))
    text = page(looker, review_path(summary))
    assert "<textarea" not in text
    assert "Approve" not in text
    before = state(conversation)
    for action in ("approve", "needs_work", "line", "chip", "restore", "again", "undo", "edit"):
        assert post(looker, summary, action).status_code == 403, action
    assert state(conversation) == before
    summary.refresh_from_db()
    assert summary.review is None


def test_what_anybody_wrote_stays_text(client: Client, conversation: Conversation) -> None:
    """X01, X07: lines, messages, chips, notes and names are inert on the screen.

    Breaks when: one of them is marked as safe.
    """
    evil = "<img src=x onerror=alert(1)>"
    Message.objects.filter(conversation=conversation).update(text=evil)
    made = summarise(conversation, evil, audit={**AUDIT, "missing": [evil]})
    post(client, made, "needs_work", note=evil)
    text = page(client, review_path(made))
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= 4


def test_lines_that_were_carried_over_name_no_message_of_this_conversation(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """Breaks when: numbers of another conversation's messages lead to this one's."""
    other = conversation_of(conversation.owner, "a", "b", "c", title="Part 2")
    base = store.read_base(conversation.pk)
    store.carry_over(other.pk, base, summary_tokens=5, author_id=None)
    carried = Summary.objects.get(conversation=other)
    text = page(client, review_path(carried))
    assert "earlier 1" in text
    assert "data-seq=" not in text


# The queue


def test_the_queue_says_why_and_how_many(client: Client, alice: User) -> None:
    """Each reason is a filter, and its count is what the list then shows.

    Breaks when: a count and its filter go by different conditions, or a reason finds what has been
    judged, replaced, or deleted.
    """

    def made(title: str, **values: Any) -> Summary:
        talk = conversation_of(alice, title, "two", "three", "four", title=title)
        return summarise(talk, "x", **values)

    # Ordinary, until one has a key that is sampled.
    ordinary = [made("an ordinary one")]
    while ordinary[-1].pk % SAMPLED:
        ordinary.append(made(f"ordinary {len(ordinary)}"))
    degraded = made("degraded", degraded=True)
    low = made("low", audit={**AUDIT, "retained": 1})
    edited = made("edited")
    base = store.read_base(edited.conversation_id)
    store.edit(base, "## Context\n\n- y", base.ledger, author_id=alice.pk, summary_tokens=3)
    of_person = Summary.objects.get(conversation=edited.conversation, version=2)
    gone = made("gone")
    Conversation.objects.filter(pk=gone.conversation_id).update(deleted_at=timezone.now())
    cleared = made("cleared")
    store.clear(cleared.conversation_id, author_id=alice.pk, transcript=TRANSCRIPT)
    refused = Summary.objects.create(
        conversation=low.conversation, status="rejected", trigger="manual", reason="too little"
    )
    judged = made("judged")
    post(client, judged, "approve")
    page(client, review_path(degraded))

    wanted = {
        "degraded": {degraded.pk},
        "low": {low.pk},
        "refused": {refused.pk},
        "edited": {of_person.pk},
        "sampled": {one.pk for one in ordinary if one.pk % SAMPLED == 0},
        "unseen": {*(one.pk for one in ordinary), low.pk, of_person.pk, refused.pk},
    }
    wanted["waiting"] = wanted["unseen"] | {degraded.pk}
    wanted["unseen"] -= {degraded.pk}
    assert {name: listed(client, f"queue={name}") for name in wanted} == wanted
    assert queue(client) == {name: len(keys) for name, keys in wanted.items()}
    assert len(wanted["sampled"]) == 1


def test_approving_leads_through_the_queue(client: Client, alice: User) -> None:
    """The newest first, within the filters of the list; at the end back to it.

    Breaks when: the next is looked for without the filters, or a judged one comes again.
    """
    made = [
        summarise(conversation_of(alice, f"{n}", "two", "three", "four"), "x", degraded=n != 1)
        for n in range(4)
    ]
    filters = quote("queue=degraded")
    first = f"{review_path(made[3])}?_changelist_filters={filters}"
    assert f'href="{html.escape(first)}"' in page(client, f"{LIST}?queue=degraded")
    visited, following = [], first
    while "/review/" in following:
        visited.append(following)
        answer = client.post(following, {"action": "approve", "review": "seen"})
        assert answer.status_code == 302
        following = answer["Location"]
    assert [int(re.findall(r"summary/(\d+)/", one)[0]) for one in visited] == [
        made[3].pk,
        made[2].pk,
        made[0].pk,
    ]
    assert following == f"{LIST}?queue=degraded"
    assert Summary.objects.filter(review="approved").count() == 3
    # What the address says is only used if it is a list's.
    odd = f"{review_path(made[1])}?_changelist_filters={quote('draft__startswith=a')}"
    assert client.get(odd).status_code == 200


def test_next_passes_over_without_a_word(client: Client, alice: User) -> None:
    one, two = (
        summarise(conversation_of(alice, f"{n}", "two", "three", "four"), "x") for n in range(2)
    )
    text = page(client, review_path(two))
    assert re.search(rf'href="{review_path(one)}[^"]*" data-key="n"', text)
    two.refresh_from_db()
    assert two.review == "seen"


def test_a_verdict_is_recorded_with_who_and_when(
    client: Client, reviewer: User, summary: Summary
) -> None:
    answer = post(client, summary, "needs_work", note="Line 2 is wrong.")
    assert answer.status_code == 302
    summary.refresh_from_db()
    assert (summary.review, summary.reviewer) == ("needs_work", reviewer)
    text = html.unescape(page(client, review_path(summary)))
    assert "Line 2 is wrong." in text
    assert "said “needs work” of version 1" in text, "who did what"
    assert LogEntry.objects.filter(user=reviewer, object_id=str(summary.pk)).count() == 1
    assert AccessRecord.objects.filter(what="said “needs work” of version 1").count() == 1
    assert "needs work" in rows_of(client, "state=needs_work")


def test_of_two_reviewers_the_second_is_told(client: Client, summary: Summary) -> None:
    """Breaks when: the form does not say what its reader has seen."""
    page(client, review_path(summary))
    other = browser_of(staff("other", *EVERYTHING))
    assert post(other, summary, "needs_work", review="seen", note="No.").status_code == 302
    answer = post(client, summary, "approve", review="seen")
    assert answer.status_code == 409
    assert "other has said “needs work” of it meanwhile" in text_of(answer)
    summary.refresh_from_db()
    assert summary.review == "needs_work"


def test_many_are_approved_at_once_each_recorded(client: Client, alice: User) -> None:
    """Breaks when: the list approves what another has judged, or leaves no record of it."""
    made = [
        summarise(conversation_of(alice, f"{n}", "two", "three", "four"), "x") for n in range(3)
    ]
    post(client, made[0], "needs_work", note="No.")
    AccessRecord.objects.all().delete()
    form = {"action": "approve", "_selected_action": [one.pk for one in made]}
    text = text_of(client.post(LIST, form, follow=True))
    assert "2 approved. The others had been judged before" in text
    said = Summary.objects.order_by("pk").values_list("review", flat=True)
    assert list(said) == ["needs_work", "approved", "approved"]
    assert AccessRecord.objects.filter(what="said “approved” of version 1").count() == 2
    looker = browser_of(staff("looker", "view_summary"))
    looker.post(LIST, {"action": "approve", "_selected_action": [made[0].pk]})
    assert Summary.objects.get(pk=made[0].pk).review == "needs_work"


# Changes


def test_lines_are_changed_as_on_the_page(
    client: Client, reviewer: User, conversation: Conversation, summary: Summary
) -> None:
    steps = (
        ({"act": "rewrite", "line": "e1", "text": "Use tabs"}, "Use tabs"),
        ({"act": "strike", "line": "e2"}, "Use tabs"),
        ({"act": "add", "section": "constraints", "text": "Never shout."}, "Never shout."),
    )
    for version, (fields, there) in enumerate(steps, start=2):
        current = Summary.objects.get(conversation=conversation, version=version - 1)
        answer = post(client, current, "line", **fields)
        new = Summary.objects.get(conversation=conversation, version=version)
        assert answer["Location"] == review_path(new)
        assert (new.author, new.trigger) == (reviewer, "edit")
        assert there in new.text
    assert "Ship on Friday" not in state(conversation)[1]
    text = page(client, review_path(new))
    for act in ("rewrote a line", "took a line out", "added a line, which made version 4"):
        assert act in text


@pytest.mark.parametrize(
    "fields",
    [
        {"act": "rewrite", "line": "e1", "text": " "},
        {"act": "rewrite", "line": "e99", "text": "x"},
        {"act": "burn", "line": "e1"},
        {"act": "add", "section": "nonsense", "text": "x"},
        {"act": "add", "section": "context", "text": "x" * 30_000},
        {},
    ],
)
def test_c12_a_change_that_is_none_changes_nothing_and_is_shown_again(
    client: Client, conversation: Conversation, summary: Summary, fields: dict[str, str]
) -> None:
    before = state(conversation)
    answer = post(client, summary, "line", **fields)
    assert answer.status_code == 422
    assert "errornote" in text_of(answer)
    assert fields.get("text", "").strip()[:100] in text_of(answer)
    assert state(conversation) == before


def test_c11_a_change_of_an_outdated_page_is_refused_with_what_was_written(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """C11: what is there now is on the page, and beside it what was not saved.

    Breaks when: the version that the form was made with is not handed on.
    """
    mine = {"act": "rewrite", "line": "e1"}
    assert post(client, summary, "line", text="The first", **mine).status_code == 302
    before = state(conversation)
    answer = post(client, summary, "line", text="The <second>", **mine)
    assert answer.status_code == 409
    text = text_of(answer)
    assert "Your text, not saved" in text
    assert "The <second>" in text
    assert "The first" in text
    for action in ("chip", "restore", "undo", "redo"):
        assert post(client, summary, action, detail=DETAIL).status_code == 409, action
    assert state(conversation) == before


def test_c11_a_change_while_a_compression_runs_says_so_and_stays(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """C11: Breaks when: the late draft is applied, or the reviewer is told nothing of the run."""
    base = store.read_base(conversation.pk)
    draft = draft_of(conversation, base, "The machine's", through_seq=4)
    token = store.claim(conversation.pk, trigger=Trigger.MANUAL, locks_input=False)
    assert token is not None
    assert "being compressed now" in page(client, review_path(summary))
    fields = {"act": "rewrite", "line": "e1", "text": "A person's"}
    answer = client.post(
        review_path(summary), {"action": "line", "version": "1", **fields}, follow=True
    )
    assert "the run's draft is dropped when it ends" in text_of(answer)
    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) is None
    assert "A person's" in state(conversation)[1]


def test_a_detail_is_added_with_the_sentence_that_holds_it(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """And with its message, so that the new line can be looked up; then its chip is gone.

    Breaks when: the bare detail is added, which nobody understands later, or the share of details
    that is shown takes no notice.
    """
    assert "added since" not in page(client, review_path(summary))
    answer = post(client, summary, "chip", detail=DETAIL)
    new = Summary.objects.get(conversation=conversation, version=2)
    assert answer["Location"] == review_path(new)
    assert "- The part is called Only-in-the-Original-77, as you know. [1]" in new.text
    after = page(client, review_path(new))
    assert f'value="{DETAIL}"' not in after
    assert ", and 1 added since" in after
    before = state(conversation)
    for other in ("two", "", SECRET):
        assert post(client, new, "chip", detail=other).status_code == 422
    assert state(conversation) == before


def test_a_version_is_restored_and_compared_with_the_one_before(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    post(client, summary, "line", act="rewrite", line="e1", text="Use tabs, never spaces")
    second = Summary.objects.get(conversation=conversation, version=2)
    text = page(client, review_path(second))
    assert "Compared with version 1" in text
    assert re.search(r"<ins>\s*tabs", text)
    assert "Restore version 1" in text
    answer = post(client, second, "restore", number="1")
    third = Summary.objects.get(conversation=conversation, version=3)
    assert answer["Location"] == review_path(third)
    assert third.text == summary.text
    assert "To the active version" in page(client, review_path(summary))


def test_a_refused_draft_is_reviewed_by_its_reason(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    store.record_attempt(
        conversation.pk,
        run="one",
        status=SummaryStatus.REJECTED,
        trigger=Trigger.THRESHOLD,
        reason="It was longer than its source.",
        base=store.read_base(conversation.pk),
        final=True,
    )
    refused = Summary.objects.get(status="rejected")
    text = page(client, review_path(refused))
    assert "It was longer than its source." in text
    assert "<textarea" not in text
    assert post(client, refused, "approve").status_code == 302
    refused.refresh_from_db()
    assert refused.review == "approved"


def test_changes_need_the_forms_token(reviewer: User, summary: Summary) -> None:
    """A12: another site cannot make the reviewer's browser do it; and no GET does."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(reviewer)
    for action in ("approve", "line", "chip", "restore", "again"):
        assert post(client, summary, action).status_code == 403
    client.get(review_path(summary), {"action": "approve"})
    summary.refresh_from_db()
    assert summary.review == "seen"


# Figures


def test_the_figures_are_by_day_and_model(client: Client, alice: User) -> None:
    """Breaks when: a person's version counts, an attempt is a summary, or means are averaged."""
    values: tuple[dict[str, Any], ...] = (
        {"model": "small", "cost": 0.5, "duration": 2.0, "audit": {**AUDIT, "retained": 1}},
        {"model": "small", "cost": 0.25, "duration": 4.0, "audit": {**AUDIT, "retained": 2}},
        {"model": "large", "cost": 2.0, "duration": 9.0, "trigger": Trigger.MANUAL},
    )
    made = [
        summarise(conversation_of(alice, f"{n}", "two", "three", "four"), "x", **one)
        for n, one in enumerate(values)
    ]
    Summary.objects.filter(pk=made[1].pk).update(created_at=timezone.now() - timedelta(days=2))
    base = store.read_base(made[0].conversation_id)
    store.edit(base, "## Context\n\n- y", base.ledger, author_id=alice.pk, summary_tokens=3)
    store.record_attempt(
        made[0].conversation_id,
        run="one",
        status=SummaryStatus.FAILED,
        trigger=Trigger.THRESHOLD,
        reason="No answer.",
        base=store.read_base(made[0].conversation_id),
        final=True,
        model="small",
        cost=0.125,
    )
    cells = re.compile(r"<t[hd][^>]*>\s*(?:<a[^>]*>)?\s*([^<]*?)\s*(?:</a>)?\s*</t[hd]>")

    def by_model(query: str) -> dict[str, list[str]]:
        table = page(client, f"{LIST}figures/?{query}").rpartition("<tbody>")[2]
        rows = [cells.findall(row) for row in table.split("</tr>")]
        return {row[0]: row[1:] for row in rows if row}

    assert by_model("") == {
        "small": ["2", "38 %", "3.0 s", "$0.88", "0", "1"],
        "large": ["1", "75 %", "–", "$2.00", "0", "0"],
    }
    assert set(by_model("model=large")) == {"large"}
    for measure, said in (
        ("kept", "50 %"),
        ("waited", "4.0 s"),
        ("cost", "$2.62"),
        ("failures", "1 failure"),
        ("made", "2 summaries"),
        ("nonsense", "50 %"),
    ):
        assert said in page(client, f"{LIST}figures/?measure={measure}&days=x"), measure
    assert not AccessRecord.objects.exists(), "nobody's words are in them"


def test_a_share_is_drawn_as_a_part_of_the_whole(client: Client, summary: Summary) -> None:
    """Breaks when: the highest bar of the details kept takes all of the height."""
    text = page(client, f"{LIST}figures/?measure=kept")
    assert re.search(r"highest[^>]*>100 %<", text)
    assert re.findall(r'height="([\d.]+)"', text) == ["120.00"], "75 % of 160"


def test_the_lists_rows_lead_to_the_review_and_it_to_all_facts(
    client: Client, summary: Summary
) -> None:
    assert review_path(summary) in rows_of(client, "")
    assert summary_path(summary) in page(client, review_path(summary))
