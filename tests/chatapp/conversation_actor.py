"""One person who talks, takes back, compresses and edits, and what must follow of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from django.contrib.auth.models import User

from chatapp.context.request import ConversationSnapshot, build_request, request_sizes
from chatapp.context.tokens import message_tokens
from chatapp.conversations import lifecycle
from chatapp.conversations.messages import kept, pins
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.turns import progress, replacing, sending
from chatapp.llm.profiles import Profile
from chatapp.models import Conversation, TurnStatus
from chatapp.turns import fitting
from chatapp.turns.fitting import FittingDeps
from compression import services, store
from compression.database import in_database_thread
from compression.engine import Engine
from compression.exceptions import CompressionRunning, NothingToCompress, UserFacingError
from compression.ledger.editing import apply_edit
from compression.ledger.ledger import render
from compression.tokens import CharacterCounter
from compression.types import Outcome, Sizes, Trigger
from tests.chatapp.conversation_oracle import Oracle, snapshot_of
from tests.chatapp.moody import Moody
from tests.chatapp.talking import by

R = TypeVar("R")
COUNTER = CharacterCounter()
TRANSCRIPT = StoredTranscript()
PROCESS_ID = "this process"
_names = itertools.count()


class Actor:
    """One person, one conversation at a time, a model of changing window, moody summarisers."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.person = User.objects.create_user(f"person {next(_names)}")
        self.oracle = Oracle(code=lifecycle.create(self.person.pk))
        self.others: list[Oracle] = []
        self.marks = itertools.count(1)
        self.numbers = itertools.count(1)
        self.profile = Profile(name="model", window=2400, calibration=1.1)
        self.mood = "good"
        self.opened: sending.Accepted | None = None

    @property
    def row(self) -> Conversation:
        return Conversation.objects.get(code=self.oracle.code)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(work)

    def text(self, words: int, extra: str = "") -> str:
        return f"m{next(self.marks)} {extra} " + "word " * words

    def engine(self, mood: str = "", gate: asyncio.Event | None = None) -> Engine:
        moody = Moody(mood=mood or self.mood, gate=gate)
        return Engine(
            transcript=TRANSCRIPT, masks=StoredMasks(), counter=COUNTER, summarizers=(moody,)
        )

    def deps(self) -> FittingDeps:
        async def changed() -> None:
            return None

        return FittingDeps(
            profile=self.profile,
            counter=COUNTER,
            changed=changed,
            engine_for=lambda profile: self.engine(),
        )

    def sizes(self, snapshot: ConversationSnapshot) -> Sizes:
        profile = self.profile
        return request_sizes(
            snapshot,
            COUNTER,
            window=profile.window,
            reserve=profile.reserve,
            calibration=profile.calibration,
        )

    def answer(self, accepted: sending.Accepted, words: int, status: TurnStatus) -> None:
        """Make the request of a turn that was begun, check it, and end the turn."""
        self.oracle.say(accepted.reply_seq, "assistant", "")
        try:
            prepared = self.run(fitting.prepare(accepted.conversation_id, self.deps()))
        except UserFacingError:
            self.finish(accepted, "", TurnStatus.BLOCKED)
            return
        self.oracle.check_versions(self.row)
        self.oracle.check_request(
            prepared.snapshot,
            prepared.request,
            counter=COUNTER,
            calibration=self.profile.calibration,
            fits=True,
        )
        text = self.text(words) if status in {TurnStatus.COMPLETE, TurnStatus.STOPPED} else ""
        self.finish(accepted, text, status)

    def finish(self, accepted: sending.Accepted, text: str, status: TurnStatus) -> None:
        tokens = message_tokens(COUNTER, text) if text else 0
        ending = progress.Ending(status=status, text=text, tokens=tokens)
        assert progress.finish(PROCESS_ID, accepted.turn, accepted.reply_id, ending) is not None
        self.oracle.say(accepted.reply_seq, "assistant", text)
        self.opened = None

    def begin(self, text: str) -> sending.Accepted | None:
        """Send; None when a turn is open."""
        accepted = sending.accept(
            self.person.pk,
            self.oracle.code,
            text=text,
            client_msg_id=uuid.uuid4(),
            tokens=message_tokens(COUNTER, text),
            admit=by("model"),
            process_id=PROCESS_ID,
        )
        if isinstance(accepted, sending.Queued):
            return None
        assert accepted.message_seq is not None
        self.oracle.say(accepted.message_seq, "user", text)
        self.oracle.say(accepted.reply_seq, "assistant", "")
        return accepted

    def fill(
        self, turns: int = 30, share: float = 0.6, *, rules: bool = True, words: int = 70
    ) -> None:
        """So many turns, or until there is something to compress, without asking the policy."""
        while turns and self.opened is None:
            snapshot = snapshot_of(self.oracle.code)
            built = build_request(snapshot, self.sizes(snapshot))
            if built.usage.share >= share:
                return
            number = next(self.numbers)
            accepted = self.begin(
                self.text(words // 2, f"Rule r{number} holds, always." * (rules * number % 3))
            )
            assert accepted is not None
            self.finish(accepted, self.text(words), TurnStatus.COMPLETE)
            turns -= 1

    def send(self, words: int, reply: int, what: str, status: TurnStatus, mood: str) -> None:
        extra = {
            "": "",
            "rule": f"Rule r{next(self.numbers)} holds, always.",
            "lift": f"Forget rule r{max(1, words % 12)}, please.",
        }[what]
        self.mood = mood
        accepted = self.begin(self.text(words, extra))
        assert accepted is not None
        self.answer(accepted, reply, status)
        # There may be nothing worth preparing after all.
        with contextlib.suppress(UserFacingError):
            self.run(fitting.prepare_in_background(accepted.conversation_id, self.deps()))

    def any_seq(self, back: int) -> int:
        """The message so far from the end; 1 at least."""
        return max(1, self.row.next_seq - back)

    def compress(
        self, engine: Engine, trigger: Trigger, **more: Any
    ) -> Coroutine[Any, Any, Outcome]:
        sizes = self.sizes(snapshot_of(self.oracle.code))
        return services.compress(self.row.pk, engine=engine, sizes=sizes, trigger=trigger, **more)

    async def overlap(self, action: Callable[[], None], mood: str) -> None:
        gate = asyncio.Event()
        engine = self.engine(mood, gate)
        moody = engine.summarizers[0]
        assert isinstance(moody, Moody)
        work = await in_database_thread(lambda: self.compress(engine, Trigger.MANUAL))()
        run = asyncio.create_task(work)
        started = asyncio.create_task(moody.started.wait())
        await asyncio.wait({run, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if not run.done():
            await in_database_thread(action)()
        gate.set()
        with contextlib.suppress(NothingToCompress, CompressionRunning):
            await run

    def meanwhile(self, seq: int, what: str) -> Callable[[], None]:
        """What somebody does in another tab, without a request of its own."""
        text = self.text(12)

        def act() -> None:
            try:
                if what == "send" and self.opened is None:
                    self.opened = self.begin(text)
                elif what == "again":
                    assert (
                        store.claim(self.row.pk, trigger=Trigger.MANUAL, locks_input=True) is None
                    )
                elif what == "pin":
                    pins.pin(self.person.pk, self.oracle.code, seq, on=True, most_tokens=50)
                    self.oracle.pinned.add(seq)
                elif what == "edit_summary":
                    self.write_summary("- Say p0, always.\n")
                elif what == "undo":
                    store.undo(self.row.pk, author_id=self.person.pk, transcript=TRANSCRIPT)
                elif what == "clear":
                    store.clear(self.row.pk, author_id=self.person.pk, transcript=TRANSCRIPT)
                elif what in {"edit_message", "regenerate"}:
                    self.take_back(what, seq, text)
            except UserFacingError:
                pass

        return act

    def take_back(self, what: str, seq: int, text: str) -> None:
        user, code = self.person.pk, self.oracle.code
        if what == "edit_message":
            accepted = replacing.edit(
                user, code, seq, text=text, tokens=40, model="model", process_id=PROCESS_ID
            )
            assert accepted.message_seq is not None
            self.oracle.supersede(seq)
            self.oracle.say(accepted.message_seq, "user", text)
        else:
            accepted = replacing.regenerate(
                user, code, model="model", process_id=PROCESS_ID, seq=seq
            )
            assert accepted.message_seq is not None
            self.oracle.supersede(accepted.message_seq + 1)
        self.oracle.say(accepted.reply_seq, "assistant", "")
        self.opened = accepted

    def check_unchanged(self, before: Conversation) -> None:
        """I11: a run that came to nothing leaves summary, boundary and version alone."""
        after = self.row
        for name in ("compressed_context", "compressed_through", "compression_version"):
            assert getattr(after, name) == getattr(before, name)

    def write_summary(self, constraint: str) -> None:
        row = self.row
        text = row.compressed_context or "## Context\n- A person = wrote this"
        if "## Constraints\n" in text:
            text = text.replace("## Constraints\n", "## Constraints\n" + constraint, 1)
        else:
            text += "\n\n## Constraints\n" + constraint
        ledger = apply_edit(store.read_base(row.pk).ledger, text)
        rendered = render(ledger)
        store.edit(
            store.read_base(row.pk),
            rendered,
            ledger,
            author_id=self.person.pk,
            summary_tokens=COUNTER.count(rendered),
        )

    def everything_holds(self) -> None:
        row = self.row
        self.oracle.check_rows(row)
        self.oracle.check_versions(row)
        # What the process kept of an earlier step, as it would be used for the next message.
        known = kept.messages_of(row)
        kept.forget()
        assert known == kept.messages_of(row)
        snapshot = snapshot_of(self.oracle.code)
        request = build_request(snapshot, self.sizes(snapshot))
        self.oracle.check_request(
            snapshot, request, counter=COUNTER, calibration=self.profile.calibration, fits=False
        )
        masked = tuple(one.seq for one in snapshot.tail if one.masked)
        key = (snapshot.version, snapshot.truncated_through, masked, frozenset(self.oracle.pinned))
        self.oracle.check_prefix(key, request.messages)
