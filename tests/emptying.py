"""Emptying the tables after a test that commits.

Django's own way makes all permissions and content types anew each time, which takes longer than
most tests. They are the same for every test, so they stay, unless a test has changed them.
"""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DEFAULT_DB_ALIAS, connection
from django.test import TransactionTestCase

from compression.database import drain

#: Filled by ``migrate``; no row of ours is in them.
KEPT = ("auth_permission", "django_content_type")

Rows = list[tuple[Any, ...]]
_as_migrated: list[Rows] = []


def _kept() -> list[Rows]:
    found = []
    with connection.cursor() as cursor:
        for table in KEPT:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")
            found.append(cursor.fetchall())
    return found


def remember() -> None:
    """Note what the kept tables hold; once, when the test database has been made."""
    _as_migrated[:] = _kept()


def empty() -> None:
    """Delete every row but those that each test begins with, once no unit of work runs.

    After this connections are refused, in every thread. A unit that still runs could not end its
    transaction then, and its connection would stay in it.
    """
    drain()
    if _kept() != _as_migrated:
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        remember()
        return
    known = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [name for name in known if name not in KEPT]
    connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), tables))


def _fixture_teardown(case: TransactionTestCase) -> None:
    assert set(case.databases) == {DEFAULT_DB_ALIAS}
    empty()


def install() -> None:
    """Have every transactional test end so."""
    setattr(TransactionTestCase, "_fixture_teardown", _fixture_teardown)  # noqa: B010
