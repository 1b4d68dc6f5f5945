"""The store: claims, guarded writes, versions. On whichever database is configured."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone

from chatapp.models import Conversation, Message, Summary
from compression import store
from compression.exceptions import CompressionCancelled, NothingToUndo, StaleSource, StaleVersion
from compression.ledger.markdown import render
from compression.store import Base, FitDraft
from compression.types import Entry, Item, Ledger, NarrativeLine, Section, SummaryStatus, Trigger
from tests.compression.hosting import (
    TRANSCRIPT,
    add,
    expire_lease,
    new_conversation,
    open_turn,
    rows,
    stored,
    supersede,
)

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
threads = pytest.mark.django_db(transaction=True)
"""For tests in which several connections must see one another's commits."""


def claim(conversation: Conversation, trigger: Trigger = Trigger.THRESHOLD) -> str:
    token = store.claim(conversation.pk, trigger=trigger, locks_input=True)
    assert token is not None
    return token


def ledger_saying(text: str, seq: int = 1) -> Ledger:
    return Ledger(
        entries=(Entry(id=1, section=Section.PENDING, text=text, sources=(seq,)),),
        narrative=(NarrativeLine(text="They talked.", first_seq=seq, through_seq=seq),),
    )


def fit(conversation: Conversation, base: Base, through_seq: int, text: str = "kept") -> FitDraft:
    items = TRANSCRIPT.items(conversation.pk, after_seq=base.boundary, through_seq=through_seq)
    ledger = ledger_saying(text, base.boundary + 1)
    return FitDraft(
        trigger=Trigger.THRESHOLD,
        text=render(ledger),
        ledger=ledger,
        first_seq=items[0].seq,
        through_seq=through_seq,
        message_count=len(items),
        fingerprint=store.fingerprint(items),
        source_tokens=sum(item.tokens for item in items),
        summary_tokens=10,
        usage_before=0.9,
        usage_after=0.5,
    )


def compress(conversation: Conversation, through_seq: int, text: str = "kept") -> int:
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, through_seq, text)
    version = store.apply(conversation.pk, token, base, draft, TRANSCRIPT)
    assert version is not None
    return version


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Run them at the same time, each with a connection of its own; their results in order."""
    results: list[Any] = [None] * len(functions)
    barrier = threading.Barrier(len(functions))

    def run(position: int, function: Callable[[], Any]) -> None:
        try:
            barrier.wait(timeout=30)
            results[position] = function()
        except Exception as error:
            results[position] = error
        finally:
            connection.close()

    workers = [threading.Thread(target=run, args=pair) for pair in enumerate(functions)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    return results


def test_it_works() -> None:
    conversation = new_conversation(10)

    version = compress(conversation, 6, "finish the report")

    row = stored(conversation)
    assert version == row.compression_version == 1
    assert row.compressed_through == 6
    assert "finish the report" in row.compressed_context
    assert row.compression_token == ""
    assert row.compressed_at is not None
    [summary] = rows(conversation)
    assert (summary.version, summary.parent, summary.status) == (1, 0, "active")
    base, items = store.read(conversation.pk, TRANSCRIPT)
    assert base.ledger == ledger_saying("finish the report")
    assert [item.seq for item in items] == [7, 8, 9, 10]


# --- leases ------------------------------------------------------------------------------------


@threads
def test_i10_only_one_of_many_claims_at_once_succeeds() -> None:
    """I10, C02: one lease a conversation.

    Breaks when: claim() leaves out filter(free()).
    """
    conversation = new_conversation(2)

    def attempt() -> str | None:
        return store.claim(conversation.pk, trigger=Trigger.MANUAL, locks_input=True)

    tokens = in_threads(*[attempt] * 12)

    won = [token for token in tokens if isinstance(token, str)]
    assert len(won) == 1
    assert tokens.count(None) == 11
    assert stored(conversation).compression_token == won[0]


@pytest.mark.parametrize("without_expiry", [False, True])
def test_i10_a_lease_nobody_renews_heals_by_itself(without_expiry: bool) -> None:
    """I10, C17: a crash, or a restored database, locks for a lease's time at most.

    Breaks when: free() looks at the token alone, or forgets a token without an expiry.
    """
    conversation = new_conversation(2)
    token = claim(conversation)
    assert store.compression_state(stored(conversation)).running

    expire_lease(conversation)
    if without_expiry:
        Conversation.objects.update(compression_lease_expires_at=None)

    assert not store.compression_state(stored(conversation)).running
    assert not store.read_state(conversation.pk).running
    second = claim(conversation)
    assert not store.renew(conversation.pk, token)
    assert not store.release(conversation.pk, token)
    assert store.renew(conversation.pk, second)


def test_c17_what_nobody_lives_to_hold_is_free_at_once() -> None:
    """Every lease, whoever held it; what has none is not touched.

    Breaks when: release_all() waits for the leases to expire.
    """
    held, free = new_conversation(2), new_conversation(2)
    token = claim(held)
    untouched = stored(free)
    assert store.release_all() == 1
    assert store.release_all() == 0
    assert not store.renew(held.pk, token)
    assert store.compression_state(stored(held)).died is Trigger.THRESHOLD
    second = claim(held)
    assert store.compression_state(stored(held)).died is None
    assert store.release(held.pk, second)
    assert store.compression_state(stored(held)) == store.CompressionState()
    assert stored(free).event_no == untouched.event_no


@pytest.mark.parametrize("minutes", [-5, 5])
def test_c18_a_worker_with_a_wrong_clock_neither_takes_nor_loses_a_lease(
    monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    """I10, C18: leases are judged by the database's clock alone.

    Breaks when: _expiry() or free() uses timezone.now() instead of Now().
    """
    conversation = new_conversation(2)
    real = timezone.now
    with monkeypatch.context() as wrong:
        wrong.setattr(timezone, "now", lambda: real() + timedelta(minutes=minutes))
        token = claim(conversation)
        assert store.renew(conversation.pk, token)
    wrong_way = -minutes
    with monkeypatch.context() as wrong:
        wrong.setattr(timezone, "now", lambda: real() + timedelta(minutes=wrong_way))
        assert store.claim(conversation.pk, trigger=Trigger.MANUAL, locks_input=True) is None
        assert store.compression_state(stored(conversation)).running
    expires = stored(conversation).compression_lease_expires_at
    assert expires is not None
    assert real() < expires < real() + timedelta(seconds=31)


def test_the_state_says_what_runs() -> None:
    conversation = new_conversation(2)
    assert store.compression_state(conversation) == store.CompressionState()

    store.claim(conversation.pk, trigger=Trigger.BACKGROUND, locks_input=False)
    state = store.compression_state(stored(conversation))

    assert (state.running, state.trigger, state.locks_input) == (True, Trigger.BACKGROUND, False)
    assert state.started_at is not None
    assert store.read_state(conversation.pk) == state


def test_a_background_run_is_promoted_and_no_other() -> None:
    conversation = new_conversation(2)

    def promote() -> bool:
        return store.promote(conversation.pk, trigger=Trigger.THRESHOLD, locks_input=True)

    assert not promote()
    token = store.claim(conversation.pk, trigger=Trigger.BACKGROUND, locks_input=False)
    assert token is not None
    assert promote()
    assert store.lease_trigger(conversation.pk, token) is Trigger.THRESHOLD
    assert stored(conversation).compression_locks_input
    assert not promote()
    store.release(conversation.pk, token)
    assert store.lease_trigger(conversation.pk, token) is None


def test_cancelling_takes_the_lease_from_whoever_holds_it() -> None:
    conversation = new_conversation(2)
    assert not store.cancel(conversation.pk)
    token = claim(conversation)
    assert store.cancel(conversation.pk)
    assert not store.renew(conversation.pk, token)
    assert conversation.summaries.get().reason == CompressionCancelled.default_message


def test_who_cancels_what_has_died_is_not_told_of_as_its_cause() -> None:
    conversation = new_conversation(2)
    claim(conversation)
    expire_lease(conversation)
    assert store.cancel(conversation.pk)
    assert not conversation.summaries.exists()


def test_every_visible_change_is_an_event_of_the_conversation() -> None:
    conversation = new_conversation(10)
    numbers = [stored(conversation).event_no]

    def changed(action: Callable[[], Any]) -> bool:
        action()
        numbers.append(stored(conversation).event_no)
        return numbers[-1] > numbers[-2]

    token = claim(conversation)
    numbers.append(stored(conversation).event_no)
    assert numbers[-1] > numbers[-2]
    assert not changed(lambda: store.renew(conversation.pk, token))
    assert changed(lambda: store.release(conversation.pk, token))
    assert not changed(lambda: store.release(conversation.pk, token))
    assert changed(lambda: compress(conversation, 4))
    assert changed(lambda: store.undo(conversation.pk, author_id=None, transcript=TRANSCRIPT))


# --- applying ----------------------------------------------------------------------------------


@threads
def test_i9_summary_boundary_and_version_are_of_one_commit() -> None:
    """I9: a reader during many compressions sees only whole versions.

    Breaks when: apply() writes text and boundary in two transactions.
    """
    conversation = new_conversation(40, words=3)
    stop = threading.Event()

    def compressing() -> None:
        try:
            for through_seq in range(2, 40, 2):
                compress(conversation, through_seq, f"until {through_seq}")
        finally:
            stop.set()

    def reading() -> list[tuple[str, int, int]]:
        seen = []
        while not stop.is_set():
            base, items = store.read(conversation.pk, TRANSCRIPT)
            first = items[0].seq if items else 0
            seen.append((base.text, base.boundary, first))
        return seen

    failed, seen = in_threads(compressing, reading)

    assert failed is None
    assert len(seen) > 5
    for text, boundary, first in seen:
        assert boundary == 0 or f"until {boundary}" in text
        assert first == boundary + 1


def test_c01_a_message_between_reading_and_committing_is_in_the_tail() -> None:
    """I8, C01: nothing that arrives meanwhile is lost.

    Breaks when: apply() puts the boundary at the last seq instead of the span's.
    """
    conversation = new_conversation(10)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 10)

    late = add(conversation, "user", "and one more thing")
    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) == 1

    _, tail = store.read(conversation.pk, TRANSCRIPT)
    assert [item.seq for item in tail] == [late.seq]


def test_c06_equal_and_backward_timestamps_change_nothing() -> None:
    """I8, C06: seq alone decides what a summary stands for.

    Breaks when: the boundary, or what lies behind it, is found by created_at.
    """
    conversation = new_conversation(8)
    now = timezone.now()
    Message.objects.filter(conversation=conversation).update(created_at=now)
    Message.objects.filter(conversation=conversation, seq__gt=5).update(
        created_at=now - timedelta(hours=1)
    )

    compress(conversation, 4)

    _, tail = store.read(conversation.pk, TRANSCRIPT)
    assert [item.seq for item in tail] == [5, 6, 7, 8]


@threads
def test_c07_a_row_that_commits_after_the_boundary_was_read_is_not_lost() -> None:
    """I8, C07: a message inserted before, and committed after, the summary's commit.

    Breaks when: the boundary is a global id or a time instead of the conversation's seq.
    """
    conversation = new_conversation(8)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 8)
    inserted, applying = threading.Event(), threading.Event()

    def slow_writer() -> int:
        with transaction.atomic():
            message = add(conversation, "user", "slow to commit")
            inserted.set()
            assert applying.wait(timeout=30)
        return message.seq

    def applier() -> int | None:
        assert inserted.wait(timeout=30)
        applying.set()
        return store.apply(conversation.pk, token, base, draft, TRANSCRIPT)

    seq, version = in_threads(slow_writer, applier)

    assert (seq, version) == (9, 1)
    _, tail = store.read(conversation.pk, TRANSCRIPT)
    assert [item.seq for item in tail] == [9]


def test_c04_a_late_result_is_dropped_after_a_takeover() -> None:
    """I10, I11, C04: the first worker returns after the second has claimed, or has finished.

    Breaks when: apply() leaves out the token or the version of its WHERE.
    """
    conversation = new_conversation(10)
    late_token = claim(conversation)
    late_base, _ = store.read(conversation.pk, TRANSCRIPT)
    late = fit(conversation, late_base, 8, "late")

    expire_lease(conversation)
    token = claim(conversation)
    assert store.apply(conversation.pk, late_token, late_base, late, TRANSCRIPT) is None
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    timely = fit(conversation, base, 6, "in time")
    assert store.apply(conversation.pk, token, base, timely, TRANSCRIPT) == 1
    third = claim(conversation)
    assert store.apply(conversation.pk, late_token, late_base, late, TRANSCRIPT) is None
    assert store.apply(conversation.pk, third, late_base, late, TRANSCRIPT) is None

    assert "in time" in stored(conversation).compressed_context
    assert len(rows(conversation)) == 1


class CrashingTranscript:
    """Dies where the store reads messages inside the transaction that writes."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        raise SystemExit("killed")


def test_c03_a_crash_leaves_old_rows_or_new_ones_never_a_mixture() -> None:
    """I9, I11, C03: killed after the claim, during the call, while committing, after the commit.

    Breaks when: apply() is not one transaction.
    """
    conversation = new_conversation(10)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 6)
    assert add(conversation, "user").seq == 11  # sends work at once

    with pytest.raises(SystemExit):
        store.apply(conversation.pk, token, base, draft, CrashingTranscript())
    row = stored(conversation)
    assert (row.compression_version, row.compressed_through, row.compressed_context) == (0, 0, "")
    assert rows(conversation) == []

    expire_lease(conversation)
    assert compress(conversation, 8, "after the crash") == 1
    # Killed after the commit: what a reader finds is whole, and the next run goes on from it.
    assert compress(conversation, 10, "and on") == 2


def test_i14_a_message_superseded_meanwhile_stops_the_draft() -> None:
    """I14, C09: text that was taken back never enters a summary.

    Breaks when: apply() leaves out require_source().
    """
    conversation = new_conversation(10)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 8)
    supersede(conversation, 7)

    with pytest.raises(StaleSource):
        store.apply(conversation.pk, token, base, draft, TRANSCRIPT)

    assert stored(conversation).compression_version == 0
    assert rows(conversation) == []
    assert store.renew(conversation.pk, token)


def test_c10_nothing_is_written_to_a_deleted_conversation() -> None:
    """I31, C10: deletion while a draft is made.

    Breaks when: renew(), apply() or record_attempt() uses conversations() for writable().
    """
    conversation = new_conversation(10)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 8)
    Conversation.objects.filter(pk=conversation.pk).update(deleted_at=timezone.now())

    def attempts() -> None:
        assert not store.renew(conversation.pk, token)
        assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) is None
        record(conversation, base)
        assert store.claim(conversation.pk, trigger=Trigger.MANUAL, locks_input=True) is None
        assert Summary.objects.count() == 0

    attempts()
    get_user_model().objects.all().delete()
    attempts()
    assert not store.release(conversation.pk, token)


def test_texts_that_a_database_cannot_hold_are_made_storable() -> None:
    """I28: NUL and lone surrogates from a model, alike on both databases."""
    conversation = new_conversation(4)
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 2, "bad \x00 and \ud800 here")
    draft = replace(draft, audit={"missing": ["\x00", {"deep": "\udfff"}]})

    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) == 1

    [version] = store.versions(conversation.pk)
    assert version.ledger.entries[0].text == "bad \ufffd and ? here"
    assert version.audit == {"missing": ["\ufffd", {"deep": "?"}]}
    assert version.text == stored(conversation).compressed_context


def test_a_new_boundary_ends_the_truncation() -> None:
    conversation = new_conversation(10)
    Conversation.objects.update(truncated_through=4)
    compress(conversation, 6)
    assert stored(conversation).truncated_through == 0


# --- prepared drafts ---------------------------------------------------------------------------


def prepare(conversation: Conversation, through_seq: int, frees: float = 0.4) -> bool | None:
    token = claim(conversation, Trigger.BACKGROUND)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = replace(
        fit(conversation, base, through_seq, f"ready until {through_seq}"),
        trigger=Trigger.BACKGROUND,
        usage_before=0.9,
        usage_after=0.9 - frees,
    )
    return store.save_ready(conversation.pk, token, base, draft)


def apply_ready(conversation: Conversation) -> int | None:
    prepared = store.ready(conversation.pk)
    assert prepared is not None
    return store.apply_ready(
        conversation.pk, prepared, TRANSCRIPT, usage_before=0.9, usage_after=0.5
    )


def test_a_prepared_draft_is_applied_without_a_model() -> None:
    conversation = new_conversation(10)
    assert prepare(conversation, 6) is True
    assert stored(conversation).compressed_context == ""
    assert not store.read_state(conversation.pk).running

    assert apply_ready(conversation) == 1

    row = stored(conversation)
    assert (row.compressed_through, row.compression_version) == (6, 1)
    [version] = store.versions(conversation.pk)
    assert (version.status, version.trigger) == (SummaryStatus.ACTIVE, Trigger.BACKGROUND)
    assert version.text == row.compressed_context
    assert store.ready(conversation.pk) is None


def test_at_most_one_draft_is_ready_and_only_a_better_one_replaces_it() -> None:
    conversation = new_conversation(10)
    assert prepare(conversation, 6, frees=0.30) is True
    assert prepare(conversation, 8, frees=0.35) is False
    found = store.ready(conversation.pk)
    assert found is not None
    assert found.through_seq == 6
    assert prepare(conversation, 8, frees=0.41) is True
    found = store.ready(conversation.pk)
    assert found is not None
    assert found.through_seq == 8
    assert [row.status for row in rows(conversation)] == ["discarded", "discarded", "ready"]


def test_i14_a_prepared_draft_dies_with_its_source() -> None:
    """I14: a message of the prepared span is superseded before the draft is applied.

    Breaks when: apply_ready() leaves out require_source().
    """
    conversation = new_conversation(10)
    prepare(conversation, 6)
    supersede(conversation, 3)

    assert apply_ready(conversation) is None

    assert stored(conversation).compression_version == 0
    assert [row.status for row in rows(conversation)] == ["discarded"]
    assert store.read_ready(conversation.pk, TRANSCRIPT) is None


def test_a_prepared_draft_loses_its_parent() -> None:
    conversation = new_conversation(10)
    prepare(conversation, 6)
    prepared = store.ready(conversation.pk)
    assert prepared is not None
    compress(conversation, 4)

    assert store.ready(conversation.pk) is None
    late = store.apply_ready(
        conversation.pk, prepared, TRANSCRIPT, usage_before=0.9, usage_after=0.5
    )
    assert late is None
    assert stored(conversation).compression_version == 1


def test_a_prepared_draft_wins_over_a_background_run_and_waits_for_a_locking_one() -> None:
    conversation = new_conversation(10)
    prepare(conversation, 6)
    locking = claim(conversation)
    assert apply_ready(conversation) is None
    store.release(conversation.pk, locking)
    background = claim(conversation, Trigger.BACKGROUND)

    assert apply_ready(conversation) == 1

    assert not store.renew(conversation.pk, background)


def test_a_promoted_run_does_not_put_its_draft_aside() -> None:
    conversation = new_conversation(10)
    token = claim(conversation, Trigger.BACKGROUND)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    store.promote(conversation.pk, trigger=Trigger.THRESHOLD, locks_input=True)
    draft = fit(conversation, base, 6)

    assert store.save_ready(conversation.pk, token, base, draft) is None
    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) == 1


# --- the breaker -------------------------------------------------------------------------------


def record(
    conversation: Conversation,
    base: Base,
    *,
    final: bool = True,
    fruitless: bool = False,
    trigger: Trigger = Trigger.THRESHOLD,
) -> None:
    store.record_attempt(
        conversation.pk,
        run="run",
        status=SummaryStatus.REJECTED,
        trigger=trigger,
        reason="The model's summary was empty.",
        base=base,
        final=final,
        fruitless=fruitless,
        tail_tokens=700,
    )


def test_the_breaker_counts_runs_since_the_last_success() -> None:
    conversation = new_conversation(10)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    assert store.breaker(conversation.pk) == store.Breaker()

    record(conversation, base, final=False)
    record(conversation, base, trigger=Trigger.BACKGROUND)
    record(conversation, base, fruitless=True)
    assert store.breaker(conversation.pk) == store.Breaker(
        fruitless=1, failures=1, waited=1, tail_tokens=700, reason="The model's summary was empty."
    )

    compress(conversation, 6)
    assert store.breaker(conversation.pk) == store.Breaker()
    assert len(store.versions(conversation.pk)) == 1
    assert len(store.versions(conversation.pk, attempts=True)) == 4


def test_putting_a_prepared_draft_in_place_is_a_success() -> None:
    """Breaks when: breaker() tells before from after by the rows' ids alone."""
    conversation = new_conversation(10)
    assert prepare(conversation, 6) is True
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    for _ in range(3):
        record(conversation, base)
    assert store.breaker(conversation.pk).failures == 3

    assert apply_ready(conversation) == 1
    assert store.breaker(conversation.pk) == store.Breaker()


# --- versions ----------------------------------------------------------------------------------


def undo(conversation: Conversation) -> int:
    return store.undo(conversation.pk, author_id=None, transcript=TRANSCRIPT)


def redo(conversation: Conversation) -> int:
    return store.redo(conversation.pk, author_id=None, transcript=TRANSCRIPT)


def said(conversation: Conversation) -> str:
    text = stored(conversation).compressed_context
    return next((word for word in ("first", "second", "third") if word in text), "")


def test_undo_walks_back_and_redo_forward() -> None:
    conversation = new_conversation(12)
    for through_seq, text in ((4, "first"), (6, "second"), (8, "third")):
        compress(conversation, through_seq, text)
    with pytest.raises(NothingToUndo):
        redo(conversation)

    walk = [(undo, "second", 6), (undo, "first", 4), (undo, "", 0), (redo, "first", 4)]
    walk += [(redo, "second", 6), (redo, "third", 8), (undo, "second", 6)]
    for number, (step, text, boundary) in enumerate(walk, start=4):
        assert step(conversation) == number
        assert said(conversation) == text
        assert stored(conversation).compressed_through == boundary
        # Nothing is compressed where there is neither a summary nor a boundary.
        assert (stored(conversation).compressed_at is None) is (boundary == 0)
    assert store.undone(conversation.pk)
    assert store.redoes(conversation.pk) is Trigger.THRESHOLD

    compress(conversation, 10, "third")
    assert not store.undone(conversation.pk)
    with pytest.raises(NothingToUndo):
        redo(conversation)
    undo(conversation)
    assert said(conversation) == "second"
    redo(conversation)
    assert stored(conversation).compressed_through == 10


def test_there_is_an_end_to_undoing() -> None:
    conversation = new_conversation(6)
    with pytest.raises(NothingToUndo):
        undo(conversation)
    compress(conversation, 4)
    undo(conversation)
    with pytest.raises(NothingToUndo):
        undo(conversation)
    assert [row.status for row in rows(conversation)] == ["superseded", "active"]


def test_i12_undo_gives_every_message_back() -> None:
    """I12: compression and undo leave the originals as they were.

    Breaks when: anything of compression writes to messages.
    """
    conversation = new_conversation(10)
    before = list(Message.objects.order_by("seq").values())
    compress(conversation, 8)
    undo(conversation)
    assert list(Message.objects.order_by("seq").values()) == before
    _, items = store.read(conversation.pk, TRANSCRIPT)
    assert len(items) == 10


@pytest.mark.parametrize("seq", [2, 6])
def test_i14_a_version_whose_source_was_taken_back_does_not_return(seq: int) -> None:
    """I14, C09: superseded below its own span or an ancestor's, after an undo.

    Breaks when: fingerprint_matches() looks at the version's own span only, or at none.
    """
    conversation = new_conversation(10)
    compress(conversation, 4, "first")
    compress(conversation, 8, "second")
    undo(conversation)
    undo(conversation)
    supersede(conversation, seq)

    with pytest.raises(StaleSource) as caught:
        store.restore(conversation.pk, 2, author_id=None, transcript=TRANSCRIPT)

    assert "second" in caught.value.fields["submitted_text"]
    assert stored(conversation).compressed_context == ""


def test_a_restored_version_names_its_author_and_origin() -> None:
    conversation = new_conversation(10)
    compress(conversation, 4, "first")
    compress(conversation, 8, "second")
    author = conversation.owner_id

    version = store.restore(conversation.pk, 1, author_id=author, transcript=TRANSCRIPT)

    newest = store.versions(conversation.pk)[0]
    assert (newest.version, newest.restored_from, newest.parent) == (version, 1, 0)
    assert (newest.author_id, newest.trigger) == (author, Trigger.RESTORE)
    with pytest.raises(StaleVersion):
        store.restore(conversation.pk, 99, author_id=author, transcript=TRANSCRIPT)


def test_c11_a_persons_edit_wins_over_a_draft_under_way() -> None:
    """I13, C11: an edit while the machine drafts; then two people at once.

    Breaks when: apply() leaves the version, or edit() the base's version, out of its WHERE.
    """
    conversation = new_conversation(10)
    compress(conversation, 4, "first")
    token = claim(conversation)
    base, _ = store.read(conversation.pk, TRANSCRIPT)
    draft = fit(conversation, base, 8, "second")
    ledger = ledger_saying("third")

    edited = store.edit(base, render(ledger), ledger, author_id=None, summary_tokens=9)
    assert edited == 2
    assert store.apply(conversation.pk, token, base, draft, TRANSCRIPT) is None
    with pytest.raises(StaleVersion) as caught:
        store.edit(base, "mine", ledger, author_id=None, summary_tokens=9)

    assert caught.value.fields["submitted_text"] == "mine"
    assert "third" in caught.value.fields["current_text"]
    assert said(conversation) == "third"
    assert stored(conversation).compressed_through == 4
    undo(conversation)
    assert said(conversation) == "first"


def test_clear_moves_the_boundary_behind_the_last_ended_turn_and_is_undoable() -> None:
    conversation = new_conversation(6)
    compress(conversation, 4, "first")
    turn = open_turn(conversation)
    add(conversation, "user", turn=turn)

    store.clear(conversation.pk, author_id=None, transcript=TRANSCRIPT)

    row = stored(conversation)
    assert (row.compressed_context, row.compressed_through) == ("", 6)
    base, items = store.read(conversation.pk, TRANSCRIPT)
    assert base.ledger == Ledger()
    assert [item.seq for item in items] == [7]
    undo(conversation)
    assert said(conversation) == "first"
    assert stored(conversation).compressed_through == 4


def test_a_branch_takes_the_versions_that_lie_within_it() -> None:
    conversation = new_conversation(12)
    for through_seq, text in ((4, "first"), (6, "second"), (10, "third")):
        compress(conversation, through_seq, text)
    branch = new_conversation(8)

    assert store.copy_versions(conversation.pk, branch.pk, through_seq=8) == 2

    assert (said(branch), stored(branch).compressed_through) == ("second", 6)
    assert undo(branch) == 3
    assert said(branch) == "first"
    empty = new_conversation(2)
    assert store.copy_versions(conversation.pk, empty.pk, through_seq=2) == 0


def test_a_continuation_starts_with_the_summary_and_no_boundary() -> None:
    conversation = new_conversation(12)
    compress(conversation, 4, "first")
    base = store.read_base(conversation.pk)
    target = new_conversation(2)

    store.carry_over(target.pk, base, summary_tokens=10, author_id=None)

    assert (said(target), stored(target).compressed_through) == ("first", 0)
    assert store.read_base(target.pk).ledger == base.ledger
    compress(target, 2, "second")
    undo(target)
    assert said(target) == "first"


def test_a_masked_tool_result_is_still_the_same_source() -> None:
    before = Item(seq=1, role="tool", text="214 lines", tool_call_id="call", tokens=9)
    after = replace(before, text="[result masked]", masked=True)
    assert store.fingerprint([before]) == store.fingerprint([after])
    assert store.fingerprint([before]) != store.fingerprint([replace(before, seq=2)])
    assert store.fingerprint([]) == ""


def test_the_same_text_split_otherwise_has_another_fingerprint() -> None:
    one = [Item(seq=1, role="user", text='a"], [2, "b', tokens=1)]
    two = [
        Item(seq=1, role="user", text="a", tokens=1),
        Item(seq=2, role="user", text="b", tokens=1),
    ]
    assert store.fingerprint(one) != store.fingerprint(two)
