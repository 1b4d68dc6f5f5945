"""Who sees what in the admin, that nothing in it runs, and that looking leaves a record."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from chatapp.admin.conversations import MessageAdmin
from chatapp.conversations import profiles
from chatapp.models import AccessRecord, Conversation, Message, ModelProfile, Summary, Turn
from compression import store
from compression.planning.projection import Report
from compression.tokens import FIRST_CALIBRATION
from compression.types import Trigger
from tests.reviewing import (
    BASE,
    SECRET,
    browser_of,
    conversation_of,
    conversation_path,
    every_path,
    message_path,
    messages_path,
    page,
    staff,
    summarise,
    summary_path,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return conversation_of(alice, SECRET, "two", "three", "four")


@pytest.fixture
def summary(conversation: Conversation) -> Summary:
    return summarise(conversation, "Use spaces")


@pytest.fixture
def root() -> Client:
    return browser_of(User.objects.create_superuser("root"))


def test_everything_can_be_looked_at(root: Client, summary: Summary) -> None:
    for path in every_path(summary):
        page(root, path)
    page(root, "/admin/")


def test_a_list_is_called_after_what_it_lists(root: Client, summary: Summary) -> None:
    """Breaks when: Django's "Select conversation to view" is back, or hides a title of our own."""
    assert "<h1>Conversations</h1>" in page(root, "/admin/chatapp/conversation/")
    assert "<h1>Messages of" in page(root, messages_path(summary.conversation))


def test_every_page_names_its_icon(root: Client, summary: Summary) -> None:
    """A browser asks for /favicon.ico otherwise, which is not there."""
    for path in ["/admin/", "/admin/password_change/", "/accounts/login/", *every_path(summary)]:
        assert re.search(r'<link rel="icon" href="/static/icon[^"]*[.]svg"', page(root, path)), path


def test_times_name_their_zone_and_can_be_told_in_another(root: Client, summary: Summary) -> None:
    """Breaks when: a page writes a time without ``moment``."""
    for path in every_path(summary):
        text = re.sub(r'<time datetime="[^"]+[+]00:00">[^<]+ UTC</time>', "", page(root, path))
        assert not re.search(r"\d\d:\d\d|[ap][.]m[.]", text), path


def test_a05_anonymous_people_are_sent_to_sign_in(client: Client, summary: Summary) -> None:
    """A05: there is one sign-in, the one that bounds guessing.

    Breaks when: ``ReviewSite.login`` is Django's.
    """
    for path in every_path(summary):
        response = client.get(path)
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/?next=")
        sign_in = client.get(response["Location"])
        assert sign_in.status_code == 302
        assert sign_in["Location"].startswith("/accounts/login/?next=")
    wrong = client.post("/admin/login/", {"username": "root", "password": "x"})
    assert wrong.status_code == 302


def test_a05_who_is_not_of_the_staff_gets_403(bob: User, alice: User, summary: Summary) -> None:
    """A05: also the conversation's owner; their own pages are elsewhere."""
    for person in (alice, bob):
        for path in every_path(summary):
            response = browser_of(person).get(path, follow=True)
            assert response.status_code == 403
            assert SECRET not in response.content.decode()


def test_a05_each_page_needs_its_own_permission(summary: Summary) -> None:
    """A05: staff without permission get 403, and each permission opens its pages only.

    Breaks when: ``permitted`` does not ask ``has_view_permission``.
    """
    paths = every_path(summary)
    for permission in (None, *sorted(set(paths.values()))):
        person = staff(f"staff-{permission}", *([permission] if permission else []))
        client = browser_of(person)
        for path, needed in paths.items():
            expected = 200 if needed == permission else 403
            assert client.get(path).status_code == expected, (permission, path)


def test_a05_inactive_staff_are_signed_out(summary: Summary) -> None:
    person = staff("gone", "view_summary")
    client = browser_of(person)
    page(client, summary_path(summary))
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert client.get(summary_path(summary)).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_a09_demoted_staff_lose_the_next_page(summary: Summary) -> None:
    """A09: rights are looked at with each request, not when the session began."""
    person = staff("demoted", "view_summary", "change_summary")
    client = browser_of(person)
    page(client, summary_path(summary))
    User.objects.filter(pk=person.pk).update(is_staff=False)
    form = {"action": "undo", "version": "1"}
    assert client.post(summary_path(summary), form).status_code == 302
    assert client.get(summary_path(summary), follow=True).status_code == 403
    assert Conversation.objects.get().compression_version == 1


def test_summaries_may_be_seen_without_messages(summary: Summary) -> None:
    """Who reviews summaries sees neither the messages nor what only they hold.

    Breaks when: ``messages_page`` or ``may_see_missing`` does not ask for its permission.
    """
    client = browser_of(staff("reviewer", "view_summary", "view_conversation"))
    Conversation.objects.update(system_prompt="a private system prompt", draft="a private draft")
    for path in (
        summary_path(summary),
        conversation_path(summary.conversation),
        f"{BASE}summary/",
        f"{BASE}conversation/",
    ):
        text = page(client, path)
        assert SECRET not in text
        assert "only-in-the-original-77" not in text
        assert "a private" not in text
        assert "/chatapp/message/" not in text
    reader = browser_of(staff("reader", "view_summary", "view_message", "view_audit"))
    text = page(reader, summary_path(summary))
    assert "only-in-the-original-77" in text
    span = f"conversation__id__exact={summary.conversation_id}&amp;seq__gte=1&amp;seq__lte=2"
    assert span in text
    listed = page(reader, f"{BASE}message/?{html.unescape(span)}")
    assert SECRET in listed
    assert "three" not in listed


@pytest.mark.parametrize(
    "query",
    [
        "conversation/?draft__startswith=a",
        "conversation/?system_prompt__contains=private",
        "conversation/?compressed_context__contains=spaces",
        "conversation/?messages__text__contains=five",
        "conversation/?owner__password__startswith=a",
        "summary/?audit__icontains=original",
        "summary/?audit__missing__contains=original",
        "summary/?conversation__draft__contains=a",
        "message/?conversation__id__exact={}&conversation__draft__contains=a",
        "accessrecord/?conversation__title__startswith=A",
    ],
)
def test_a05_a_list_is_narrowed_by_its_filters_only(summary: Summary, query: str) -> None:
    """A05: what a page does not show cannot be guessed letter by letter from a list's length.

    Breaks when: ``ReviewAdmin.lookup_allowed`` is Django's.
    """
    permissions = ("view_summary", "view_conversation", "view_message", "view_accessrecord")
    client = browser_of(staff("reviewer", *permissions))
    response = client.get(BASE + query.format(summary.conversation_id))
    assert response.status_code == 400
    assert "A talk" not in response.content.decode()


def test_a_look_at_anothers_conversation_leaves_one_record(summary: Summary) -> None:
    """One record a request, for each kind of page, and none for lists of many.

    Breaks when: ``permitted`` does not call ``on_look``.
    """
    permissions = ("view_summary", "view_conversation", "view_message", "view_accessrecord")
    person = staff("looker", *permissions)
    client = browser_of(person)
    looks = {
        summary_path(summary): "summary",
        conversation_path(summary.conversation): "conversation",
        messages_path(summary.conversation): "messages",
        message_path(summary.conversation): "messages",
    }
    for number, (path, what) in enumerate(looks.items(), start=1):
        page(client, path)
        assert AccessRecord.objects.count() == number
        newest = AccessRecord.objects.order_by("-pk").first()
        assert newest is not None
        assert (newest.viewer, newest.what) == (person, what)
        assert newest.conversation == summary.conversation
    page(client, f"{BASE}summary/")
    page(client, f"{BASE}conversation/")
    assert AccessRecord.objects.count() == len(looks)
    listed = page(client, f"{BASE}accessrecord/")
    assert "looker" in listed
    assert str(summary.conversation.code) in listed


def test_n08_a_parameter_given_twice_is_refused(summary: Summary, bob: User) -> None:
    """N08: on every page of the admin, and whoever sends it; nothing of it is shown or recorded.

    Breaks when: ``ReviewSite.admin_view`` is Django's.
    """
    root = browser_of(User.objects.create_superuser("root"))
    other = conversation_of(bob, "a secret of bob", "two")
    mine, theirs = conversation_of(User.objects.get(username="root"), "x").pk, other.pk
    parameter = "conversation__id__exact"
    for query in (f"{parameter}={theirs}&{parameter}={mine}", f"{parameter}={mine}&p=0&p=1"):
        response = root.get(f"{BASE}message/?{query}")
        assert response.status_code == 400
        assert "secret" not in response.content.decode()
    for path in [*every_path(summary), "/admin/", "/admin/auth/user/", "/admin/password_change/"]:
        base = path.partition("?")[0]
        assert root.get(f"{base}?q=a&q=b").status_code == 400, path
        assert Client().get(f"{base}?q=a&q=b").status_code == 302, path
    assert not AccessRecord.objects.exists()


def test_n08_what_is_shown_is_what_is_recorded(
    summary: Summary, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N08: by the rows on the page, so that no way to ask for others' can be forgotten.

    Breaks when: a list's record is made from the address.
    """
    other = conversation_of(bob, "a secret of bob", "two")
    monkeypatch.setattr(
        MessageAdmin,
        "get_search_results",
        lambda admin, request, rows, words: (admin.get_queryset(request), False),
    )
    client = browser_of(staff("looker", "view_message"))
    assert "a secret of bob" in page(client, messages_path(summary.conversation))
    looked = AccessRecord.objects.values_list("conversation_id", flat=True)
    assert sorted(looked) == [summary.conversation_id, other.pk]


def test_a_search_that_finds_nothing_is_a_look(summary: Summary) -> None:
    """Breaks when: only rows that are shown are recorded: what is not there was learned."""
    client = browser_of(staff("looker", "view_message"))
    assert SECRET not in page(client, f"{messages_path(summary.conversation)}&q=not+in+it")
    assert AccessRecord.objects.get().conversation == summary.conversation


def test_looking_at_ones_own_leaves_none(root: Client) -> None:
    own = conversation_of(User.objects.get(username="root"), "one", "two", "three")
    page(root, summary_path(summarise(own, "x")))
    page(root, messages_path(own))
    assert not AccessRecord.objects.exists()


def test_a_refused_look_leaves_none(summary: Summary) -> None:
    client = browser_of(staff("nobody"))
    for path in every_path(summary):
        assert client.get(path).status_code == 403
    assert not AccessRecord.objects.exists()


def test_records_cannot_be_changed(root: Client, summary: Summary) -> None:
    page(root, summary_path(summary))
    record = AccessRecord.objects.get()
    base = f"{BASE}accessrecord/"
    assert root.post(f"{base}{record.pk}/change/", {"what": "x"}).status_code == 403
    assert root.post(f"{base}{record.pk}/delete/", {"post": "yes"}).status_code == 403
    assert root.get(f"{base}add/").status_code == 403
    root.post(base, {"action": "delete_selected", "_selected_action": record.pk, "post": "yes"})
    assert AccessRecord.objects.get().what == "summary"


@pytest.mark.parametrize("model", ["conversation", "message"])
def test_conversations_and_messages_are_read_only(
    root: Client, summary: Summary, model: str
) -> None:
    row = summary.conversation_id if model == "conversation" else Message.objects.get(seq=1).pk
    base = f"{BASE}{model}/"
    form = {"title": "mine", "text": "mine", "compressed_through": "4", "owner": "1"}
    assert root.post(f"{base}{row}/change/", form).status_code == 403
    assert root.post(f"{base}{row}/delete/", {"post": "yes"}).status_code == 403
    assert root.post(f"{base}add/", form).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": row, "post": "yes"}
    root.post(f"{messages_path(summary.conversation) if model == 'message' else base}", bulk)
    assert Conversation.objects.get().title == "A talk"
    assert Message.objects.get(seq=1).text == SECRET


def test_lists_take_the_same_queries_however_long(
    root: Client, alice: User, count_queries: Callable[[str], int]
) -> None:
    paths = [f"{BASE}{name}/" for name in ("conversation", "summary", "accessrecord")]
    first = conversation_of(alice, "one", "two", "three")
    summarise(first, "x")
    page(root, conversation_path(first))
    few = [count_queries(path) for path in [*paths, messages_path(first)]]
    for number in range(8):
        more = conversation_of(alice, f"one {number}", "two", "three")
        page(root, summary_path(summarise(more, "x")))
    for seq in range(4, 40):
        Message.objects.create(
            conversation=first, seq=seq, role="user", text="t", created_at=first.created_at
        )
    assert [count_queries(path) for path in [*paths, messages_path(first)]] == few


@pytest.fixture
def count_queries(root: Client) -> Callable[[str], int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            page(root, path)
        return len(queries)

    return count


def test_messages_are_paged_and_abridged(root: Client, alice: User) -> None:
    conversation = conversation_of(alice, *(f"message {n} " + "x" * 5000 for n in range(120)))
    first = page(root, messages_path(conversation))
    assert "message 49 " in first
    assert "message 50 " not in first
    assert len(first) < 60_000
    assert "message 50 " in page(root, f"{messages_path(conversation)}&p=2")
    assert "message 7 " in page(root, f"{messages_path(conversation)}&q=message+7+")


@pytest.mark.parametrize("wanted", ["", "x", "-1", "1 OR 1", "９", str(2**63), str(2**70), "999"])
def test_a11_messages_are_shown_of_one_conversation_only(
    root: Client, summary: Summary, wanted: str
) -> None:
    """A11 for the list: without a conversation there is none, and no error."""
    response = root.get(f"{BASE}message/", {"conversation__id__exact": wanted} if wanted else {})
    assert response.status_code == 302
    assert response["Location"] == f"{BASE}conversation/"


@pytest.mark.parametrize("key", ["x", "-1", "0", "1 OR 1", "９", str(2**63), str(2**70), "9" * 999])
@pytest.mark.parametrize("model", ["conversation", "summary", "message", "accessrecord"])
def test_a11_odd_ids_are_missing(root: Client, summary: Summary, model: str, key: str) -> None:
    """A11: an id that is none leads back to the list or is not found, and never fails."""
    assert root.get(f"{BASE}{model}/{key}/change/").status_code in {302, 404}


def test_filters_find_what_runs_and_what_is_degraded(root: Client, alice: User) -> None:
    running = conversation_of(alice, "one", "two", "three", title="it runs")
    degraded = conversation_of(alice, "one", "two", "other", title="it is degraded")
    summarise(degraded, "x", degraded=True)
    assert store.claim(running.pk, trigger=Trigger.MANUAL, locks_input=True)

    def titles(query: str) -> set[str]:
        text = page(root, f"{BASE}conversation/?{query}")
        return {title for title in ("it runs", "it is degraded") if title in text}

    assert titles("") == {"it runs", "it is degraded"}
    assert titles("running=yes") == titles("degraded=no") == {"it runs"}
    assert titles("running=no") == titles("degraded=yes") == {"it is degraded"}
    for listed in ("conversation", "summary"):
        # What is not so is no failure.
        assert "icon-no" not in page(root, f"{BASE}{listed}/")
    for query in ("trigger=threshold", "state=unseen", "queue=degraded", "model=small"):
        assert "it is degraded" in page(root, f"{BASE}summary/?{query}")
    for query in ("trigger=manual", "state=failed", "queue=low", "model=other"):
        assert "it is degraded" not in page(root, f"{BASE}summary/?{query}")


def test_model_profiles_are_the_operators_to_correct(root: Client) -> None:
    profile = ModelProfile.objects.create(
        name="small", window=4096, sources={"window": "server", "calibration": "default"}
    )
    path = f"{BASE}modelprofile/{profile.pk}/change/"
    form = {
        "name": "small",
        "window": "9000",
        "calibration": "1.1",
        "supports_tools": "on",
        "reasoning_back": "never",
    }
    assert root.post(path, form | {"window": "10"}).status_code == 200
    assert root.post(path, form | {"calibration": "9"}).status_code == 200
    profile.refresh_from_db()
    assert profile.window == 4096
    assert root.post(path, form).status_code == 302
    profile.refresh_from_db()
    assert profile.window == 9000
    assert profile.reasoning_back == "never"
    assert profile.sources["window"] == "operator"
    assert profile.sources["calibration"] == "default"


def learned_profile() -> ModelProfile:
    """A model of which a refusal taught a window, and the operator set how long a reply may be."""
    ModelProfile.objects.create(
        name="small",
        window=16_000,
        max_output_tokens=700,
        sources={"window": "server: max_model_len", "max_output_tokens": "operator"},
        dates={"window": "2026-01-02T03:04:05+00:00"},
    )
    profiles.learn("small", "window", 4096)
    profiles.learn_usage("small", [Report(reported=150, counted=100)])
    return ModelProfile.objects.get()


def test_what_was_learned_of_a_model_is_seen_with_where_it_came_from(root: Client) -> None:
    """Breaks when: a lesson, its source or its time is not on the page."""
    profile = learned_profile()
    text = page(root, f"{BASE}modelprofile/{profile.pk}/change/")
    assert "16,000" in text
    assert "server: max_model_len" in text
    assert "2026-01-02T03:04:05" in text
    assert re.search(r"4,096: seen once, last <time [^>]*>[^<]*</time>, in force", text)
    listed = page(root, f"{BASE}modelprofile/")
    assert "window: 4,096" in listed
    assert "16,000" in listed


@pytest.mark.parametrize("bulk", [True, False])
def test_what_was_learned_of_a_model_can_be_reset(root: Client, bulk: bool) -> None:
    """One or many; what the operator set stays, and Django's log says who did it.

    Breaks when: a reset forgets the operator's figures, or nobody can tell that it was one.
    """
    profile = learned_profile()
    if bulk:
        path = f"{BASE}modelprofile/"
        fields = {"action": "reset_learned", "_selected_action": [profile.pk]}
    else:
        path = f"{BASE}modelprofile/{profile.pk}/change/"
        fields = {"_reset_learned": "Reset", "name": "other", "window": "300"}
    assert root.post(path, fields).status_code == 302
    profile.refresh_from_db()
    assert (profile.name, profile.window, profile.max_output_tokens) == ("small", 16_000, 700)
    assert profiles.in_force(profile) == {}
    assert profile.calibration == FIRST_CALIBRATION
    entry = LogEntry.objects.get()
    assert (entry.user.get_username(), entry.object_id) == ("root", str(profile.pk))
    assert "Reset what was learned: window, calibration" in entry.get_change_message()


def test_a_reset_needs_the_permission_to_change(root: Client) -> None:
    """Breaks when: who may only look can reset."""
    profile = learned_profile()
    reader = browser_of(staff("reader", "view_modelprofile"))
    path = f"{BASE}modelprofile/{profile.pk}/change/"
    assert "_reset_learned" not in page(reader, path)
    assert reader.post(path, {"_reset_learned": "Reset"}).status_code == 403
    fields = {"action": "reset_learned", "_selected_action": [profile.pk]}
    reader.post(f"{BASE}modelprofile/", fields)
    profile.refresh_from_db()
    assert profiles.in_force(profile) == {"window": 4096}
    assert not LogEntry.objects.exists()


def test_what_the_operator_sets_ends_what_was_learned_of_it(root: Client) -> None:
    """Breaks when: a lesson outlives the operator's own figure."""
    profile = learned_profile()
    path = f"{BASE}modelprofile/{profile.pk}/change/"
    form = {
        "name": "small",
        "window": "9000",
        "calibration": "1.2",
        "supports_tools": "on",
        "reasoning_back": "never",
    }
    assert root.post(path, form).status_code == 302
    profile.refresh_from_db()
    assert (profile.window, profiles.in_force(profile)) == (9000, {})


def test_deleting_a_person_says_how_much_goes_with_them(
    root: Client, alice: User, summary: Summary
) -> None:
    path = f"/admin/auth/user/{alice.pk}/delete/"
    text = page(root, path)
    assert re.search(r"Messages:\s*4", text)
    assert SECRET not in text
    helper = browser_of(staff("helper"))
    assert helper.post(path, {"post": "yes"}).status_code == 403
    assert root.post(path, {"post": "yes"}).status_code == 302
    assert not Conversation.objects.exists()
    assert not Turn.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_n09_the_record_of_a_look_outlives_everybody(root: Client, summary: Summary) -> None:
    """N09: whoever looked, whose conversation it was, and the conversation.

    Breaks when: a record goes with one of them, or holds no names of its own.
    """
    looker = staff("looker", "view_summary", "change_summary")
    page(browser_of(looker), summary_path(summary))
    undo = {"action": "undo", "version": "1"}
    assert browser_of(looker).post(summary_path(summary), undo).status_code == 302
    code = summary.conversation.code
    for person in (looker, summary.conversation.owner):
        deleted = root.post(f"/admin/auth/user/{person.pk}/delete/", {"post": "yes"})
        assert deleted.status_code == 302
    assert not Conversation.objects.exists()
    records = AccessRecord.objects.exclude(conversation_code=None).order_by("pk")
    assert {(one.viewer_name, one.owner_name, one.conversation_code) for one in records} == {
        ("looker", "alice", code)
    }
    assert [one.what.partition(" the")[0] for one in records] == ["summary", "summary", "undid"]
    listed = page(root, f"{BASE}accessrecord/")
    for told in ("looker", "alice", str(code), "undid the last change", "read a summary"):
        assert told in listed
    assert str(code) in page(root, f"{BASE}accessrecord/{records[0].pk}/change/")
    assert "looker" in page(root, f"{BASE}accessrecord/?q=alice")
