"""The owner's account and sign-in links."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from chatapp.accounts import signin_links

pytestmark = pytest.mark.django_db


def parts(link: str) -> tuple[str, str]:
    """The two secrets of a link."""
    *_, uidb64, token, end = link.split("/")
    assert end == ""
    return uidb64, token


def fresh_link(user: User) -> tuple[str, str]:
    return parts(signin_links.signin_link(user, "http://127.0.0.1:8000"))


def test_the_owner_is_created_once() -> None:
    owner, created = signin_links.ensure_owner()
    assert owner is not None
    assert created
    assert (owner.username, owner.is_superuser, owner.is_staff) == ("owner", True, True)
    assert not owner.has_usable_password()
    assert signin_links.ensure_owner() == (owner, False)


def test_a_superuser_of_any_name_is_the_owner() -> None:
    anna = User.objects.create_superuser("anna")
    User.objects.create_superuser("ben")
    assert signin_links.ensure_owner() == (anna, False)
    assert signin_links.find_person("") == anna


def test_a_person_who_took_the_name_does_not_become_the_owner() -> None:
    User.objects.create_user("owner")
    owner, created = signin_links.ensure_owner()
    assert owner is not None
    assert (owner.username, created) == ("owner-2", True)


def test_an_inactive_superuser_is_not_let_in_by_a_restart() -> None:
    User.objects.create_superuser("owner", is_active=False)
    assert signin_links.ensure_owner() == (None, False)
    assert User.objects.count() == 1


def test_a_link_names_its_person_and_has_the_address_of_the_view(alice: User) -> None:
    link = signin_links.signin_link(alice, "https://chat.example.org/")
    assert link.startswith("https://chat.example.org/accounts/link/")
    assert signin_links.user_from_link(*parts(link)) == alice


def test_a_link_dies_on_use(alice: User) -> None:
    """Breaks when: the token leaves out the microseconds of the last sign-in."""
    second = timezone.now().replace(microsecond=100)
    User.objects.filter(pk=alice.pk).update(last_login=second)
    alice.refresh_from_db()
    link = fresh_link(alice)
    assert signin_links.use_link(*link) == alice
    User.objects.filter(pk=alice.pk).update(last_login=second + timedelta(microseconds=500))
    assert signin_links.user_from_link(*link) is None
    assert signin_links.use_link(*link) is None


def test_of_two_simultaneous_uses_one_wins(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: ``use_link`` signs in without the conditional UPDATE."""
    link = fresh_link(alice)
    read_before = signin_links.user_from_link(*link)
    assert signin_links.use_link(*link) == alice
    # What the second request had read before the first one wrote.
    monkeypatch.setattr(signin_links, "user_from_link", lambda *_: read_before)
    assert signin_links.use_link(*link) is None


def test_a_link_lives_a_quarter_of_an_hour(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    link = fresh_link(alice)
    made = signin_links.tokens._now()
    life = timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    assert life == timedelta(minutes=15)
    monkeypatch.setattr(signin_links.tokens, "_now", lambda: made + life)
    assert signin_links.user_from_link(*link) == alice
    monkeypatch.setattr(signin_links.tokens, "_now", lambda: made + life + timedelta(seconds=1))
    assert signin_links.user_from_link(*link) is None


def test_a_link_of_an_inactive_person_is_dead(alice: User) -> None:
    link = fresh_link(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert signin_links.user_from_link(*link) is None


def test_a_password_reset_token_is_no_link(alice: User) -> None:
    from django.contrib.auth.tokens import default_token_generator

    uidb64, _ = fresh_link(alice)
    assert signin_links.user_from_link(uidb64, default_token_generator.make_token(alice)) is None


@pytest.mark.parametrize(
    "uidb64", ["", "x", "%%", "é", "MA", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"]
)
def test_nonsense_is_nobody(alice: User, uidb64: str) -> None:
    _, token = fresh_link(alice)
    assert signin_links.user_from_link(uidb64, token) is None


@pytest.mark.parametrize("token", ["", "-", "a-b", "é-é", "x" * 5000])
def test_a_wrong_token_is_nobody(alice: User, token: str) -> None:
    uidb64, _ = fresh_link(alice)
    assert signin_links.user_from_link(uidb64, token) is None


def test_the_commands_speak(capsys: pytest.CaptureFixture[str], alice: User) -> None:
    with pytest.raises(CommandError, match="no owner yet"):
        call_command("signin_link")
    call_command("ensure_owner")
    assert capsys.readouterr().out == "owner was created.\n"
    call_command("ensure_owner")
    assert capsys.readouterr().out == "owner exists already.\n"
    call_command("signin_link")
    owner = signin_links.user_from_link(*parts(capsys.readouterr().out.strip()))
    assert owner is not None
    assert owner.username == "owner"
    call_command("signin_link", "alice", base_url="https://chat.example.org")
    link = capsys.readouterr().out.strip()
    assert link.startswith("https://chat.example.org/accounts/link/")
    assert signin_links.user_from_link(*parts(link)) == alice
    with pytest.raises(CommandError, match="no active person named mallory"):
        call_command("signin_link", "mallory")
