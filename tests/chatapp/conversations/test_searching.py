"""Search of messages and titles, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatapp.conversations import lifecycle, searching
from chatapp.conversations.searching import HITS, Found, search
from chatapp.errors import NotFound, SearchTooSlow
from chatapp.models import Conversation, Message
from tests.chatapp.talking import begin, exchange, new

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def seqs(found: Found) -> list[int]:
    return [one.seq for one in found.messages]


def texts(found: Found) -> list[str]:
    return ["".join(part.text for part in one.parts) for one in found.messages]


def add(code: str, *messages: str, model: Any = Message, **fields: Any) -> None:
    # An earlier release has not all columns.
    row = Conversation.objects.only("next_seq").get(code=code)
    start = row.next_seq
    model.objects.bulk_create(
        model(
            conversation_id=row.pk,
            seq=seq,
            role="user",
            text=text,
            created_at=fields.get("created_at", timezone.now()),
        )
        for seq, text in enumerate(messages, start=start)
    )
    Conversation.objects.filter(pk=row.pk).update(next_seq=start + len(messages))


def test_it_works(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "I am allergic to peanuts.", "Noted: no peanuts.")
    exchange(alice, code, "And the weather?", "Rain.")
    found = search(alice.pk, "peanut allergies")
    assert set(seqs(found)) == {1, 2}
    assert found.messages[0].code == code
    assert not found.has_more
    assert any(part.marked and part.text == "peanuts" for part in found.messages[0].parts)


def test_any_term_is_enough_and_more_are_better(alice: User) -> None:
    code = new(alice)
    add(code, "alpha only", "beta only", "alpha and beta", "neither")
    assert seqs(search(alice.pk, "alpha beta"))[0] == 3
    assert set(seqs(search(alice.pk, "alpha beta"))) == {1, 2, 3}


def test_the_last_word_may_be_incomplete(alice: User) -> None:
    code = new(alice)
    add(code, "A palimpsest is written over.")
    assert seqs(search(alice.pk, "palimp")) == [1]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我对花生过敏，请记住。", "花生"),
        ("Äpfel und Birnen", "äpfel"),
        ("see /srv/data/report-2024.csv on db.example.org", "report"),
        ("see /srv/data/report-2024.csv on db.example.org", "example"),
        ("snake_case_name here", "case"),
        ("To be or not to be", "to be or not"),
        ("100 % sure", "100 %"),
    ],
)
def test_words_of_many_kinds_are_found(alice: User, text: str, query: str) -> None:
    code = new(alice)
    add(code, text, "something else")
    assert 1 in seqs(search(alice.pk, query))


@pytest.mark.parametrize(
    "query",
    ['"', "'", "a OR", "NEAR(", "* *", "-x", "col:x", "\\", "%", "_", "&|!()", "x'y", "?%s", "🙂"],
)
def test_no_query_is_an_error(alice: User, query: str) -> None:
    """A query is words, whatever signs the databases' own languages know.

    Breaks when: what was typed, rather than its quoted terms, goes to the database.
    """
    code = new(alice)
    add(code, "plain text")
    assert search(alice.pk, query).query == query


def test_i19_nothing_of_others_is_found(alice: User, bob: User) -> None:
    """I19: neither messages nor titles, nor by naming their conversation.

    Breaks when: ``ranked`` leaves the owner out, or ``search`` takes the code without ``owned``.
    """
    code = new(alice)
    add(code, "a secret of alice")
    lifecycle.change(alice.pk, code, {"title": "secret title"})
    found = search(bob.pk, "secret")
    assert (found.messages, found.titles) == ([], [])
    with pytest.raises(NotFound):
        search(bob.pk, "secret", code=code)


def test_i31_what_was_deleted_or_superseded_is_not_found(alice: User) -> None:
    """I31: until it is back.

    Breaks when: ``ranked`` does not look at ``deleted_at`` or ``superseded_at``.
    """
    code = new(alice)
    add(code, "lost word", "old word")
    Message.objects.filter(seq=2).update(superseded_at=timezone.now())
    assert seqs(search(alice.pk, "word")) == [1]
    lifecycle.change(alice.pk, code, {"title": "word"})
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=True)
    found = search(alice.pk, "word")
    assert (found.messages, found.titles) == ([], [])
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=False)
    assert seqs(search(alice.pk, "word")) == [1]


def test_a_reply_is_found_once_it_is_whole(alice: User) -> None:
    """Checkpoints cost no indexing, and leave nothing in the index that must be taken out again.

    Breaks when: the update trigger, or the stored column, forgets the status.
    """
    code = new(alice)
    begin(alice, code, "question")
    reply = Message.objects.get(seq=2)
    for text in ("first", "first second"):
        Message.objects.filter(pk=reply.pk).update(text=text)
        assert search(alice.pk, "second").messages == []
    # The last checkpoint may have had all of it.
    Message.objects.filter(pk=reply.pk).update(status="complete")
    assert seqs(search(alice.pk, "second")) == [2]
    Message.objects.filter(pk=reply.pk).update(text="second third")
    assert seqs(search(alice.pk, "third")) == [2]
    assert search(alice.pk, "first").messages == []
    Message.objects.filter(pk=reply.pk).update(text="fourth")
    assert search(alice.pk, "third").messages == []
    assert seqs(search(alice.pk, "fourth")) == [2]
    Message.objects.filter(pk=reply.pk).delete()
    assert search(alice.pk, "fourth").messages == []
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # Raises when index and text do not agree.
            cursor.execute(
                "INSERT INTO chatapp_messagetext (chatapp_messagetext) VALUES ('integrity-check')"
            )


def test_a_reply_in_a_script_without_spaces_is_found_once_it_is_whole(alice: User) -> None:
    """There the messages themselves are looked through, and no index leaves any out.

    Breaks when: ``ranked`` does not look at the status.
    """
    code = new(alice)
    begin(alice, code, "question")
    Message.objects.filter(seq=2).update(text="桜が咲いた")
    assert search(alice.pk, "桜").messages == []
    Message.objects.filter(seq=2).update(status="complete")
    assert seqs(search(alice.pk, "桜")) == [2]


def test_newest_first_and_within_one_conversation(alice: User) -> None:
    one, other = new(alice), new(alice)
    add(one, "word one", created_at=datetime(2024, 1, 1, tzinfo=UTC))
    add(other, "word word word", created_at=datetime(2023, 1, 1, tzinfo=UTC))
    assert texts(search(alice.pk, "word", newest_first=True)) == ["word one", "word word word"]
    assert [hit.code for hit in search(alice.pk, "word", code=other).messages] == [other]
    assert search(alice.pk, "word", code=other).titles == []


def test_titles_are_found(alice: User) -> None:
    for title in ("Grüne Äpfel", "Apples & pears", "Other"):
        lifecycle.change(alice.pk, new(alice), {"title": title})
    assert [
        "".join(part.text for part in one.parts) for one in search(alice.pk, "äpfel").titles
    ] == ["Grüne Äpfel"]
    assert len(search(alice.pk, "apple").titles) == 1


def test_ten_thousand_messages_take_the_same_queries(alice: User) -> None:
    """Pages are complete and without doubles, and cost the same at any length.

    Breaks when: the conversation of each hit is read by itself.
    """
    code = new(alice)
    add(code, *(f"word number {number}" for number in range(10)))

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            search(alice.pk, "word number")
        return len(captured)

    few = count()
    add(code, *(f"word number {number}" for number in range(10_000)))
    assert count() == few
    seen: list[int] = []
    for page in range(1, 6):
        found = search(alice.pk, "word number", page=page)
        assert len(found.messages) == HITS
        assert found.has_more
        seen += seqs(found)
    assert len(set(seen)) == len(seen)


def test_what_is_found_is_grouped_by_conversation(alice: User, bob: User) -> None:
    """Those found by their titles first, each with the number of all its messages.

    Breaks when: only the messages of a page are counted, those of others are, or what was replaced
    is.
    """
    many, one, titled = new(alice), new(alice), new(alice)
    add(many, *(f"heron number {number}" for number in range(HITS + 5)))
    add(one, "A heron, and herons, and a heron again.")
    add(titled, "Of no use.")
    Conversation.objects.filter(code=titled).update(title="On herons")
    gone = Message.objects.filter(conversation__code=many).first()
    assert gone is not None
    Message.objects.filter(pk=gone.pk).update(superseded_at=timezone.now())
    add(new(bob), "heron")
    found = search(alice.pk, "heron")
    assert found.counts == {many: HITS + 4, one: 1}
    first, *others = found.groups
    assert (first.code, first.count, first.messages) == (titled, 0, ())
    assert [part.text for part in first.parts if part.marked] == ["herons"]
    assert {group.code: group.count for group in others} == found.counts
    assert [hit.seq for group in others for hit in (*group.first, *group.others)] != []
    assert sum(len(group.messages) for group in others) == HITS
    assert {group.code: group.elsewhere for group in others} == {many: True, one: False}
    assert search(alice.pk, "heron", code=one).counts == {}
    assert search(alice.pk, "xylophone").groups == []


def test_the_index_goes_and_comes_back_with_what_is_stored(alice: User) -> None:
    """I32: the migration is reversible, and takes in rows that are there.

    Breaks when: ``create`` does not fill the index, or ``drop`` forgets a trigger.
    """
    code = new(alice)
    add(code, "before the index")
    call_command("migrate", "chatapp", "0002", verbosity=0)
    try:
        # Of the columns that there were then.
        then = MigrationLoader(connection).project_state(("chatapp", "0002_seen_and_notify"))
        earlier = then.apps.get_model("chatapp", "Message")
        add(code, "while there is none", model=earlier)
    finally:
        call_command("migrate", verbosity=0)
    add(code, "after the index")
    assert sorted(seqs(search(alice.pk, "index none"))) == [1, 2, 3]


def test_the_triggers_outlive_all_migrations(db: None) -> None:
    """A later migration that remakes the table on SQLite must make them again.

    Breaks when: such a migration is added without calling ``create`` of 0003.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' "
                "AND name LIKE 'chatapp_messagetext%'"
            )
            expected = 3
        else:
            cursor.execute(
                "SELECT count(*) FROM information_schema.columns "
                "WHERE table_name = 'chatapp_message' AND column_name = 'search_vector'"
            )
            expected = 1
        assert cursor.fetchone()[0] == expected


def test_n02_a_search_that_takes_too_long_is_given_up(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N02. Breaks when: a search may keep its thread, and everybody's searches, for ever."""
    code = new(alice)
    add(code, *["lantern 灯"] * 4_000)
    for query in ("lantern", "灯"):
        with monkeypatch.context() as patched:
            patched.setattr(searching, "LONGEST", 0.001)
            with pytest.raises(SearchTooSlow):
                search(alice.pk, query)
        assert len(search(alice.pk, query).messages) == HITS


def test_a_question_without_spaces_is_found_and_marked_by_its_pairs(alice: User) -> None:
    """Breaks when: it is found by pairs of characters, and then marked, or found newest first, only
    where the whole question stands."""
    code = new(alice)
    add(code, "我对花生过敏，请记住。", "好的。", "过敏要小心。")
    for newest_first, expected in ((False, {1, 3}), (True, {1, 3})):
        found = search(alice.pk, "我对什么过敏", code=code, newest_first=newest_first)
        assert set(seqs(found)) == expected
        assert seqs(found)[0] == (3 if newest_first else 1)
        for one in found.messages:
            assert "过敏" in [part.text for part in one.parts if part.marked]
