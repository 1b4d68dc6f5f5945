"""A conversation's originals, searched and read on both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from chatapp.conversations import lifecycle
from chatapp.conversations.messages.originals import StoredHistory, look_up
from chatapp.conversations.searching import search
from chatapp.models import Conversation, Message
from compression.exceptions import ToolFailed
from compression.recall.ranking import ranked
from compression.recall.terms import Terms, in_pairs, terms_of
from tests.chatapp.conversations.test_searching import add, seqs
from tests.chatapp.talking import begin, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

TALK = (
    "I planted tulips behind the old shed today.",
    "Lovely! Which colours did you choose?",
    "Red ones mostly, and a few white.",
    "They will look good in spring.",
    "My sister Ada moved to Oslo for her new job.",
    "What does she do there?",
    "She repairs lighthouses on the coast.",
    "That sounds like hard work.",
)


def talked(owner: User, *texts: str, **changes: Any) -> str:
    """A conversation with these messages, all of them before the boundary."""
    code = new(owner)
    add(code, *(texts or TALK))
    through = {"compressed_through": len(texts or TALK), **changes}
    Conversation.objects.filter(code=code).update(**through)
    return code


def found(code: str, query: str, **more: bool) -> list[int]:
    return ranked(StoredHistory(row_of(code), **more), in_pairs(terms_of(query)))


def readable(code: str) -> list[int]:
    return [one.seq for one in StoredHistory(row_of(code)).headings()]


def test_it_works(alice: User) -> None:
    code = talked(alice)
    assert found(code, "Where did her sister move?")[0] == 5
    assert found(code, "a lighthouse")[0] == 7
    assert found(code, "submarine") == []
    texts = {one.seq: one.text for one in StoredHistory(row_of(code)).originals([7, 5, 99])}
    assert texts == {5: TALK[4], 7: TALK[6]}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我对花生过敏，请记住。", "我对什么过敏"),
        ("see /srv/data/report-2024.csv there", "/srv/data/report-2024.csv"),
        ("snake_case_name here", "snake_case_name"),
        ("100 % sure", "%"),
        ('it\'s "quoted" here', '"quoted" NEAR(x'),
    ],
)
def test_words_of_many_kinds(alice: User, text: str, query: str) -> None:
    """Breaks when: what was asked, rather than its quoted terms, goes to the database."""
    code = talked(alice, "one thing", text, "another")
    assert found(code, query)[:1] in ([2], [])
    if query != "%":
        assert found(code, query)[0] == 2


def test_only_what_the_model_does_not_see(alice: User) -> None:
    """Not the tail, nor what was superseded, is being written, or says nothing.

    Breaks when: the boundary, truncation, a mask, or ``superseded_at`` is left out of account.
    """
    code = talked(alice, compressed_through=4)
    assert readable(code) == [1, 2, 3, 4]
    assert found(code, "sister in Oslo") == []
    Conversation.objects.filter(code=code).update(truncated_through=6)
    assert readable(code) == [1, 2, 3, 4, 5, 6]
    Message.objects.filter(seq=2).update(superseded_at=timezone.now())
    Message.objects.filter(seq=3).update(text="")
    assert readable(code) == [1, 4, 5, 6]
    Message.objects.filter(seq=7).update(role="assistant", masked_at=timezone.now())
    assert readable(code) == [1, 4, 5, 6]
    Message.objects.filter(seq=7).update(role="tool")
    assert readable(code) == [1, 4, 5, 6, 7]
    assert 7 in found(code, "lighthouses")


def test_a_reply_being_written_is_no_original(alice: User) -> None:
    code = talked(alice, compressed_through=99)
    begin(alice, code, "question")
    Message.objects.filter(seq=10).update(text="tulips tulips")
    assert 10 not in readable(code)


def test_pinned_messages_are_read_among_the_others_and_not_found(alice: User) -> None:
    code = talked(alice)
    Message.objects.filter(seq=5).update(pinned_at=timezone.now())
    assert 5 in readable(code)
    assert 5 not in found(code, "sister in Oslo")
    # A person's search finds them.
    assert 5 in found(code, "sister in Oslo", everything=True)


def test_i19_nothing_of_another_conversation(alice: User, bob: User) -> None:
    """I19: not even of the same owner; nor do its words change this one's ranking.

    Breaks when: the index is asked without the conversation, or weighs everybody's words.
    """
    code = talked(alice)
    order = found(code, "sister tulips coast")
    other, foreign = talked(alice, *["sister"] * 50), talked(bob, *["sister in Oslo"] * 50)
    assert found(code, "sister tulips coast") == order
    assert set(found(code, "sister")) <= set(range(1, len(TALK) + 1))
    assert readable(other) == list(range(1, 51))
    assert look_up(row_of(code).pk, lambda history: str(len(history.headings()))) == "8"
    assert foreign


def test_a_number_in_a_query_is_no_conversation(alice: User) -> None:
    """Breaks when: the index's column of conversations is searched for a person's words."""
    code = talked(alice)
    number = str(row_of(code).pk)
    assert found(code, number) == []
    assert seqs(search(alice.pk, number)) == []
    assert seqs(search(alice.pk, number, code=code)) == []


def test_i31_a_deleted_conversation_is_not_looked_up(alice: User) -> None:
    code = talked(alice)
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=True)
    with pytest.raises(ToolFailed):
        look_up(row_of(code).pk, lambda history: "")


def test_a_look_up_that_takes_too_long_is_given_up(alice: User) -> None:
    """N02. Breaks when: a look-up may keep its thread for ever."""
    code = talked(alice, *["lantern 灯"] * 4_000)
    with pytest.raises(ToolFailed):
        look_up(
            row_of(code).pk,
            lambda history: str(history.having(Terms(words=(), runs=("灯",)))),
            seconds=0.001,
        )


def test_a_person_s_search_in_a_conversation_ranks_by_its_own_words(alice: User) -> None:
    """Page by page, without doubles, and only messages that have a word of the query.

    Breaks when: the page's search within a conversation is ranked by everybody's words.
    """
    code = talked(alice, *(f"lamp number {number}" for number in range(50)), "the lamp of Oslo")
    hits = [seqs(search(alice.pk, "lamp of Oslo", code=code, page=page)) for page in (1, 2, 3)]
    assert hits[0][0] == 51
    assert [len(page) for page in hits] == [20, 20, 11]
    assert len({seq for page in hits for seq in page}) == 51
    assert seqs(search(alice.pk, "Osl", code=code)) == [51]


def test_the_index_follows_a_message(alice: User) -> None:
    """Breaks when: a trigger does not take out what it has put in."""
    code = talked(alice)
    Message.objects.filter(seq=1).update(text="I planted roses.")
    assert found(code, "tulips") == []
    assert found(code, "roses")[0] == 1
    Message.objects.filter(seq=1).delete()
    assert found(code, "roses") == []
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # Raises when index and texts do not agree.
            cursor.execute(
                "INSERT INTO chatapp_messagetext (chatapp_messagetext) VALUES ('integrity-check')"
            )


def called(name: str, **arguments: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [{"id": "a", "type": "function", "function": function}]


def test_arguments_of_calls_are_found_and_read(alice: User) -> None:
    """What was written into a file stands in a call only.

    Breaks when: messages without text are left out, or their calls; or a person's search, which
    shows texts, finds them.
    """
    code = talked(alice)
    calls = called(
        "write_file", path="src/app.py", content="def lantern():\n    return 7  # äöü 灯"
    )
    Message.objects.filter(seq=4).update(role="assistant", text="", tool_calls=calls)
    for query in ("lantern", "src/app.py", "äöü", "灯"):
        assert found(code, query)[0] == 4
    (original,) = StoredHistory(row_of(code)).originals([4])
    assert "path: src/app.py\ncontent: def lantern():\n    return 7" in original.text
    assert found(code, "lantern", everything=True) == []


def test_a_mask_hides_arguments_which_can_be_looked_up(alice: User) -> None:
    """Breaks when: of what is masked in the tail only results are given."""
    code = talked(alice, compressed_through=2)
    Message.objects.filter(seq=4).update(
        role="assistant", masked_at=timezone.now(), tool_calls=called("write_file", path="a/b.py")
    )
    assert readable(code) == [1, 2, 4]


def test_a_masked_message_counts_as_long_as_it_is(alice: User) -> None:
    """Breaks when: its heading has the tokens of its placeholder."""
    code = talked(alice)
    masked = {"role": "tool", "masked_at": timezone.now(), "token_count": 9}
    Message.objects.filter(seq=3).update(**masked, unmasked_tokens=9_000)
    Message.objects.filter(seq=4).update(**masked)
    Message.objects.filter(seq=5).update(token_count=50, unmasked_tokens=9_000)
    tokens = {one.seq: one.tokens for one in StoredHistory(row_of(code)).headings()}
    assert (tokens[3], tokens[4], tokens[5]) == (9_000, 9, 50)


def test_what_was_looked_up_is_not_found_again(alice: User) -> None:
    """Results of recall repeat the original, and have more of a query's words.

    Breaks when: they are searched, or cannot be read any more.
    """
    code = talked(alice)
    query = "sister in Oslo"
    Message.objects.filter(seq=6).update(
        role="assistant", text="", tool_calls=called("search_history", query=query)
    )
    Message.objects.filter(seq=7).update(
        role="tool", tool_name="search_history", text=f"{query} " * 3
    )
    assert ranked(StoredHistory(row_of(code)), terms_of(query), own_words=True) == [5]
    assert 7 not in found(code, query)
    assert {6, 7} <= set(readable(code))


def test_few_messages_with_a_word_are_named_by_the_index_alone(
    alice: User, django_assert_num_queries: Any
) -> None:
    """Breaks when: excerpts read a heading of each older message."""
    code = talked(alice, *["report of the day"] * 40, *TALK, "see KX-4021 灯")
    history = StoredHistory(row_of(code))
    with django_assert_num_queries(3):
        having = history.having(Terms(words=("kx", "report"), runs=("灯",)), most=30)
    assert having == {"kx": {49}, "灯": {49}}
    with django_assert_num_queries(1):
        assert [one.seq for one in history.headings([49, 5, 999])] == [5, 49]
