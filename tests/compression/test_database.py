from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction

from compression.database import TookTooLong, in_database_thread, snapshot, time_limit

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

    assert await in_database_thread(pages, lane="background")() == 0
    assert await in_database_thread(pages)() > 0


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_statement_is_ended_in_time_and_the_next_one_works() -> None:
    """Breaks when: a statement may take as long as it likes, or the limit outlives its block."""
    with pytest.raises(TookTooLong), snapshot(), time_limit(0.05), connection.cursor() as cursor:
        cursor.execute(ENDLESS)
    bounded = ENDLESS.replace("FROM n) ", "FROM n WHERE i < 300000) ")
    # Its time would be over before it has begun.
    with snapshot(), connection.cursor() as cursor:
        cursor.execute(bounded)
        assert cursor.fetchone()[0] == 300_000


def test_other_failures_are_what_they_are() -> None:
    """Breaks when: every error of a statement with a limit is taken for its end."""
    with pytest.raises(DatabaseError), snapshot(), time_limit(5), connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


async def test_what_is_slow_delays_nothing_else() -> None:
    """Breaks when: slow units take the threads of what else a person asks for."""
    begun, go = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        assert go.wait(30)

    held = [asyncio.create_task(in_database_thread(hold, lane="slow")()) for _ in range(10)]
    try:
        assert await asyncio.to_thread(begun.acquire, timeout=30)
        for lane in ("asked", "background", "bulk"):
            assert await in_database_thread(User.objects.count, lane=lane)() == 0
    finally:
        go.set()
        await asyncio.gather(*held)
