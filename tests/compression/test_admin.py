"""What a reviewer may do to a summary in the admin: edit, undo, redo, restore."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatapp.models import Conversation, Message, Summary
from compression import store
from compression.summarizers.extractive import LABEL
from compression.types import SummaryStatus, Trigger
from tests.reviewing import (
    AUDIT,
    TRANSCRIPT,
    browser_of,
    conversation_of,
    draft_of,
    staff,
    summarise,
    summary_path,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

NEW_TEXT = "## Decisions\n\n- Use tabs everywhere\n"


CHANGELIST = "/admin/chatapp/summary/"


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return conversation_of(alice, "one", "two", "three", "four", "five", "six")


@pytest.fixture
def summary(conversation: Conversation) -> Summary:
    return summarise(conversation, "Use spaces")


@pytest.fixture
def reviewer() -> User:
    return staff("reviewer", "view_summary", "change_summary")


@pytest.fixture
def client(reviewer: User) -> Client:
    return browser_of(reviewer)


def post(client: Client, summary: Summary, action: str, **fields: Any) -> Any:
    fields.setdefault("version", str(summary.version))
    return client.post(summary_path(summary), {"action": action, **fields})


def state(conversation: Conversation) -> tuple[int, str, int, int]:
    """What may not change when something is refused."""
    conversation.refresh_from_db()
    return (
        conversation.compression_version,
        conversation.compressed_context,
        conversation.compressed_through,
        Summary.objects.filter(conversation=conversation).count(),
    )


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


def test_an_edit_is_a_new_version_by_its_author(
    client: Client, conversation: Conversation, summary: Summary, reviewer: User
) -> None:
    event_no = Conversation.objects.get().event_no
    response = post(client, summary, "edit", text=NEW_TEXT.replace("\n", "\r\n"))
    new = Summary.objects.get(version=2)
    assert response.status_code == 302
    assert response["Location"] == summary_path(new)
    assert (new.trigger, new.status, new.author, new.parent) == ("edit", "active", reviewer, 1)
    assert (new.first_seq, new.through_seq) == (summary.first_seq, summary.through_seq)
    summary.refresh_from_db()
    assert summary.status == "superseded"
    assert "Use spaces" in summary.text
    version, text, boundary, count = state(conversation)
    assert (version, boundary, count) == (2, 2, 2)
    assert "Use tabs everywhere" in text
    assert "Use spaces" not in text
    assert conversation.event_no > event_no
    page = text_of(client.get(summary_path(new)))
    assert "Version 2 is active now" in page
    assert "Use tabs everywhere" in page
    assert "not measured" in page


def test_undo_redo_and_restore(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    later = summarise(conversation, "Use spaces", "Ship on Friday", through_seq=4)
    page = text_of(client.get(summary_path(later)))
    assert "Undo version 2, at the threshold" in page
    assert "Bring back" not in page
    assert post(client, later, "undo").status_code == 302
    assert state(conversation)[0] == 3
    assert state(conversation)[2] == 2
    current = Summary.objects.get(version=3)
    page = text_of(client.get(summary_path(current)))
    assert "Undo version 3, restored from version 1" in page
    assert "Bring back the version at the threshold" in page
    assert post(client, current, "redo").status_code == 302
    assert state(conversation)[2] == 4
    # From the page of an old version, naming the version that the reader knows as active.
    assert post(client, summary, "restore", version="4").status_code == 302
    assert "Ship on Friday" not in state(conversation)[1]
    assert state(conversation)[2] == 2


def test_c11_of_two_edits_the_second_sees_both_texts(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """C11: whoever saves what they read before another's change is told, and nothing is lost.

    Breaks when: the version that the form was made with is not handed on.
    """
    assert post(client, summary, "edit", text=NEW_TEXT).status_code == 302
    before = state(conversation)
    response = post(client, summary, "edit", text="## Decisions\n\n- Mine, <b>not saved</b>\n")
    assert response.status_code == 409
    page = text_of(response)
    assert "Mine, <b>not saved</b>" in page
    assert "Use tabs everywhere" in page
    assert "nothing was saved" in page
    assert state(conversation) == before
    for action in ("undo", "redo", "restore"):
        assert post(client, summary, action).status_code == 409
    assert state(conversation) == before


def test_c11_an_edit_wins_over_the_run_that_is_under_way(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """C11: an edit during a re-compression is kept; the machine's late draft finds it gone.

    Breaks when: ``store.apply`` does not compare the version.
    """
    base = store.read_base(conversation.pk)
    draft = draft_of(conversation, base, "The machine's", through_seq=4)
    token = store.claim(conversation.pk, trigger=Trigger.THRESHOLD, locks_input=True)
    assert token is not None
    assert "being compressed now" in text_of(client.get(summary_path(summary)))
    assert post(client, summary, "edit", text=NEW_TEXT).status_code == 302
    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) is None
    version, text, boundary, _ = state(conversation)
    assert (version, boundary) == (2, 2)
    assert "Use tabs everywhere" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The summary is empty"),
        (" \n\t\n", "The summary is empty"),
        ("## Decisions\n\n- good\n- bad\x00bad\n", "Line 4 holds a NUL character"),
        ("## Decisions\n\n- " + "word " * 200_000, "at most"),
        ("## Nonsense\n\n- a line\n", "Line 1 could not be read"),
    ],
)
def test_c12_what_is_no_summary_is_refused_and_kept_in_the_form(
    client: Client, conversation: Conversation, summary: Summary, text: str, sentence: str
) -> None:
    """C12: empty, NUL, 1 MB and foreign headings change nothing, and the reason is said.

    Breaks when: ``_edit`` stores the text without ``apply_edit``.
    """
    before = state(conversation)
    response = post(client, summary, "edit", text=text)
    assert response.status_code == 422
    page = text_of(response)
    assert "errornote" in page
    assert sentence in page
    assert text.strip()[:100] in page
    assert state(conversation) == before


def test_c12_a10_forged_fields_change_nothing(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """C12, A10: boundary, status and author are the server's, whatever a form says.

    Breaks when: ``change_view`` becomes Django's own with these fields in its form.
    """
    forged = {
        "through_seq": "6",
        "first_seq": "1",
        "status": "discarded",
        "compressed_through": "6",
        "conversation": "999",
        "author": "999",
        "degraded": "on",
        "version_override": "77",
        "_save": "Save",
    }
    assert post(client, summary, "edit", text=NEW_TEXT, **forged).status_code == 302
    new = Summary.objects.get(version=2)
    assert (new.through_seq, new.status, new.conversation_id) == (2, "active", conversation.pk)
    assert state(conversation)[2] == 2
    before = state(conversation)
    for action in ("", "save", "delete", "clear", "_save"):
        assert post(client, new, action, **forged).status_code == 422
    assert state(conversation) == before


@pytest.mark.parametrize("version", ["", "x", "-1", "1 OR 1", "９", str(2**70)])
def test_a11_odd_version_numbers_are_a_conflict(
    client: Client, conversation: Conversation, summary: Summary, version: str
) -> None:
    before = state(conversation)
    assert post(client, summary, "edit", text=NEW_TEXT, version=version).status_code == 409
    assert state(conversation) == before


def test_what_never_became_a_version_cannot_be_restored(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    failed = Summary.objects.create(
        conversation=conversation, status="failed", trigger="manual", reason="<i>why</i>"
    )
    page = text_of(client.get(summary_path(failed)))
    assert "<i>why</i>" in page
    assert "Restore this version" not in page
    assert post(client, failed, "restore", version="1").status_code == 422
    assert state(conversation)[0] == 1


def test_i14_a_version_whose_source_changed_does_not_come_back(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """I14 in the admin: the restore is refused with 409 and nothing changes.

    Breaks when: ``restore`` does not compare fingerprints.
    """
    summarise(conversation, "Ship on Friday", through_seq=4)
    Message.objects.filter(conversation=conversation, seq=1).update(text="changed")
    before = state(conversation)
    response = post(client, summary, "restore", version="2")
    assert response.status_code == 409
    assert "cannot come back" in text_of(response)
    assert state(conversation) == before


def test_who_may_only_look_changes_nothing(conversation: Conversation, summary: Summary) -> None:
    looker = browser_of(staff("looker", "view_summary"))
    page = text_of(looker.get(summary_path(summary)))
    assert "Use spaces" in page
    assert "<textarea" not in page
    before = state(conversation)
    for action in ("edit", "undo", "redo", "restore"):
        assert post(looker, summary, action, text=NEW_TEXT).status_code == 403
    assert state(conversation) == before


def test_changes_need_the_forms_token(
    reviewer: User, conversation: Conversation, summary: Summary
) -> None:
    """A12: another site cannot make the reviewer's browser do it."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(reviewer)
    before = state(conversation)
    assert post(client, summary, "edit", text=NEW_TEXT).status_code == 403
    assert state(conversation) == before


def test_no_get_changes_anything(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    before = state(conversation)
    client.get(summary_path(summary), {"action": "undo", "version": "1", "text": NEW_TEXT})
    assert state(conversation) == before


def test_the_page_says_what_it_covers_and_what_was_lost(client: Client, summary: Summary) -> None:
    page = text_of(client.get(summary_path(summary)))
    assert "2 messages, 1 to 2<" in page
    assert "taken in by this version" not in page
    assert "20 → 20" in page
    assert "80 % → 30 %" in page
    assert "3 of 4 salient items" in page
    assert "75 %" in page
    for line in ("an evicted line", "a refused line", "a note"):
        assert line in page


def test_the_page_says_what_code_filled_and_why_a_draft_was_refused(
    client: Client, conversation: Conversation
) -> None:
    """Breaks when: the review leaves out the floor's figures or the stored reason."""
    made = summarise(conversation, "Use spaces", trigger=Trigger.THRESHOLD)
    page = text_of(client.get(summary_path(made)))
    assert "5 facts; the plain extract 12; 3 lines filled by code" in page
    store.record_attempt(
        conversation.pk,
        run="run",
        status=SummaryStatus.REJECTED,
        trigger=Trigger.THRESHOLD,
        reason="The summary says too little: it keeps 0 of these messages' facts.",
        base=store.read_base(conversation.pk),
        final=True,
        fruitless=False,
        tail_tokens=10,
        model="small",
        cost=None,
    )
    refused = Summary.objects.get(status=SummaryStatus.REJECTED)
    assert "it keeps 0 of these messages" in text_of(client.get(summary_path(refused)))


def test_an_extract_is_not_said_to_have_lines_of_a_models(
    client: Client, conversation: Conversation
) -> None:
    """Breaks when: the floor's figures are shown of a summary for which no model was called."""
    bill = {"tokens_before": 2_000, "tokens_after": 400, "lost_cache_tokens": 300}
    calls = {"lost_cache_cost": None, "prompt_tokens": 0, "completion_tokens": 0, "calls": 0}
    audit = AUDIT | {"accounting": bill | calls}
    page = text_of(client.get(summary_path(summarise(conversation, "Use spaces", audit=audit))))
    assert "Next request" in page
    assert "the model's own lines" not in page


def test_a_rolling_version_is_set_against_all_that_it_stands_for(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """Its own span is shorter than the whole summary may be.

    Breaks when: the source of a version is taken to be its own span.
    """
    later = summarise(conversation, "Use spaces", through_seq=4)
    page = text_of(client.get(summary_path(later)))
    assert "4 messages, 1 to 4<" in page
    assert "2 messages, 20 tokens, 3 to 4" in page
    assert "40 → 20" in page


def test_the_review_speaks_the_words_of_the_chat(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """Breaks when: a status or a trigger is shown by the name that the program has for it."""
    bill: dict[str, Any] = {"tokens_before": 90, "tokens_after": 40, "lost_cache_tokens": 7}
    bill |= {"lost_cache_cost": None, "prompt_tokens": 11, "completion_tokens": 5}
    Summary.objects.update(
        duration=2.0447496560009313, model=LABEL, audit={**AUDIT, "accounting": bill}
    )
    page = text_of(client.get(summary_path(summary)))
    assert "90 → 40 tokens" in page
    for said in ("at the threshold", "extract, no model", ">2.0<", "in place of a model"):
        assert said in page
    post(client, summary, "edit", text=NEW_TEXT)
    edited = text_of(client.get(summary_path(Summary.objects.get(version=2))))
    assert "edited by a person" in edited
    for of_the_parent in ("90 → 40 tokens", "11 in, 5 out", "not known"):
        assert of_the_parent not in edited
    listed = text_of(client.get("/admin/chatapp/summary/"))
    assert "replaced" in listed
    assert ">superseded<" not in listed
    assert ">threshold<" not in listed
    assert text_of(client.get(summary_path(summary))).count("What the model sees") == 0


def test_of_an_attempt_it_is_said_that_no_draft_is_kept(
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
    page = text_of(client.get(summary_path(Summary.objects.get(status="rejected"))))
    assert "It was longer than its source." in page
    assert "no summary came of it" in page
    assert "not the draft" in page


def test_a_version_says_which_parts_an_extract_made(client: Client, summary: Summary) -> None:
    """Breaks when: a version that is in part an extract looks like any other."""
    part = {"first_seq": 120, "through_seq": 160, "part": 8, "parts": 9, "reason": "No answer."}
    Summary.objects.filter(pk=summary.pk).update(audit={"extracted": [part]})
    page = text_of(client.get(summary_path(summary)))
    assert "part 8 of 9 (messages 120–160) by extract: no answer" in page
    assert "in part" in text_of(client.get(CHANGELIST))


def test_finished_parts_are_neither_listed_nor_shown(
    client: Client, conversation: Conversation, summary: Summary
) -> None:
    """Breaks when: what is no version yet is shown among them."""
    row = Summary.objects.create(
        conversation=conversation, status="partial", trigger="manual", through_seq=4
    )
    assert f"/{row.pk}/change/" not in text_of(client.get(CHANGELIST))
    assert client.get(summary_path(row)).status_code == 302
    assert client.get(summary_path(summary)).status_code == 200


def test_adding_and_deleting_are_impossible(client: Client, summary: Summary) -> None:
    root = browser_of(User.objects.create_superuser("root"))
    base = "/admin/chatapp/summary/"
    assert root.get(f"{base}add/").status_code == 403
    assert root.post(f"{base}{summary.pk}/delete/", {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": summary.pk, "post": "yes"}
    root.post(base, bulk)
    assert Summary.objects.filter(pk=summary.pk).exists()
