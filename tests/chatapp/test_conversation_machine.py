"""Whatever people, models and crashes do to a conversation, in whatever order: I8 to I18 hold."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chatapp.context.tokens import message_tokens
from chatapp.conversations import branching
from chatapp.conversations.messages import pins
from chatapp.conversations.turns import replacing, sending
from chatapp.llm.profiles import Profile
from chatapp.models import Conversation, Message, TurnStatus
from compression import services, store
from compression.exceptions import (
    NothingToCompress,
    UserFacingError,
)
from compression.types import Trigger
from tests.chatapp.conversation_actor import COUNTER, PROCESS_ID, TRANSCRIPT, Actor
from tests.chatapp.conversation_oracle import MOST_CALIBRATION, RULE, snapshot_of
from tests.chatapp.moody import MOOD_NAMES

MOODS = st.sampled_from(MOOD_NAMES + ("good",) * 5)
# Mostly near the end, where most things may still be taken back.
BACK = st.integers(0, 12) | st.integers(0, 400)


class Conversations(Actor, RuleBasedStateMachine):
    """The rules: what may happen next, in any order."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Actor.__init__(self)

    def teardown(self) -> None:
        self.runner.close()

    # --- talking -------------------------------------------------------------------------------

    @initialize(turns=st.integers(0, 14))
    def as_it_was_found(self, turns: int) -> None:
        self.fill(turns)

    @precondition(lambda self: self.opened is None)
    @rule(
        turns=st.integers(2, 7),
        words=st.integers(20, 90),
        whats=st.lists(st.sampled_from(["", "rule", "lift"]), min_size=1, max_size=3),
        moods=st.lists(MOODS, min_size=1, max_size=3),
    )
    def talk(self, turns: int, words: int, whats: list[str], moods: list[str]) -> None:
        for number in range(turns):
            what, mood = whats[number % len(whats)], moods[number % len(moods)]
            self.send(words, words + 30, what, TurnStatus.COMPLETE, mood)
            self.everything_holds()

    @precondition(lambda self: self.opened is None)
    @rule(
        words=st.integers(1, 90),
        reply=st.integers(1, 120),
        what=st.sampled_from(["", "", "rule", "lift"]),
        status=st.sampled_from([TurnStatus.COMPLETE, TurnStatus.FAILED, TurnStatus.STOPPED]),
        mood=MOODS,
    )
    def send_one(self, words: int, reply: int, what: str, status: TurnStatus, mood: str) -> None:
        self.send(words, reply, what, status, mood)

    @precondition(lambda self: self.opened is None)
    @rule(words=st.integers(1, 60))
    def leave_open(self, words: int) -> None:
        self.opened = self.begin(self.text(words))

    @precondition(lambda self: self.opened is not None)
    @rule(words=st.integers(1, 60), mood=MOODS)
    def end_open(self, words: int, mood: str) -> None:
        assert self.opened is not None
        self.mood = mood
        self.answer(self.opened, words, TurnStatus.COMPLETE)
        queued = sending.accept_queued(
            self.row.pk,
            count=lambda text: message_tokens(COUNTER, text),
            model="model",
            process_id=PROCESS_ID,
        )
        if queued is not None:
            assert queued.message_seq is not None
            text = Message.objects.get(conversation=self.row, seq=queued.message_seq).text
            self.oracle.say(queued.message_seq, "user", text)
            self.answer(queued, words, TurnStatus.COMPLETE)

    @precondition(lambda self: self.opened is not None)
    @rule()
    def send_while_open(self) -> None:
        try:
            assert self.begin(self.text(9)) is None
        except UserFacingError:
            assert self.row.send_when_done

    @precondition(lambda self: self.opened is None)
    @rule(lines=st.sampled_from([2, 100, 400]))
    def use_a_tool(self, lines: int) -> None:
        """A whole turn with a call, as an import or a tool loop leaves it."""
        accepted = self.begin(self.text(4))
        assert accepted is not None
        call = {"id": f"call{accepted.reply_seq % 3}", "type": "function"}
        call["function"] = {"name": "look", "arguments": "{}"}  # type: ignore[assignment]
        said, result, reply = self.text(2), self.text(0) + "line\n" * lines, self.text(3)
        self.finish(accepted, said, TurnStatus.COMPLETE)
        with transaction.atomic():
            row = Conversation.objects.select_for_update().get(pk=self.row.pk)
            first = row.next_seq
            Conversation.objects.filter(pk=row.pk).update(
                next_seq=first + 2, event_no=row.event_no + 1
            )
            Message.objects.filter(pk=accepted.reply_id).update(
                tool_calls=[call], token_count=message_tokens(COUNTER, said, [call])
            )
            common = {"conversation": row, "turn_id": accepted.turn, "created_at": timezone.now()}
            Message.objects.create(
                seq=first,
                role="tool",
                text=result,
                tool_call_id=call["id"],
                tool_name="look",
                token_count=message_tokens(COUNTER, result),
                **common,
            )
            Message.objects.create(
                seq=first + 1,
                role="assistant",
                text=reply,
                token_count=message_tokens(COUNTER, reply),
                **common,
            )
        self.oracle.say(first, "tool", result, tool=True)
        self.oracle.say(first + 1, "assistant", reply)
        self.oracle.changes += 1

    # --- taking back ---------------------------------------------------------------------------

    @rule(data=st.data(), words=st.integers(1, 60), mood=MOODS)
    def regenerate(self, data: st.DataObject, words: int, mood: str) -> None:
        self.mood = mood
        seq = self.any_seq(data.draw(BACK))
        try:
            accepted = replacing.regenerate(
                self.person.pk, self.oracle.code, model="model", process_id=PROCESS_ID, seq=seq
            )
        except UserFacingError:
            return
        assert accepted.message_seq is not None
        self.oracle.supersede(accepted.message_seq + 1)
        self.answer(accepted, words, TurnStatus.COMPLETE)

    @rule(data=st.data(), words=st.integers(1, 60), mood=MOODS)
    def edit_message(self, data: st.DataObject, words: int, mood: str) -> None:
        self.mood = mood
        seq = self.any_seq(data.draw(BACK))
        text = self.text(words)
        try:
            accepted = replacing.edit(
                self.person.pk,
                self.oracle.code,
                seq,
                text=text,
                tokens=message_tokens(COUNTER, text),
                model="model",
                process_id=PROCESS_ID,
            )
        except UserFacingError:
            return
        assert accepted.message_seq is not None
        self.oracle.supersede(seq)
        self.oracle.say(accepted.message_seq, "user", text)
        self.answer(accepted, words, TurnStatus.COMPLETE)

    @rule(data=st.data(), on=st.booleans())
    def pin(self, data: st.DataObject, on: bool) -> None:
        seq = self.any_seq(data.draw(BACK))
        most = self.sizes(snapshot_of(self.oracle.code)).ruler(0.10)
        try:
            pins.pin(self.person.pk, self.oracle.code, seq, on=on, most_tokens=most)
        except UserFacingError:
            return
        (self.oracle.pinned.add if on else self.oracle.pinned.discard)(seq)

    # --- compressing ---------------------------------------------------------------------------

    @rule(data=st.data(), mood=MOODS, trigger=st.sampled_from([Trigger.MANUAL, Trigger.THRESHOLD]))
    def compress_now(self, data: st.DataObject, mood: str, trigger: Trigger) -> None:
        self.fill()
        before = self.row
        through = data.draw(st.sampled_from([None, None, before.next_seq // 2, before.next_seq]))
        try:
            outcome = self.run(self.compress(self.engine(mood), trigger, through_seq=through))
        except NothingToCompress:
            outcome = None
        if outcome is None or not outcome.success:
            self.check_unchanged(before)
            assert mood != "good" or outcome is None or outcome.reason

    @rule(mood=MOODS)
    def prepare_and_apply(self, mood: str) -> None:
        """What is prepared changes nothing until it is applied, and then at once."""
        self.fill()
        before = self.row
        sizes = self.sizes(snapshot_of(self.oracle.code))
        try:
            self.run(services.prepare(before.pk, engine=self.engine(mood), sizes=sizes))
        except UserFacingError:
            return
        self.check_unchanged(before)

    @rule(turns=st.integers(0, 6))
    def apply_ready(self, turns: int) -> None:
        self.fill(turns, share=0.9)
        sizes = self.sizes(snapshot_of(self.oracle.code))
        self.run(services.apply_ready(self.row.pk, engine=self.engine(), sizes=sizes))

    @rule()
    def crash_while_compressing(self) -> None:
        """I10: the lease of a process that died keeps nobody out once its time has passed."""
        token = store.claim(self.row.pk, trigger=Trigger.THRESHOLD, locks_input=True)
        assert token
        assert store.claim(self.row.pk, trigger=Trigger.MANUAL, locks_input=True) is None
        Conversation.objects.filter(pk=self.row.pk).update(
            compression_lease_expires_at=timezone.now() - timedelta(minutes=1)
        )

    @rule(
        data=st.data(),
        mood=MOODS,
        meanwhile=st.sampled_from(
            ["edit_message", "regenerate", "send", "edit_summary", "undo", "clear", "pin", "again"]
        ),
    )
    def compress_slowly(self, data: st.DataObject, mood: str, meanwhile: str) -> None:
        """I10, I11, I13, I14: whatever happens while the summariser writes."""
        self.fill()
        before = self.row
        self.run(self.overlap(self.meanwhile(self.any_seq(data.draw(BACK)), meanwhile), mood))
        self.oracle.check_rows(self.row)
        assert self.row.compression_version <= before.compression_version + 2

    # --- a person and the summary --------------------------------------------------------------

    @rule(number=st.integers(1, 5))
    def edit_summary(self, number: int) -> None:
        self.write_summary(f"- Say p{number}, always.\n")

    @rule(data=st.data())
    def strike_a_rule(self, data: st.DataObject) -> None:
        """A person takes a constraint out: the one other way in which it ends."""
        row = self.row
        found = RULE.findall(row.compressed_context)
        if not found:
            return
        gone = data.draw(st.sampled_from(found))
        lines = row.compressed_context.splitlines()
        text = "\n".join(line for line in lines if gone not in line)
        edit = services.edit(
            row.pk,
            text,
            expected_version=row.compression_version,
            author_id=self.person.pk,
            counter=COUNTER,
            sizes=self.sizes(snapshot_of(self.oracle.code)),
        )
        try:
            self.run(edit)
        except UserFacingError:
            self.check_unchanged(row)

    @rule(what=st.sampled_from(["undo", "redo", "clear", "restore"]), data=st.data())
    def walk(self, what: str, data: st.DataObject) -> None:
        row = self.row
        who: dict[str, Any] = {"transcript": TRANSCRIPT, "author_id": self.person.pk}
        work: Coroutine[Any, Any, int]
        if what == "restore":
            version = data.draw(st.integers(0, row.compression_version))
            work = services.restore(row.pk, version, **who)
        else:
            work = getattr(services, what)(row.pk, **who)
        try:
            self.run(work)
        except UserFacingError:
            self.check_unchanged(row)

    @precondition(lambda self: self.opened is None and len(self.others) < 3)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        if not self.oracle.messages:
            return
        seq = self.any_seq(data.draw(BACK))
        if seq not in self.oracle.messages:
            return
        code = branching.branch(self.person.pk, self.oracle.code, seq)
        self.others.append(self.oracle)
        self.oracle = self.oracle.branch(code, seq)

    @rule(
        window=st.sampled_from([1600, 2400, 4000]),
        calibration=st.sampled_from([0.8, 1.1, MOST_CALIBRATION]),
    )
    def switch_model(self, window: int, calibration: float) -> None:
        self.profile = Profile(name="model", window=window, calibration=calibration)

    # --- always --------------------------------------------------------------------------------

    @invariant()
    def always(self) -> None:
        self.everything_holds()


def check(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Conversations,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.storage
# The steps are chosen by chance: some runs take five times as long as others.
@pytest.mark.timeout(400)
@pytest.mark.django_db(transaction=True)
def test_i8_to_i18_hold_at_every_step() -> None:
    """I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18; C01, C09, C15, C16.

    Breaks when: ``require_source`` is left out of apply(), ``superseded_at`` out of live(), the
    fingerprint out of _restore(), the boundary out of _must_be_free(), the constraints out of
    judge(), the new boundary is not the span's end, or a change of what the model sees (a pin, a
    mask, an edit, a turn's end …) leaves ``event_no`` as it was.
    """
    check(examples=8, steps=20)


@pytest.mark.storage
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.django_db(transaction=True)
def test_i8_to_i18_hold_at_every_step_of_many() -> None:
    """I8 to I18, as above, longer.

    Breaks when: as above.
    """
    check(examples=400, steps=60)
