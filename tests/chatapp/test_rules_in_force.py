"""I18: what the user ruled once is in every later request, word for word, until it is lifted."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.context.request import build_request
from chatapp.conversations import branching
from chatapp.llm.profiles import Profile
from chatapp.models import TurnStatus
from compression import services, store
from compression.engine import Engine
from compression.exceptions import NothingToCompress, UserFacingError
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.types import Trigger
from tests.chatapp.conversation_actor import COUNTER, TRANSCRIPT, Actor
from tests.chatapp.conversation_oracle import snapshot_of

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "Rule r0 holds, always."
#: What :class:`tests.chatapp.moody.Moody` takes for a rule, and the extract too.
COMPRESSIONS = 20


class Talker(Actor):
    """Talks about nothing much, after one rule."""

    def __init__(self, *, extract: bool) -> None:
        super().__init__()
        self.extract = extract
        self.profile = Profile(name="model", window=8000, calibration=1.1)

    def engine(self, mood: str = "", gate: Any = None) -> Engine:
        """With the extract as the only method, if this talker has no model."""
        if not self.extract:
            return super().engine(mood, gate)
        return Engine(
            transcript=TRANSCRIPT, counter=COUNTER, extract=ExtractiveSummarizer(COUNTER, 300)
        )

    def small_talk(self) -> None:
        """Turns without any rule, until there is something to compress."""
        self.fill(share=0.7, rules=False, words=300)

    def exchange(self, text: str) -> None:
        accepted = self.begin(text)
        assert accepted is not None
        self.answer(accepted, 60, TurnStatus.COMPLETE)

    def compressed(self, mood: str) -> bool:
        try:
            return self.run(self.compress(self.engine(mood), Trigger.MANUAL)).success
        except NothingToCompress:
            return False

    def ruled(self) -> bool:
        """Whether the rule stands in the next request, as a constraint or as it was said."""
        snapshot = snapshot_of(self.oracle.code)
        built = build_request(snapshot, self.sizes(snapshot))
        if snapshot.boundary >= 1:
            return RULE in str(built.messages[0]["content"])
        return any(RULE in str(one["content"]) for one in built.messages[1:])


@pytest.fixture(params=[False, True], ids=["model", "extract"])
def talker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Talker(extract=request.param)
    # The extract keeps no markers, and the oracle counts them.
    if made.extract:
        for check in ("check_versions", "check_request"):
            monkeypatch.setattr(type(made.oracle), check, lambda *args, **more: None)
    yield made
    made.runner.close()


def test_i18_through_twenty_compressions_and_edits(talker: Talker) -> None:
    """I18, I13: good and bad summaries, edits, undo and redo, windows, a branch.

    Breaks when: ``evict`` may take constraints, judge() does not compare them with the version
    before, or ``apply_edit`` drops entries whose lines are still there.
    """
    talker.exchange(talker.text(20, RULE))
    done = 0
    moods = ["good", "forgets", "good", "empty", "good", "huge", "crash"]
    for number in range(4 * COMPRESSIONS):
        talker.small_talk()
        assert talker.ruled()
        done += talker.compressed(moods[number % len(moods)])
        assert talker.ruled()
        row = talker.row
        if done % 3 == 1 and row.compression_version:
            edit_another_line(talker, number)
        elif done % 5 == 2:
            walk(talker)
        window = (8000, 12_000, 10_000)[done % 3]
        talker.profile = Profile(name="model", window=window, calibration=1.1)
        assert talker.ruled()
        if done >= COMPRESSIONS:
            break
    assert done >= COMPRESSIONS
    code = branching.branch(talker.person.pk, talker.oracle.code, talker.row.next_seq - 1)
    snapshot = snapshot_of(code)
    built = build_request(snapshot, talker.sizes(snapshot))
    assert RULE in str(built.messages[0]["content"])


def edit_another_line(talker: Talker, number: int) -> None:
    """A person replaces the first line that they wrote themselves, and leaves the others."""
    row = talker.row
    lines = [line for line in row.compressed_context.splitlines() if "my own note" not in line]
    text = "\n".join(lines).replace("## Constraints\n", f"## Constraints\n- my own note {number}\n")
    edit = services.edit(
        row.pk,
        text,
        expected_version=row.compression_version,
        author_id=talker.person.pk,
        counter=COUNTER,
        sizes=talker.sizes(snapshot_of(talker.oracle.code)),
    )
    try:
        talker.run(edit)
    except UserFacingError:
        # The edit is too long for this window: then nothing has changed.
        assert talker.row.compression_version == row.compression_version


def walk(talker: Talker) -> None:
    """Undo and redo."""
    row = talker.row
    if not row.compression_version:
        return
    talker.run(services.undo(row.pk, transcript=TRANSCRIPT, author_id=talker.person.pk))
    assert talker.ruled()
    talker.run(services.redo(row.pk, transcript=TRANSCRIPT, author_id=talker.person.pk))
    assert talker.row.compressed_context == row.compressed_context


def test_i18_a_user_message_lifts_it() -> None:
    """I18: the user takes the rule back, and it is gone with the next compression, not before.

    Breaks when: ``_Merge.lift`` never lifts.
    """
    talker = Talker(extract=False)
    talker.exchange(talker.text(20, RULE))
    talker.small_talk()
    assert talker.compressed("good")
    talker.exchange(talker.text(5, "Forget rule r0, please."))
    assert talker.ruled()
    talker.small_talk()
    assert talker.compressed("good")
    talker.small_talk()
    assert talker.compressed("good")
    assert not talker.ruled()
    talker.runner.close()


def test_i18_a_person_lifts_it() -> None:
    """I18, I13: struck from the summary by a person, it does not come back by the machine.

    Breaks when: ``apply_edit`` keeps an entry whose line is missing.
    """
    talker = Talker(extract=False)
    talker.exchange(talker.text(20, RULE))
    talker.small_talk()
    assert talker.compressed("good")
    row = talker.row
    base = store.read_base(row.pk)
    text = "\n".join(line for line in base.text.splitlines() if RULE not in line)
    edit = services.edit(
        row.pk,
        text,
        expected_version=row.compression_version,
        author_id=talker.person.pk,
        counter=COUNTER,
        sizes=talker.sizes(snapshot_of(talker.oracle.code)),
    )
    talker.run(edit)
    assert not talker.ruled()
    talker.exchange(talker.text(5, RULE))
    for _ in range(3):
        talker.small_talk()
        talker.compressed("good")
    assert RULE not in talker.row.compressed_context
    talker.runner.close()
