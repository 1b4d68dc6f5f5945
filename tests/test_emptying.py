"""What a test leaves behind, and what each begins with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from chatapp.models import AccessRecord
from tests import emptying
from tests.chatapp.talking import exchange, new

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def rows() -> dict[str, int]:
    """How many rows each table of ours and of Django's has."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(only_existing=True):
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            found[table] = cursor.fetchone()[0]
    return found


def permissions() -> set[tuple[str, str, str]]:
    fields = ("content_type__app_label", "codename", "name")
    return set(Permission.objects.values_list(*fields))


def test_it_works(alice: User) -> None:
    """Breaks when: a table is left out, or permissions go with the people who have them."""
    exchange(alice, new(alice), "Hello", "Hello yourself")
    alice.user_permissions.set(Permission.objects.all())
    group = Group.objects.create(name="readers")
    group.permissions.set(Permission.objects.all())
    AccessRecord.objects.create(viewer=alice, conversation=None, what="summary")
    assert rows()["chatapp_message"] == 2
    before = permissions()
    emptying.empty()
    assert {table for table, count in rows().items() if count} == set(emptying.KEPT)
    assert permissions() == before


def test_every_model_has_its_permissions() -> None:
    """Breaks when: a test finds fewer than a fresh database has."""
    names = {
        f"{action}_{model._meta.model_name}"
        for model in apps.get_models()
        for action in model._meta.default_permissions
    }
    assert {codename for _, codename, _ in permissions()} >= names


def rename() -> None:
    Permission.objects.filter(codename="view_message").update(name="Anything")


def delete() -> None:
    Permission.objects.filter(codename="view_message").delete()


def add() -> None:
    somewhere = ContentType.objects.get(app_label="auth", model="user")
    Permission.objects.create(codename="fly", name="Can fly", content_type=somewhere)


def replace() -> None:
    ContentType.objects.all().delete()


@pytest.mark.parametrize("change", [rename, delete, add, replace])
def test_what_a_test_changed_of_them_is_made_anew(change: Callable[[], object]) -> None:
    """Breaks when: kept rows are taken for unchanged."""
    before = permissions()
    change()
    assert permissions() != before
    emptying.empty()
    assert permissions() == before
    Permission.objects.get(codename="view_message", content_type__app_label="chatapp")
