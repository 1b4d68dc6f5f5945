"""Connections are set up in the admin too; their keys are never shown, nor sent elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from chatapp.admin.connections import MOVED
from chatapp.models import AccessRecord, Connection, ModelProfile
from chatapp.tools.sealing import seal, unseal
from compression.admin.facts import in_use, instructions
from compression.summarizers.prompt_files import COMPACT, packaged
from tests.reviewing import browser_of, page

pytestmark = pytest.mark.django_db

PAGE = "/admin/chatapp/connection/"
KEY = "sk-of-a-secret"


def form(**changes: Any) -> dict[str, Any]:
    values = {"name": "study", "address": "https://models.example.org/v1", "enabled": "on"}
    return values | {"key": "", **changes}


@pytest.fixture
def root() -> Client:
    return browser_of(User.objects.create_superuser("root"))


@pytest.fixture
def helper() -> Client:
    made = User.objects.create_user("helper", is_staff=True)
    acts = [f"{act}_connection" for act in ("add", "change", "delete", "view")]
    made.user_permissions.set(Permission.objects.filter(codename__in=acts))
    return browser_of(made)


def stored(**values: Any) -> Connection:
    return Connection.objects.create(
        **{
            "name": "study",
            "address": "http://10.0.0.7:8000/v1",
            "sealed_key": seal(KEY),
            "private_addresses": True,
            "listed": [{"name": "a<b>\u202e", "window": None}, {"name": "b", "window": 8192}],
            "offered": ["b"],
            **values,
        }
    )


def test_it_works(root: Client) -> None:
    """Breaks when: the key is stored as it is, or shown."""
    answer = root.post(f"{PAGE}add/", form(key=KEY, everyone="on"))
    assert answer.status_code == 302, answer.content
    row = Connection.objects.get()
    assert KEY not in row.sealed_key
    assert unseal(row.sealed_key) == KEY
    shown = page(root, f"{PAGE}{row.pk}/change/")
    assert KEY not in shown
    assert "stored, encrypted" in shown
    assert AccessRecord.objects.filter(owner_name="study").exists()
    for wrong in ({"address": "ftp://x/v1"}, {"name": "Study"}, {"name": "summaries"}):
        answer = root.post(f"{PAGE}add/", form(**wrong))
        assert answer.status_code == 200
    assert Connection.objects.count() == 1


def test_a_key_goes_to_its_own_place_only(root: Client, helper: Client) -> None:
    """Whoever may change an address could otherwise have the key sent to their own computer.

    Breaks when: ``save_model`` keeps the key, or the leave for private addresses, of a connection
    that was moved by somebody who may not give it.
    """
    row = stored()
    at = f"{PAGE}{row.pk}/change/"
    values = form(address="http://10.0.0.7:8000/v2", offered=["b"])
    assert helper.post(at, values).status_code == 302
    row.refresh_from_db()
    assert unseal(row.sealed_key) == KEY
    assert (row.private_addresses, row.offered, row.name) == (True, ["b"], "study")
    told = helper.post(at, values | {"address": "http://10.0.0.8:8000/v1"}, follow=True)
    assert MOVED in told.content.decode()
    row.refresh_from_db()
    assert (row.sealed_key, row.private_addresses) == ("", False)
    helper.post(at, values | {"private_addresses": "on", "name": "other"})
    row.refresh_from_db()
    assert (row.private_addresses, row.name) == (False, "study")
    root.post(at, values | {"private_addresses": "on", "key": "another"})
    row.refresh_from_db()
    assert (row.private_addresses, unseal(row.sealed_key)) == (True, "another")


def test_what_a_server_says_is_inert_and_goes_with_it(root: Client) -> None:
    """Breaks when: a listed name is shown unescaped, or figures outlive their connection."""
    row = stored()
    shown = page(root, f"{PAGE}{row.pk}/change/")
    assert "a<b>" not in shown
    assert "\u202e" not in shown.replace('value="a&lt;b&gt;\u202e"', "")
    ModelProfile.objects.create(name="b @ study")
    ModelProfile.objects.create(name="b @ case study")
    ModelProfile.objects.create(name="b")
    assert root.post(f"{PAGE}{row.pk}/delete/", {"post": "yes"}).status_code == 302
    assert set(ModelProfile.objects.values_list("name", flat=True)) == {"b", "b @ case study"}


def test_the_admin_says_which_prompt_holds(root: Client, settings: Any, tmp_path: Path) -> None:
    """Breaks when: the list of summaries, or a version's facts, read another folder."""
    assert f"packaged), version {packaged().version}" in page(root, "/admin/chatapp/summary/")
    text = packaged().text + "Be brief.\n"
    (tmp_path / COMPACT).write_text(f"---\nname: Brief\ndescription: d\n---\n{text}")
    settings.COMPRESSION = {**settings.COMPRESSION, "PROMPTS_DIR": str(tmp_path)}
    assert in_use().startswith("Brief (from PROMPTS_DIR), version ")
    assert "in use now: Brief" in instructions(packaged().version)
