"""Nothing that anyone wrote runs on an admin page, and no page needs an exception."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatapp.models import AccessRecord, Conversation, Message, ModelProfile, Summary
from tests.reviewing import (
    BASE,
    SECRET,
    browser_of,
    conversation_of,
    conversation_path,
    every_path,
    page,
    staff,
    summarise,
    summary_path,
)

pytestmark = pytest.mark.django_db

#: "obey" in tag characters, a Hangul filler and a variation selector.
HIDDEN = "\U000e006f\U000e0062\U000e0065\U000e0079\u3164\U000e0101"
PAYLOADS = (
    "</textarea><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{{7*7}}{% load static %}",
    '" autofocus onfocus=alert(1) x="',
    "\u202egnp.exe",
)


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return conversation_of(alice, SECRET, "two", "three", "four")


@pytest.fixture
def summary(conversation: Conversation) -> Summary:
    return summarise(conversation, "Use spaces")


@pytest.fixture
def root() -> Client:
    return browser_of(User.objects.create_superuser("root"))


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.django_db(transaction=True)
def test_x07_x08_i22_text_of_anyone_is_inert(root: Client, alice: User, payload: str) -> None:
    """X07, X08, I22: summary, title, message, names and reasons are text on every admin page.

    Breaks when: what anyone wrote is marked ``safe`` in compression/templates/admin.
    """
    User.objects.filter(pk=alice.pk).update(username=payload[:150])
    conversation = conversation_of(alice, payload, payload, "three", "four", title=payload)
    audit = {"salient": 1, "retained": 0, "missing": [payload], "notes": [payload]}
    summary = summarise(conversation, f"decided {payload}", model=payload, audit=audit)
    Conversation.objects.update(model=payload, system_prompt=payload)
    Summary.objects.create(
        conversation=conversation, status="failed", trigger="manual", reason=payload
    )
    Message.objects.update(reasoning=payload, added_context=payload, tool_name=payload)
    ModelProfile.objects.create(name=payload, sources={"window": payload})
    profile = ModelProfile.objects.get().pk
    browser_of(staff("looker", "view_conversation")).get(conversation_path(conversation))
    record = AccessRecord.objects.get().pk
    post = {"action": "edit", "version": "7", "text": payload}
    texts = [root.post(summary_path(summary), post).content.decode()]
    # Who may not edit is shown the text where others have a form.
    texts.append(page(browser_of(staff("reader", "view_summary")), summary_path(summary)))
    for path in (
        *every_path(summary),
        f"{BASE}conversation/?q=decided",
        f"{BASE}accessrecord/{record}/change/",
        f"{BASE}modelprofile/{profile}/change/",
        f"{BASE}modelprofile/{profile}/delete/",
        f"/admin/auth/user/{alice.pk}/change/",
        f"/admin/auth/user/{alice.pk}/delete/",
        "/admin/",
    ):
        texts.append(page(root, path))
    everything = "".join(texts)
    assert "<script>alert" not in everything
    assert "<img src=x" not in everything
    assert not re.search(r'="" autofocus|="[^"]*" onfocus=alert', everything)
    if payload.startswith("{{"):
        assert "{{7*7}}" in everything
        assert "49{%" not in everything


def test_x09_what_deceives_the_eye_is_shown_as_what_it_is(alice: User) -> None:
    """X09: on every page that is for looking; a form for editing holds the text itself.

    Breaks when: ``SummaryAdmin.shown`` or ``Shown.shown`` gives back what it gets.
    """
    trick = f"gpj.\u202eexe \x1b]52;c\x07 a\u200bb {HIDDEN} c"
    conversation = conversation_of(alice, trick, trick, "three", "four", title=trick)
    audit = {"salient": 1, "retained": 0, "missing": [trick], "notes": [trick]}
    summary = summarise(conversation, f"decided {trick}", model=trick, audit=audit)
    Conversation.objects.update(model=trick, system_prompt=trick)
    Message.objects.update(reasoning=trick, added_context=trick, tool_name=trick)
    paths = every_path(summary)
    reader = browser_of(staff("reader", "view_audit", *sorted(set(paths.values()))))
    for path in paths:
        text = page(reader, path)
        assert [one for one in f"\u202e\x1b\u200b{HIDDEN}" if one in text] == [], path
    assert "⟦U+202E⟧" in page(reader, summary_path(summary))
    assert "⟦U+E006F and 5 more⟧" in page(reader, summary_path(summary))


@pytest.mark.django_db(transaction=True)
def test_n07_who_edits_a_summary_sees_what_hides_in_it(root: Client, alice: User) -> None:
    """N07: a form's field holds the text as it is stored, so the marks stand beneath it.

    Breaks when: the page of a version that may be edited shows its text in the form only.
    """
    conversation = conversation_of(alice, "one", "two", "three", "four")
    clean, hiding = summarise(conversation, "Use tabs"), f"Use{HIDDEN} spaces"
    assert "with hidden characters marked" not in page(root, summary_path(clean))
    summary = summarise(conversation, hiding, through_seq=4)
    shown = page(root, summary_path(summary))
    assert hiding in shown
    assert "with hidden characters marked" in shown
    assert "Use⟦U+E006F and 5 more⟧ spaces" in shown
    post = {"action": "edit", "version": "0", "text": f"## Decisions\n\n- Ship{HIDDEN} it"}
    refused = root.post(summary_path(summary), post).content.decode()
    assert "Ship⟦U+E006F and 5 more⟧ it" in refused


@pytest.mark.parametrize(
    ("model", "field"), [("summary", "conversation"), ("turn", "user_message")]
)
def test_x07_autocomplete_answers_nothing(
    root: Client, summary: Summary, model: str, field: str
) -> None:
    """X07: neither titles nor, unrecorded, what was said can be searched that way.

    Breaks when: ``ReviewSite.autocomplete_view`` is Django's.
    """
    query = {"app_label": "chatapp", "model_name": model, "field_name": field, "term": "s"}
    assert root.get("/admin/autocomplete/", query).status_code == 403


def test_i23_admin_pages_carry_the_strict_policy(root: Client, summary: Summary) -> None:
    """I23 for the admin: the policy is the chat's, and no page needs an exception from it."""
    for path in (*every_path(summary), "/admin/", f"{BASE}modelprofile/add/"):
        response = root.get(path)
        policy = response["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert response["X-Content-Type-Options"] == "nosniff"
        assert "no-store" in response["Cache-Control"]
        text = response.content.decode()
        assert "<style" not in text
        assert not re.search(r"<[^>]+\sstyle=", text)
        assert not re.search(r"<[^>]+\son\w+=", text)
        for tag in re.findall(r"<script[^>]*>", text):
            assert "src=" in tag or "application/json" in tag, tag
