from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction

from compression.database import across, snapshot

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def elsewhere(work: Callable[[], object]) -> None:
    """Do it over another connection, to its commit."""

    def run() -> None:
        work()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_a_snapshot_sees_one_state_and_delays_nobody() -> None:
    """Breaks when: PostgreSQL reads what was committed meanwhile, or SQLite locks writers out."""
    with snapshot():
        assert User.objects.count() == 0
        elsewhere(lambda: User.objects.create(username="late"))
        assert User.objects.count() == 0
    assert User.objects.count() == 1


def test_what_follows_a_snapshot_writes_as_before() -> None:
    """Breaks when: the way in which a transaction begins is not put back."""
    with snapshot():
        User.objects.count()
    with transaction.atomic():
        before = User.objects.count()
        writing = threading.Thread(
            target=elsewhere, args=(lambda: User.objects.create(username="other"),)
        )
        writing.start()
        # Where there is one writer, the other one waits instead of spoiling this one's write.
        User.objects.create(username="this")
        assert before == 0
    writing.join()
    assert User.objects.count() == 2


def test_a_snapshot_is_for_reading() -> None:
    """A server refuses to write in it; SQLite cannot, as long as nobody else has written.

    Breaks when: a snapshot on PostgreSQL may write, or one within a transaction may not.
    """
    refused = connection.vendor == "postgresql"
    with pytest.raises(DatabaseError) if refused else nullcontext(), snapshot():
        User.objects.create(username="nobody")
    with transaction.atomic(), snapshot():
        User.objects.create(username="somebody")
    assert User.objects.filter(username="nobody").exists() is not refused
    assert User.objects.filter(username="somebody").exists()


@pytest.mark.django_db(transaction=True)
async def test_units_in_the_background_never_wait_for_the_disk() -> None:
    """Breaks when: a connection of theirs moves SQLite's log into its file."""
    if connection.vendor != "sqlite":
        return

    def pages() -> int:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_autocheckpoint")
            return int(cursor.fetchone()[0])

    assert await across(pages, background=True)() == 0
    assert await across(pages)() > 0
