"""Signing in, out, by link, and one's password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from chatapp.accounts import limits, signin_links

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-7"


@pytest.fixture(autouse=True)
def _no_attempts_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", password=PASSWORD)


def link_path(user: User) -> str:
    return signin_links.signin_link(user, "http://testserver").removeprefix("http://testserver")


def sign_in(client: Client, password: str, name: str = "anna", **extra: str) -> Any:
    return client.post("/accounts/login/", {"username": name, "password": password}, headers=extra)


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_it_signs_in_and_out(client: Client, anna: User) -> None:
    assert client.get("/accounts/login/").status_code == 200
    response = sign_in(client, PASSWORD)
    assert response.status_code == 302
    assert response["Location"] == "/"
    assert is_signed_in(client)
    assert client.get("/accounts/logout/").status_code == 405
    assert is_signed_in(client)
    assert client.post("/accounts/logout/").status_code == 302
    assert not is_signed_in(client)


def test_next_leads_only_to_this_server(client: Client, anna: User) -> None:
    form = {"username": "anna", "password": PASSWORD}
    there = client.post("/accounts/login/?next=/c/x/", form)
    assert there["Location"] == "/c/x/"
    elsewhere = client.post("/accounts/login/?next=https://evil.example/", form)
    assert elsewhere["Location"] == "/"


def test_json_gets_json(client: Client, anna: User) -> None:
    wrong = sign_in(client, "no", Accept="application/json")
    assert wrong.status_code == 422
    assert wrong.json()["error"]["code"] == "invalid_input"
    assert wrong.json()["error"]["fields"]["username"]
    right = sign_in(client, PASSWORD, Accept="application/json")
    assert right.json() == {"next": "/"}
    assert is_signed_in(client)


@pytest.mark.parametrize("name", ["anna\x00", "x" * 200, ""])
def test_unusable_names_are_refused(client: Client, anna: User, name: str) -> None:
    assert sign_in(client, PASSWORD, name=name).status_code == 200
    assert not is_signed_in(client)


def test_an_inactive_person_stays_out(client: Client, anna: User) -> None:
    path = link_path(anna)
    User.objects.filter(pk=anna.pk).update(is_active=False)
    sign_in(client, PASSWORD)
    assert not is_signed_in(client)
    assert client.post(path).status_code == 410
    assert not is_signed_in(client)


def test_csrf_is_checked(anna: User) -> None:
    client = Client(enforce_csrf_checks=True)
    assert sign_in(client, PASSWORD).status_code == 403
    assert client.post(link_path(anna)).status_code == 403
    assert not is_signed_in(client)


def test_r04_guessing_is_bounded(client: Client, anna: User) -> None:
    """R04: past the bound not even the right password is looked at.

    Breaks when: ``LimitedAuthenticationForm.clean`` does not count the attempt.
    """
    for _ in range(limits.ATTEMPTS):
        assert sign_in(client, "wrong").status_code == 200
    refused = sign_in(client, PASSWORD)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= limits.WINDOW_SECONDS
    assert "Too many attempts" in refused.content.decode()
    assert not is_signed_in(client)
    as_json = sign_in(client, PASSWORD, name="ANNA", Accept="application/json")
    assert as_json.status_code == 429
    error = as_json.json()["error"]
    assert error["code"] == "rate_limited"
    assert error["retry_after"] > 0


def test_r04_others_are_not_kept_out(client: Client, anna: User) -> None:
    for _ in range(limits.ATTEMPTS + 1):
        sign_in(client, "wrong", name="bert")
    assert sign_in(client, PASSWORD).status_code == 302


def test_r04_another_address_is_counted_apart(anna: User) -> None:
    attacker = Client(REMOTE_ADDR="192.0.2.1")
    for _ in range(limits.ATTEMPTS + 1):
        sign_in(attacker, "wrong")
    assert sign_in(Client(REMOTE_ADDR="192.0.2.2"), PASSWORD).status_code == 302


def test_n04_one_address_is_bounded_whatever_the_names(anna: User) -> None:
    """N04: sixty names from one address; somebody else's is not kept out by them.

    Breaks when: attempts are counted a name only.
    """
    attacker = Client(REMOTE_ADDR="192.0.2.1")
    answers = [sign_in(attacker, "wrong", name=f"name-{n}").status_code for n in range(60)]
    assert answers.count(200) == limits.ATTEMPTS_OF_ADDRESS
    assert set(answers[limits.ATTEMPTS_OF_ADDRESS :]) == {429}
    assert sign_in(attacker, PASSWORD).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="192.0.2.2"), PASSWORD).status_code == 302


def test_n04_nobody_drives_the_counts_of_others_out_of_the_cache() -> None:
    """N04: it holds so many, and who has no attempts left could fill it with names.

    Breaks when: names are counted of an address that is refused anyway.
    """
    used: dict[str, Any] = settings.CACHES["default"]
    most = used.get("OPTIONS", {}).get("MAX_ENTRIES", 100)
    for number in range(limits.ATTEMPTS_OF_ADDRESS):
        assert limits.count_attempt(f"name-{number}", "192.0.2.1") == 0
    for number in range(most):
        limits.count_attempt(f"flood-{number}", "192.0.2.2")
    assert limits.count_attempt("one more", "192.0.2.1") > 0


@pytest.mark.parametrize("other", ["2001:db8::2", "2001:db8:0:0:ffff:ffff:ffff:ffff"])
def test_n04_a_network_of_addresses_is_one(anna: User, other: str) -> None:
    """N04: a single host has 2^64 of them to try from.

    Breaks when: each IPv6 address is counted apart.
    """
    for number in range(limits.ATTEMPTS_OF_ADDRESS):
        client = Client(REMOTE_ADDR=f"2001:db8::1:{number:x}")
        assert sign_in(client, "wrong", name=f"name-{number}").status_code == 200
    assert sign_in(Client(REMOTE_ADDR=other), PASSWORD).status_code == 429
    assert sign_in(Client(REMOTE_ADDR="2001:db8:1::1"), PASSWORD).status_code == 302


def test_an_office_behind_one_address_signs_in(anna: User) -> None:
    """Breaks when: a sign-in that was right counts against those of the same address."""
    for _ in range(limits.ATTEMPTS_OF_ADDRESS + 5):
        assert sign_in(Client(), PASSWORD).status_code == 302


def test_who_has_an_account_does_not_begin_anew_with_it(anna: User) -> None:
    """Breaks when: a sign-in forgets all that came from its address."""
    for number in range(limits.ATTEMPTS_OF_ADDRESS - 1):
        sign_in(Client(), "wrong", name=f"name-{number}")
    assert sign_in(Client(), PASSWORD).status_code == 302
    assert sign_in(Client(), "wrong", name="one more").status_code == 200
    assert sign_in(Client(), "wrong", name="too many").status_code == 429


def test_n04_more_than_can_wait_are_asked_to_come_back(client: Client, anna: User) -> None:
    """N04: sign-ins that wait for their hash hold a thread each.

    Breaks when: any number may wait, or a turned away attempt counts.
    """
    with ExitStack() as waiting:
        for _ in range(limits.AT_ONCE):
            assert waiting.enter_context(limits.place_to_wait())
        for _ in range(limits.ATTEMPTS + 1):
            refused = sign_in(client, PASSWORD, Accept="application/json")
            assert refused.status_code == 429
            assert "Too many people" in refused.json()["error"]["message"]
            assert int(refused["Retry-After"]) == limits.BUSY_SECONDS
    assert sign_in(client, PASSWORD).status_code == 302


def test_r04_a_forged_address_is_not_believed(anna: User) -> None:
    for number in range(limits.ATTEMPTS):
        sign_in(Client(), "wrong", **{"X-Forwarded-For": f"192.0.2.{number}"})
    assert sign_in(Client(), PASSWORD, **{"X-Forwarded-For": "192.0.2.99"}).status_code == 429


def test_signing_in_forgets_the_mistakes(client: Client, anna: User) -> None:
    for _ in range(3):
        for _ in range(limits.ATTEMPTS - 1):
            sign_in(client, "wrong")
        assert sign_in(client, PASSWORD).status_code == 302


def test_a_link_signs_in_once(client: Client, anna: User) -> None:
    path = link_path(anna)
    for _ in range(2):
        page = client.get(path)
        assert page.status_code == 200
        assert 'method="post"' in page.content.decode()
        assert not is_signed_in(client)
    response = client.post(path)
    assert response.status_code == 302
    assert response["Location"] == "/"
    assert client.session["_auth_user_id"] == str(anna.pk)
    again = Client()
    for used in (again.get(path), again.post(path)):
        assert used.status_code == 410
        assert "manage.py signin_link" in used.content.decode()
    assert not is_signed_in(again)


@pytest.mark.parametrize("path", ["/accounts/link/x/y/", "/accounts/link/MQ/a-b/"])
def test_a_wrong_link_is_refused(client: Client, anna: User, path: str) -> None:
    assert client.get(path).status_code == 410
    answer = client.post(path, headers={"Accept": "application/json"})
    assert answer.status_code == 410
    assert answer.json()["error"]["code"] == "link_expired"


def test_who_has_no_password_sets_one(client: Client) -> None:
    owner = User.objects.create_superuser("owner", password=None)
    client.post(link_path(owner))
    assert "old_password" not in client.get("/accounts/password_change/").content.decode()
    new = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    changed = client.post("/accounts/password_change/", new)
    assert changed.status_code == 302
    assert client.get(changed["Location"]).status_code == 200
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)
    # From now on the old one is asked for.
    assert "old_password" in client.get("/accounts/password_change/").content.decode()
    refused = client.post(
        "/accounts/password_change/", {"new_password1": "other-9-x", "new_password2": "other-9-x"}
    )
    assert refused.status_code == 200
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)


def test_a08_changing_the_password_signs_other_browsers_out(client: Client, anna: User) -> None:
    """A08 over HTTP: the other browser is sent to sign in."""
    other = Client()
    for browser in (client, other):
        sign_in(browser, PASSWORD)
    new = "another-horse-8"
    client.post(
        "/accounts/password_change/",
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )
    assert client.get("/accounts/password_change/").status_code == 200
    assert other.get("/accounts/password_change/").status_code == 302


def test_a13_pages_are_kept_out_of_caches(client: Client, anna: User) -> None:
    for path in ("/accounts/login/", link_path(anna)):
        assert "no-store" in client.get(path)["Cache-Control"]
