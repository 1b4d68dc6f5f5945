"""Rights are the superusers' to give, by any page of the admin."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from chatapp.admin.act_words import act_in_words
from chatapp.conversations.access_log import record_act
from chatapp.models import AccessRecord, ModelProfile
from tests.reviewing import browser_of, page

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"
GROUPS = "/admin/auth/group/"
NEW_PASSWORD = {
    "usable_password": "true",
    "password1": "another-horse-8",
    "password2": "another-horse-8",
}
ALL = [
    f"{act}_{model}" for act in ("add", "change", "delete", "view") for model in ("user", "group")
]


def person(name: str, **values: Any) -> User:
    return User.objects.create_user(name, password="correct-horse-7", **values)


@pytest.fixture
def helper() -> User:
    """Staff with every permission over accounts, and a group."""
    made = person("helper", is_staff=True)
    made.user_permissions.set(Permission.objects.filter(codename__in=ALL))
    made.groups.add(Group.objects.create(name="helpers"))
    return made


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root", "root@example.org", "correct-horse-7")


def form_of(who: User, **changes: Any) -> dict[str, Any]:
    """What the page of an account sends."""
    joined = who.date_joined
    return {
        "username": who.username,
        "email": who.email,
        "is_active": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
        **changes,
    }


def test_who_may_change_accounts_changes_those_without_rights(helper: User) -> None:
    client, other = browser_of(helper), person("anna")
    done = client.post(f"{USERS}{other.pk}/change/", form_of(other, email="new@example.org"))
    assert done.status_code == 302
    other.refresh_from_db()
    assert other.email == "new@example.org"
    assert client.post(f"{USERS}{other.pk}/password/", NEW_PASSWORD).status_code == 302
    other.refresh_from_db()
    assert other.check_password("another-horse-8")
    assert client.post(f"{USERS}{other.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=other.pk).exists()


def rights_of(who: User) -> tuple[bool, bool, set[str], set[str]]:
    fresh = User.objects.get(pk=who.pk)
    return (
        fresh.is_staff,
        fresh.is_superuser,
        set(fresh.groups.values_list("name", flat=True)),
        set(fresh.user_permissions.values_list("codename", flat=True)),
    )


@pytest.mark.parametrize("whose", ["their own", "another's", "a new one's"])
def test_nobody_gives_rights_but_superusers(helper: User, whose: str) -> None:
    """Breaks when: one of the fields that give rights can be set by who may change accounts."""
    client = browser_of(helper)
    if whose == "a new one's":
        client.post(f"{USERS}add/", {"username": "new", "is_superuser": "on", **NEW_PASSWORD})
    names = {"their own": "helper", "another's": "anna", "a new one's": "new"}
    target = User.objects.filter(username=names[whose]).first() or person("anna")
    before = rights_of(target)
    permission = Permission.objects.get(codename="view_message")
    group = Group.objects.create(name="reviewers")
    group.permissions.add(permission)
    wanted = {"is_superuser": "on", "is_staff": "on", "groups": [group.pk]}
    client.post(
        f"{USERS}{target.pk}/change/",
        form_of(target, **wanted, user_permissions=[permission.pk]),
    )
    assert rights_of(target) == before


def unchanged(client: Client, target: User) -> None:
    """No page lets this browser change, take over or delete the account."""
    before = User.objects.values().get(pk=target.pk)
    form = form_of(target, email="taken@example.org", username="taken")
    assert client.post(f"{USERS}{target.pk}/change/", form).status_code == 403
    assert client.get(f"{USERS}{target.pk}/password/").status_code == 403
    assert client.post(f"{USERS}{target.pk}/password/", NEW_PASSWORD).status_code == 403
    assert client.post(f"{USERS}{target.pk}/delete/", {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": [target.pk], "post": "yes"}
    client.post(USERS, bulk)
    assert User.objects.values().get(pk=target.pk) == before


def test_a_superuser_is_changed_by_superusers_only(helper: User, root: User) -> None:
    """Nor taken over by a new password or address, nor deleted, alone or among others.

    Breaks when: one of the permissions does not look at whom it is about.
    """
    unchanged(browser_of(helper), root)
    other = person("anna")
    bulk = {"action": "delete_selected", "_selected_action": [other.pk, root.pk], "post": "yes"}
    browser_of(helper).post(USERS, bulk)
    assert User.objects.filter(pk__in=[other.pk, root.pk]).count() == 2


def test_nor_is_one_of_the_staff(helper: User) -> None:
    """Their password would be their permissions.

    Breaks when: only superusers are kept.
    """
    unchanged(browser_of(helper), person("reviewer", is_staff=True))


def test_groups_are_the_superusers(helper: User) -> None:
    """Breaks when: a member may add permissions to the group."""
    client, own = browser_of(helper), Group.objects.get(name="helpers")
    everything = [one.pk for one in Permission.objects.all()]
    form = {"name": "helpers", "permissions": everything}
    assert client.post(f"{GROUPS}{own.pk}/change/", form).status_code == 403
    assert client.post(f"{GROUPS}add/", form | {"name": "more"}).status_code == 403
    assert client.post(f"{GROUPS}{own.pk}/delete/", {"post": "yes"}).status_code == 403
    assert not own.permissions.exists()
    assert "helpers" in page(client, GROUPS)


def test_superusers_do_all_of_it(root: User, helper: User) -> None:
    client, other = browser_of(root), person("anna")
    group = Group.objects.get(name="helpers")
    form = form_of(other, is_staff="on", groups=[group.pk])
    assert client.post(f"{USERS}{other.pk}/change/", form).status_code == 302
    assert rights_of(other)[0]
    assert rights_of(other)[2] == {"helpers"}
    assert client.post(f"{USERS}{helper.pk}/password/", NEW_PASSWORD).status_code == 302
    assert client.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}).status_code == 302


def test_n09_what_was_done_to_an_account_outlives_who_did_it(helper: User, root: User) -> None:
    """N09: with a new password one can read as another person, and Django's own log of it goes.

    Breaks when: an act leaves its line in Django's log only, or a record loses a part of it.
    """
    client, other = browser_of(helper), person("anna")
    client.post(f"{USERS}{other.pk}/password/", NEW_PASSWORD)
    names = {"username": "annabel", "first_name": "Anna", "last_name": "Lee"}
    form = form_of(other, is_active="", email="a@b.org", **names)
    client.post(f"{USERS}{other.pk}/change/", form)
    client.post(f"{USERS}add/", {"username": "new", **NEW_PASSWORD})
    bulk = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes"}
    client.post(USERS, bulk)
    assert browser_of(root).post(f"{USERS}{helper.pk}/delete/", {"post": "yes"}).status_code == 302
    records = AccessRecord.objects.order_by("pk")
    acts = [(one.viewer_name, one.owner_name, one.what) for one in records]
    assert acts == [
        ("helper", "anna", "user: Changed password."),
        ("helper", "annabel", "user: Changed Username, First name, Last name, Email address,"),
        ("helper", "annabel", "user: Active and Date joined."),
        ("helper", "new", "user: Added."),
        ("helper", "annabel", "user: Deleted."),
        ("root", "helper", "user: Deleted."),
    ]
    listed = page(browser_of(root), "/admin/chatapp/accessrecord/")
    assert "changed password of the user" in listed
    assert "None" not in listed


def test_n09_nor_is_what_was_done_to_groups_and_models_lost(root: User) -> None:
    """Breaks when: one of Django's own pages is registered without ``Recorded``."""
    client = browser_of(root)
    client.post(f"{GROUPS}add/", {"name": "reviewers"})
    profile = ModelProfile.objects.create(name="small")
    client.post(f"/admin/chatapp/modelprofile/{profile.pk}/delete/", {"post": "yes"})
    acts = AccessRecord.objects.order_by("pk").values_list("owner_name", "what")
    assert list(acts) == [("reviewers", "group: Added."), ("small", "model profile: Deleted.")]


def test_n07_names_that_hide_something_show_it(root: User) -> None:
    """N07: on every page that names an account, a group or a model; forms hold what is stored.

    Breaks when: one of Django's pages writes a name as it is.
    """
    hiding, shown = "anna\u115f", "anna⟦U+115F⟧"
    client = browser_of(root)
    added = client.post(f"{USERS}add/", {"username": hiding, **NEW_PASSWORD}, follow=True)
    assert "The user “<a href" in added.content.decode()
    other = User.objects.get(username=hiding)
    group = Group.objects.create(name=hiding)
    model = ModelProfile.objects.create(name=hiding)
    other.groups.add(group)
    models = "/admin/chatapp/modelprofile/"
    for path in (
        "/admin/",
        USERS,
        f"{USERS}{other.pk}/change/",
        f"{USERS}{other.pk}/password/",
        f"{USERS}{other.pk}/delete/",
        f"{USERS}{other.pk}/history/",
        GROUPS,
        f"{GROUPS}{group.pk}/change/",
        f"{GROUPS}{group.pk}/delete/",
        models,
        f"{models}{model.pk}/change/",
        f"{models}{model.pk}/delete/",
        f"{models}{model.pk}/history/",
    ):
        text = page(client, path)
        assert shown in text, path
        left = re.sub(r'<input[^>]*name="(?:user)?name"[^>]*>', "", text)
        assert "\u115f" not in left, path


def test_records_are_told_apart_by_looks_and_changes(root: User) -> None:
    """Breaks when: the filter lists every sentence that was ever recorded, or mixes the two."""
    client = browser_of(root)
    record_act(actor=root, name="anna", kind="user", act="Changed password.")
    AccessRecord.objects.create(viewer_name="helper", owner_name="bob", what="messages")
    records = "/admin/chatapp/accessrecord/"
    looks, changes = (page(client, f"{records}?looks={which}") for which in ("yes", "no"))
    said = "changed password of the user"
    assert ("read messages" in looks, said in looks) == (True, False)
    assert ("bob" in changes, said in changes) == (False, True)


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("user: Added.", "added the user"),
        ("group: Deleted.", "deleted the group"),
        ("user: Changed nothing.", "saved the user as it was"),
        ("user: Changed Email address.", "changed Email address of the user"),
        ("user: Changed Username, First name,", "changed Username, First name of the user"),
        ("user: Active and Date joined.", "and Active and Date joined of the user"),
        (
            "model profile: Reset what was learned: window, calibration.",
            "reset what was learned of the model profile: window, calibration",
        ),
        ("summary", "read a summary"),
        ("rewrote a line, which made version 4", "rewrote a line, which made version 4"),
    ],
)
def test_a_record_is_shown_in_plain_words(recorded: str, said: str) -> None:
    """Breaks when: the record's own form, such as "user: Added.", is what a reader is shown."""
    assert act_in_words(recorded) == said
