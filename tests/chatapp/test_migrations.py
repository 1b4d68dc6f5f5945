from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chatapp import migrations
from chatapp.conversations import profiles
from chatapp.models import AccessRecord, ModelProfile, Project, Summary
from tests.chatapp.talking import exchange, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

NAMES = sorted(path.stem[:4] for path in Path(migrations.__path__[0]).glob("0*.py"))
Rows = dict[str, tuple[int, str]]


def columns() -> dict[str, list[str]]:
    """The columns of each of our models' tables, as they are now."""
    ours = {model._meta.db_table for model in apps.get_app_config("chatapp").get_models()}
    found = {}
    with connection.cursor() as cursor:
        for table in ours & set(connection.introspection.table_names(cursor)):
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            found[table] = [column[0] for column in cursor.description]
    return found


def contents(of: dict[str, list[str]]) -> Rows:
    """How many rows each table has, and a hash of all of them in these columns."""
    found = {}
    with connection.cursor() as cursor:
        for table, names in of.items():
            quoted = ", ".join(connection.ops.quote_name(name) for name in names)
            cursor.execute(f"SELECT {quoted} FROM {table} ORDER BY id")
            rows = cursor.fetchall()
            found[table] = (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
    return found


def test_b05_i32_rows_of_every_earlier_release_are_as_they_were(alice: User) -> None:
    """Brought up to date, every row of before is there, unchanged to the last character.

    From each release to the next one, with rows in which the columns of both are filled, and from
    the first to the last.

    Breaks when: a migration fills a column that was there, or leaves rows out.
    """
    code = new(alice)
    for text in ("Hello", "naïve 日本 \u202e\U0001f600", "a 'quoted' \\ line\n" * 50):
        exchange(alice, code, text, text[::-1])
    Summary.objects.create(
        conversation=row_of(code),
        version=1,
        status="active",
        trigger="manual",
        text="## Rules",
        parent=0,
    )
    try:
        for earlier, later in reversed(list(pairwise(NAMES))):
            migrate(earlier)
            there = columns()
            before = contents(there)
            assert before["chatapp_message"][0] == 6
            migrate(later)
            assert contents(there) == before, f"{earlier} to {later}"
        migrate(NAMES[0])
    finally:
        call_command("migrate", verbosity=0)
    assert contents(there) == before, f"{NAMES[0]} to the last"


def migrate(name: str = NAMES[-1]) -> None:
    """Go to a release, the last one if none is named.

    The command itself would check the whole project each time, and look for new permissions.
    """
    executor = MigrationExecutor(connection)
    found = executor.loader.get_migration_by_prefix("chatapp", name)
    executor.migrate([("chatapp", found.name)])


def test_continuations_of_before_are_numbered(alice: User) -> None:
    """One more than what each continues; a branch has the number of what it branched off.

    Breaks when: 0023 leaves them without a number, or counts a branch as a part.
    """
    rows = [row_of(new(alice)) for _ in range(5)]
    for number, continued, branched in ((1, 0, None), (2, 1, None), (3, 1, 2), (4, 3, None)):
        rows[number].continued_from = rows[continued]
        rows[number].branched_from = None if branched is None else rows[branched]
        rows[number].save()
    migrate("0019")
    migrate()
    for row in rows:
        row.refresh_from_db()
    assert [row.part for row in rows] == [None, 2, 3, 3, 4]
    assert {row.first_part_id for row in rows[1:]} == {rows[0].pk}


def test_projects_of_before_get_names_for_the_file_system(alice: User, bob: User) -> None:
    """Whatever their slugs were, and even if another one has the name that would be the next best.

    Breaks when: 0021 leaves a slug that is no folder's name, or two of one person's are the same.
    """
    migrate("0020")
    try:
        before = MigrationExecutor(connection).loader.project_state(
            [("chatapp", "0020_activity_log")]
        )
        old = before.apps.get_model("chatapp", "Project")
        slugs = ("Der-Roman", "x" * 200, "Ünï", "日本", "default", "fine_1")
        made = [old.objects.create(owner_id=alice.pk, name="n", slug=slug) for slug in slugs]
        for row, taken in zip(made, ("der_roman", "x" * 30, "uni", "", "default"), strict=False):
            old.objects.create(owner_id=alice.pk, name="n", slug=f"{taken}_{row.pk}")
        old.objects.create(owner_id=bob.pk, name="n", slug="default")
    finally:
        migrate()
    after = Project.objects.filter(owner=alice).values_list("slug", flat=True)
    assert len(set(after)) == len(after) == 11
    assert "fine_1" in after
    for slug in Project.objects.values_list("slug", flat=True):
        assert re.fullmatch(r"[a-z0-9_]{1,50}", slug)
        assert slug != "default"
    migrate("0020")
    migrate()
    assert set(Project.objects.filter(owner=alice).values_list("slug", flat=True)) == set(after)


@pytest.mark.soak
def test_i32_to_an_early_release_and_back(alice: User, bob: User) -> None:
    """I32: with a record of what is gone, a finished part of a summary, and what only then was so.

    Records get the names of their people. A window that one refusal had taught for ever, and a flag
    that one had cleared, go on trial.

    Breaks when: a migration's way back leaves rows that the columns of before do not take, or a
    status that nobody knew; 0007 leaves records that say nothing once somebody is deleted; 0009
    lets what was learned stay in place of what the server says, or forgets it.
    """
    row = row_of(new(alice))
    AccessRecord.objects.create(viewer=alice, conversation=None, what="user: Changed password.")
    kept = AccessRecord.objects.create(viewer=bob, conversation=row, what="summary")
    Summary.objects.create(conversation=row, version=0, status="partial", trigger="manual")
    learned = {"window": "learned", "supports_usage": "learned", "max_output_tokens": "operator"}
    ModelProfile.objects.create(
        name="one", window=4096, supports_usage=False, max_output_tokens=700, sources=learned
    )
    migrate("0006")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM chatapp_accessrecord")
            records = cursor.fetchall()
            cursor.execute("SELECT status FROM chatapp_summary")
            statuses = cursor.fetchall()
    finally:
        migrate()
    assert records == [(kept.pk,)]
    assert statuses == []
    kept.refresh_from_db()
    assert (kept.viewer_name, kept.owner_name) == ("bob", "alice")
    assert kept.conversation_code == row.code
    profile = ModelProfile.objects.get()
    assert (profile.window, profile.supports_usage, profile.max_output_tokens) == (8192, True, 700)
    assert profiles.in_force(profile) == {"window": 4096, "supports_usage": False}
    profiles.save({"one": {"window": 32_000, "sources": {"window": "server"}}})
    profile = ModelProfile.objects.get()
    assert (profile.window, profile.max_output_tokens) == (32_000, 700)
    assert not any(lesson.confirmed for lesson in profiles.lessons(profile).values())


def test_summaries_of_before_get_the_share_that_they_kept(alice: User) -> None:
    """By their audits, whatever shape an import gave them; forward and back with reviews.

    Breaks when: 0024 fills nothing, fails on an audit of another shape, or cannot be taken back.
    """
    row = row_of(new(alice))
    audits: list[Any] = [
        {"salient": 8, "retained": 2},
        {"salient": 0, "retained": 0},
        {"salient": "many", "retained": []},
        {"salient": 2, "retained": 5},
        ["salient"],
        {},
    ]
    made = [
        Summary.objects.create(conversation=row, status="failed", trigger="manual", audit=audit)
        for audit in audits
    ]
    Summary.objects.update(review="approved", reviewer=alice, review_note="good", retention=0.5)
    migrate("0023")
    try:
        assert "review" not in columns()["chatapp_summary"]
    finally:
        migrate()
    for one in made:
        one.refresh_from_db()
    assert [one.retention for one in made] == [0.25, None, None, None, None, None]
    assert {one.review for one in made} == {None}
    assert [one.audit for one in made] == audits
