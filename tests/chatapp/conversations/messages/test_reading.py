from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from chatapp.conversations import branching, continuing, viewer_checks
from chatapp.conversations.messages import kept, paging, reading
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.messages.views import turn_views, with_questions
from chatapp.conversations.turns import progress, replacing
from chatapp.errors import NotFound
from chatapp.live.view_models import PageView
from chatapp.models import Conversation, Message, Summary, TurnStatus
from compression import store
from tests.chatapp.talking import (
    PROCESS_ID,
    at_once,
    begin,
    context_view,
    end,
    exchange,
    long_conversation,
    new,
    row_of,
)

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def queries(work: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        work()
    return [one["sql"] for one in captured.captured_queries]


def test_it_works(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one", "first")
    begin(alice, code, "two")
    page = reading.page(alice.pk, code, context_view)
    assert [(one.seq, one.role, one.text) for one in page.messages] == [
        (1, "user", "one"),
        (2, "assistant", "first"),
        (3, "user", "two"),
        (4, "assistant", ""),
    ]
    assert page.turn is not None
    assert (page.turn.message_seq, page.turn.reply_seq) == (3, 4)
    assert not page.has_older
    assert page.context.tail == 5 + 7 + 5


def test_a_page_shows_the_newest_and_pages_back_without_gaps(alice: User) -> None:
    code = long_conversation(alice, 200)
    page = reading.page(alice.pk, code, context_view)
    seen = [one.seq for one in page.messages]
    assert not page.has_newer
    while page.has_older:
        page = reading.page(alice.pk, code, context_view, before=seen[0])
        assert page.has_newer
        seen = [one.seq for one in page.messages] + seen
    assert seen == list(range(1, 201))


def test_r05_reading_costs_the_same_number_of_queries_at_any_length(alice: User) -> None:
    counts = []
    for length in (30, 3000):
        code = long_conversation(alice, length)
        begin(alice, code, "now")
        pk = row_of(code).pk
        works: list[Callable[[], Any]] = [
            partial(reading.page, alice.pk, code, context_view),
            partial(reading.page, alice.pk, code, context_view, before=20),
            partial(reading.changes, pk, 0, context_view),
            partial(reading.changes, pk, 1, context_view),
            partial(reading.snapshot_with_tail, pk),
            partial(reading.owned_snapshot_without_tail, alice.pk, code),
            partial(reading.overview, pk, context_view),
            partial(viewer_checks.change_marker, pk),
        ]
        counts.append([len(queries(work)) for work in works])
    assert counts[0] == counts[1]
    assert counts[0][-1] == 1, "a change marker is read by every viewer every few seconds"


def test_a_page_reads_no_more_messages_than_it_shows(alice: User) -> None:
    code = long_conversation(alice, 3000)
    page = reading.page(alice.pk, code, context_view)
    assert len(page.messages) == paging.FIRST_MESSAGES
    assert len(reading.page(alice.pk, code, context_view, before=2000).messages) == (
        paging.OLDER_MESSAGES
    )
    changed = reading.changes(row_of(code).pk, 0, context_view)
    assert changed.messages == page.messages


def test_i4_what_changed_since_a_number_brings_a_viewer_up_to_date(alice: User) -> None:
    """State before and what changed are the state now, wherever the viewer was cut off.

    Breaks when: a stored change of a message or a turn is not stamped with its ``event_no``.
    """
    code = new(alice)
    pk = row_of(code).pk
    views: list[tuple[int, PageView]] = []

    def check() -> None:
        """Whoever was cut off at any moment before is brought to what there is now."""
        now = reading.page(alice.pk, code, context_view)
        turns = {one.turn: one for one in turn_views(with_questions(row_of(code).turns.all()))}
        for number, view in views:
            changed = reading.changes(pk, number, context_view)
            shown = {one.seq: one for one in (*view.messages, *changed.messages)}
            assert [shown[seq] for seq in sorted(shown)] == now.messages, number
            assert (changed.turn, changed.context) == (now.turn, now.context)
            opened = [one for one in (view.turn, changed.turn) if one is not None]
            told = {one.turn: one for one in (*opened, *view.turns, *changed.turns)}
            assert all(turns[one] == view for one, view in told.items()), number
        views.append((row_of(code).event_no, reading.changes(pk, 0, context_view)))

    check()
    first = begin(alice, code, "one")
    check()
    end(first, "first", TurnStatus.FAILED, error={"code": "llm_cut"})
    check()
    exchange(alice, code, "two")
    check()
    again = replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    check()
    end(again, "better")
    check()
    edited = replacing.edit(
        alice.pk, code, 1, text="uno", tokens=1, model="m", process_id=PROCESS_ID
    )
    check()
    end(edited, "eins")
    check()


def test_what_the_next_request_is_made_of(alice: User) -> None:
    code = new(alice)
    for text in ("one", "two", "three"):
        exchange(alice, code, text)
    Message.objects.filter(seq=1).update(pinned_at="2026-01-01T00:00Z")
    replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    Conversation.objects.update(compressed_through=2, compressed_context="They met.")
    snapshot = reading.snapshot_with_tail(row_of(code).pk)
    assert [one.seq for one in snapshot.tail] == [3, 4, 5, 7]
    assert [one.seq for one in snapshot.pinned] == [1]
    assert (snapshot.summary, snapshot.boundary) == ("They met.", 2)
    assert [one.turn_open for one in snapshot.tail] == [False, False, True, True]
    assert snapshot.mark.startswith("=== ")
    assert reading.snapshot_with_tail(row_of(code).pk).mark == snapshot.mark


def test_preparing_a_request_takes_five_statements(alice: User) -> None:
    """The row, its owner's instructions and tail, whether anything before is pinned, the requests.

    Breaks when: what each turn reads takes another statement, or what was carried over is read
    again each time.
    """
    code = new(alice)
    for text in ("one", "two"):
        exchange(alice, code, text)
    Conversation.objects.update(compressed_through=2, compressed_context="They met.")
    pk = row_of(code).pk
    reading.snapshot_with_tail(pk)
    for statements in (2, 5):
        # The messages are kept at first.
        asked = queries(partial(reading.snapshot_with_tail, pk))
        assert len([one for one in asked if one.startswith("SELECT")]) == statements, asked
        kept.forget()


def test_what_was_carried_over_is_known_in_every_snapshot(alice: User) -> None:
    """Of the conversation that continues another, and of a branch of it; not of the other.

    Breaks when: what was carried over into one conversation is taken for another's, or forgotten.
    """
    code = new(alice)
    for text in ("one", "two"):
        exchange(alice, code, text)
    begun_with = store.Base(conversation_id=0, text="A\nB")
    store.carry_over(row_of(code).pk, begun_with, summary_tokens=2, author_id=None)
    left = continuing.left_behind(alice.pk, code, 1, 1000)
    later = continuing.continue_in_new(
        alice.pk, code, left, text=left.text, ledger=left.ledger, summary_tokens=2
    )
    branched = branching.branch(alice.pk, later, 1)
    plain = new(alice)
    Conversation.objects.filter(code=plain).update(compressed_context="A", compression_version=1)
    for _ in range(2):
        carried = {
            name: reading.owned_snapshot_without_tail(alice.pk, name).carried
            for name in (code, later, branched, plain)
        }
        both = frozenset({"A", "B"})
        assert carried == {code: both, later: both, branched: both, plain: frozenset()}


def test_the_fence_changes_with_the_version_and_the_conversation(alice: User) -> None:
    codes = new(alice), new(alice)
    marks = {reading.snapshot_with_tail(row_of(code).pk).mark for code in codes}
    Conversation.objects.update(compression_version=1)
    marks |= {reading.snapshot_with_tail(row_of(code).pk).mark for code in codes}
    assert len(marks) == 4


def test_i9_summary_and_boundary_come_from_one_commit(alice: User) -> None:
    """One thread moves both, others read: text and boundary always belong together.

    Breaks when: ``snapshot_with_tail`` reads the conversation's row twice, or the tail before it.
    """
    code = new(alice)
    for number in range(10):
        exchange(alice, code, f"text {number}")
    pk = row_of(code).pk

    def write() -> int:
        for through in range(1, 20):
            with transaction.atomic():
                Conversation.objects.filter(pk=pk).update(
                    compressed_through=through, compressed_context=f"through {through}"
                )
        return 0

    def read() -> int:
        wrong = 0
        for _ in range(20):
            snapshot = reading.snapshot_with_tail(pk)
            if snapshot.boundary:
                wrong += snapshot.summary != f"through {snapshot.boundary}"
            wrong += [one.seq for one in snapshot.tail] != list(range(snapshot.boundary + 1, 21))
        return wrong

    assert at_once(write, read, read) == [0, 0, 0]


def test_i14_superseded_text_is_in_no_request_and_no_summary(alice: User) -> None:
    """Breaks when: ``live`` does not leave superseded messages out, pinned ones included."""
    code = new(alice)
    exchange(alice, code, "old words")
    Message.objects.update(pinned_at="2026-01-01T00:00Z")
    edited = replacing.edit(
        alice.pk, code, 1, text="new", tokens=1, model="m", process_id=PROCESS_ID
    )
    end(edited)
    exchange(alice, code, "two")
    pk = row_of(code).pk
    transcript = StoredTranscript()
    assert [one.seq for one in transcript.items(pk, after_seq=0)] == [3, 4, 5, 6]
    Conversation.objects.update(compressed_through=4)
    snapshot = reading.snapshot_with_tail(pk)
    assert snapshot.pinned == ()
    assert "old words" not in str(snapshot)


def test_compression_sees_no_reply_that_has_not_begun(alice: User) -> None:
    code = new(alice)
    exchange(alice, code)
    begun = begin(alice, code, "two")
    items = StoredTranscript().items(row_of(code).pk, after_seq=0, through_seq=4)
    assert [(one.seq, one.open) for one in items] == [(1, False), (2, False), (3, True)]
    progress.checkpoint(
        [
            progress.Checkpoint(
                message_id=begun.reply_id, turn=begun.turn, text="so far", reasoning=""
            )
        ]
    )
    items = StoredTranscript().items(row_of(code).pk, after_seq=2)
    assert [(one.seq, one.open) for one in items] == [(3, True), (4, True)]


def test_the_summary_in_force_is_shown_with_its_figures(alice: User) -> None:
    code = new(alice)
    exchange(alice, code)
    exchange(alice, code)
    row = row_of(code)
    Summary.objects.create(
        conversation=row,
        version=1,
        status="active",
        trigger="manual",
        text="They met.",
        through_seq=2,
        message_count=2,
        source_tokens=12,
        summary_tokens=3,
    )
    Conversation.objects.update(
        compression_version=1,
        compressed_through=2,
        compressed_context="They met.",
        truncated_through=3,
    )
    view = reading.page(alice.pk, code, context_view).compression
    assert (view.version, view.boundary, view.summary) == (1, 2, "They met.")
    assert (view.message_count, view.tokens_before, view.tokens_after) == (2, 12, 3)
    assert (view.can_undo, view.can_redo, view.running) == (True, False, False)
    assert (view.truncated_through, view.truncated_count) == (3, 1)
    assert view.truncated_because == "what must stay is too large for a summary to help"
    Conversation.objects.update(compression_off=True)
    view = reading.page(alice.pk, code, context_view).compression
    assert view.truncated_because == "compression is turned off for this conversation"


def test_one_turn_with_its_manifest(alice: User, bob: User) -> None:
    code = new(alice)
    accepted = begin(alice, code)
    end(accepted, manifest={"boundary": 0})
    found = reading.turn(alice.pk, code, accepted.turn)
    assert (found["status"], found["manifest"]) == ("complete", {"boundary": 0})
    theirs = new(bob)
    with pytest.raises(NotFound):
        reading.turn(bob.pk, theirs, accepted.turn)


@contextmanager
def being_written(conversation_id: int) -> Iterator[None]:
    """Another connection is in the middle of a transaction that changes this conversation."""
    begun, over = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            Conversation.objects.filter(pk=conversation_id).update(title="half written")
            begun.set()
            assert over.wait(20)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            assert begun.wait(20)
            yield
        finally:
            over.set()
        writing.result()


def test_reading_waits_for_no_writer(alice: User) -> None:
    """Breaks when: a unit that only reads takes a writer's place, of which SQLite has one."""
    code = new(alice)
    exchange(alice, code, "one", "first")
    pk = row_of(code).pk
    with being_written(pk):
        if connection.vendor == "sqlite":
            connection.cursor().execute("PRAGMA busy_timeout = 0")
        try:
            assert reading.page(alice.pk, code, context_view).conversation.title == ""
            assert reading.changes(pk, 0, context_view).conversation.title == ""
            assert reading.context_of(pk, context_view).tail == 5 + 7
            assert reading.overview(pk, context_view)[2].tail == 5 + 7
            assert len(reading.snapshot_with_tail(pk).tail) == 2
            assert reading.owned_snapshot_without_tail(alice.pk, code).conversation_id == pk
            assert viewer_checks.change_marker(pk) == viewer_checks.ChangeMarker(
                event_no=2, running=False, opened=False, written=0
            )
        finally:
            connection.close()
    assert reading.page(alice.pk, code, context_view).conversation.title == "half written"


def test_i17_the_mark_around_the_summary_is_its_versions_own(alice: User) -> None:
    """I17, P01: the same at every reading, another for another version or conversation.

    Breaks when: the mark depends on time or chance, or not on the version and the code.
    """
    code, other = new(alice), new(alice)
    first = reading.snapshot_without_tail(row_of(code)).mark
    assert reading.snapshot_without_tail(row_of(code)).mark == first
    assert reading.snapshot_without_tail(row_of(other)).mark != first
    Conversation.objects.filter(code=code).update(compression_version=1)
    assert reading.snapshot_without_tail(row_of(code)).mark != first
