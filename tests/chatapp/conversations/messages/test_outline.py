"""The outline of a conversation: what it shows of it, and at what cost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from chatapp.conversations.branching import branch
from chatapp.conversations.messages import outline as outlines
from chatapp.conversations.messages.outline import ENTRIES, VersionMade, outline, strata_of
from chatapp.conversations.messages.pins import pin
from chatapp.conversations.turns.replacing import edit
from chatapp.errors import NotFound
from chatapp.live.outline import Outline
from chatapp.models import Conversation, Message
from compression import store
from tests.chatapp.conversations.test_searching import add
from tests.chatapp.talking import PROCESS_ID, end, exchange, long_conversation, new, row_of
from tests.compression.hosting import TRANSCRIPT
from tests.compression.test_store import compress

stored = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]
NOW = datetime(2027, 1, 5, 12, tzinfo=UTC)


def seqs(found: Outline) -> list[int]:
    return [entry.seq for entry in found.entries]


def layers(found: Outline) -> list[tuple[int, int, bool]]:
    return [(one.first_seq, one.through_seq, one.cleared) for one in found.strata]


def made(
    version: int, through: int, parent: int, trigger: str = "manual", copies: int | None = None
) -> VersionMade:
    return VersionMade(
        version=version,
        parent=parent,
        restored_from=copies,
        trigger=trigger,
        through_seq=through,
        created_at=NOW,
    )


def strata(active: int, *versions: VersionMade) -> list[tuple[int, int, bool]]:
    found = strata_of({one.version: one for one in versions}, active)
    return [(one.first_seq, one.through_seq, one.cleared) for one in found]


def test_strata_are_what_moved_the_boundary_and_is_in_force() -> None:
    """Breaks when: an edit counts as a compression, or what was undone is shown."""
    one, two = made(1, 10, 0), made(2, 20, 1)
    edited = made(3, 20, 2, "edit")
    assert strata(3, one, two, edited) == [(1, 10, False), (11, 20, False)]
    undone = made(4, 10, 0, "restore", copies=1)
    assert strata(4, one, two, edited, undone) == [(1, 10, False)]
    again = made(5, 30, 4)
    assert strata(5, one, two, edited, undone, again) == [(1, 10, False), (11, 30, False)]
    assert strata(6, one, made(6, 0, 0, "restore", copies=0)) == []
    # A new start: nothing of what is older reaches the model.
    afresh = made(6, 30, 2, "clear")
    later = made(7, 40, 6)
    assert strata(7, one, two, afresh, later) == [
        (1, 10, True),
        (11, 20, True),
        (21, 30, True),
        (31, 40, False),
    ]


@given(
    st.lists(
        st.builds(
            made,
            st.integers(1, 6),
            st.integers(0, 9),
            st.integers(0, 6),
            st.sampled_from(["manual", "edit", "clear", "restore"]),
            st.none() | st.integers(0, 6),
        )
    ),
    st.integers(0, 6),
)
def test_strata_of_any_import_are_in_order(versions: list[VersionMade], active: int) -> None:
    """Parents that name each other, or that cover more than what was made on them.

    Breaks when: the walk does not remember where it has been, or an older stratum may end later.
    """
    found = strata(active, *versions)
    ends = [through for _, through, _ in found]
    assert ends == sorted(set(ends))
    assert all(first <= through for first, through, _ in found)


class TestPages:
    pytestmark = stored

    def test_ten_thousand_messages_cost_what_a_few_cost(self, alice: User, bob: User) -> None:
        """As many queries, and no more rows than a page has, at either end and in the middle.

        Breaks when: all entries are read, or one query is made for each.
        """
        queries = set()
        for count in (60, 10_000):
            code = long_conversation(alice, count)
            pin(alice.pk, code, 2, on=True, most_tokens=100)
            for place in ({}, {"before": 40}, {"after": 0}, {"around": count // 2}, {"since": 1}):
                with CaptureQueriesContext(
                    connection,
                ) as captured:
                    found = outline(alice.pk, code, **place)
                assert len(found.entries) <= ENTRIES
                assert found.last_seq == count
                if "around" not in place:
                    queries.add(len(captured))
                assert all(
                    "LIMIT" in one["sql"] or "SUBSTR" not in one["sql"].upper()
                    for one in captured.captured_queries
                )
        assert len(queries) == 1
        middle = outline(alice.pk, code, around=5_000)
        assert middle.begins_after == 4_919
        assert (seqs(middle)[0], seqs(middle)[-1], middle.has_newer) == (4_921, 5_119, True)
        assert 5_001 in seqs(middle)
        assert seqs(outline(alice.pk, code))[-1] == 9_999
        with pytest.raises(NotFound):
            outline(bob.pk, code)

    def test_pages_put_together_are_the_whole(self, alice: User) -> None:
        """Breaks when: a page skips or repeats the entry at its edge."""
        code = long_conversation(alice, 500)
        down, after = [], 0
        while True:
            found = outline(alice.pk, code, after=after)
            down += seqs(found)
            if not found.has_newer:
                break
            after = seqs(found)[-1]
        up = seqs(found := outline(alice.pk, code))
        while found.begins_after:
            found = outline(alice.pk, code, before=seqs(found)[0])
            up = seqs(found) + up
        assert down == up == list(range(1, 500, 2))

    def test_changes_are_told_alone(self, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
        """New questions, pins, and what an edit took away; too many at once are a page.

        Breaks when: superseded messages are not among ``gone``, or an unpinned reply is not.
        """
        code = new(alice)
        for number in range(3):
            exchange(alice, code, f"question {number}", f"answer {number}")
        before = outline(alice.pk, code)
        assert [entry.line for entry in before.entries] == [f"question {n}" for n in range(3)]
        assert outline(alice.pk, code, since=before.event_no).entries == []
        pin(alice.pk, code, 2, on=True, most_tokens=100)
        pinned = outline(alice.pk, code, since=before.event_no)
        assert (seqs(pinned), pinned.pins, pinned.gone) == ([2], [2], [])
        pin(alice.pk, code, 2, on=False, most_tokens=100)
        unpinned = outline(alice.pk, code, since=pinned.event_no)
        assert (seqs(unpinned), unpinned.gone) == ([], [2])
        accepted = edit(
            alice.pk, code, 3, text="another", tokens=5, model="m", process_id=PROCESS_ID
        )
        end(accepted)
        edited = outline(alice.pk, code, since=unpinned.event_no)
        assert [entry.line for entry in edited.entries] == ["another"]
        assert edited.gone == [3, 4, 5, 6, 8]
        assert seqs(outline(alice.pk, code)) == [1, 7]
        monkeypatch.setattr(outlines, "MOST_CHANGES", 3)
        many = outline(alice.pk, code, since=unpinned.event_no)
        assert (many.complete, seqs(many)) == (False, [1, 7])

    def test_compressions_new_starts_and_branches(self, alice: User) -> None:
        """Breaks when: strata are read by their number instead of by what they were made on."""
        code = new(alice)
        for number in range(6):
            exchange(alice, code, f"question {number}", "Yes")
        row = row_of(code)
        compress(row, 4)
        compress(row, 8)
        assert layers(outline(alice.pk, code)) == [(1, 4, False), (5, 8, False)]
        store.undo(row.pk, author_id=alice.pk, transcript=TRANSCRIPT)
        assert layers(outline(alice.pk, code)) == [(1, 4, False)]
        store.redo(row.pk, author_id=alice.pk, transcript=TRANSCRIPT)
        other = branch(alice.pk, code, 10)
        assert layers(outline(alice.pk, other)) == [(1, 4, False), (5, 8, False)]
        assert seqs(outline(alice.pk, other)) == [1, 3, 5, 7, 9]
        store.clear(row.pk, author_id=alice.pk, transcript=TRANSCRIPT)
        cleared = outline(alice.pk, code)
        assert layers(cleared) == [(1, 4, True), (5, 8, True), (9, 12, True)]
        store.undo(row.pk, author_id=alice.pk, transcript=TRANSCRIPT)
        assert layers(outline(alice.pk, code)) == [(1, 4, False), (5, 8, False)]

    def test_what_is_no_question(self, alice: User) -> None:
        """A message without words is an entry without a line; a new conversation has no entry.

        Breaks when: such a message is left out, so that nothing leads to it.
        """
        code = new(alice)
        assert outline(alice.pk, code).entries == []
        add(code, "?!", "What?")
        Message.objects.create(
            conversation=row_of(code), seq=3, role="tool", text="x", created_at=timezone.now()
        )
        Conversation.objects.filter(code=code).update(next_seq=4)
        assert [entry.line for entry in outline(alice.pk, code).entries] == ["", "What?"]
