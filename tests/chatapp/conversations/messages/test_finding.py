"""Words in one conversation, from one message to the next."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations.messages import finding
from chatapp.conversations.messages.finding import FoundInside, find_inside, with_every_word
from chatapp.errors import NotFound
from compression.recall.terms import Terms
from tests.chatapp.conversations.test_searching import add
from tests.chatapp.talking import begin, exchange, new

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def found(owner: User, code: str, query: str) -> FoundInside:
    return find_inside(owner.pk, code, query)


def test_messages_with_all_words_come_before_those_with_some() -> None:
    """Two forms of a word are one word.

    Breaks when: the terms are joined with OR only, or each form must be there.
    """
    terms = Terms(words=("paint", "painting", "boat"))
    having = {"paint": [1, 4], "painting": [2], "boat": [2, 9]}
    assert with_every_word(terms, having) == ([2], True)
    assert with_every_word(terms, {**having, "boat": [9]}) == ([1, 2, 4, 9], False)
    assert with_every_word(terms, {"paint": [], "painting": [], "boat": []}) == ([], True)
    assert with_every_word(Terms(words=()), {}) == ([], True)


def test_it_works(alice: User, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; the last word may be unfinished; nobody else's, none replaced, none of elsewhere.

    Breaks when: the conversation is not taken through its owner, or superseded messages are found.
    """
    code, other = new(alice), new(alice)
    add(other, "the harbour of elsewhere")
    exchange(alice, code, "When does the harbour open?", "The harbours open at six.")
    add(code, "harbour master", "我对花生过敏，请记住。", "nothing")
    begin(alice, code, "The harbour again")
    assert found(alice, code, "harb").seqs == [1, 2, 3, 6]
    assert found(alice, code, "harbour open").seqs == [1, 2]
    assert found(alice, code, "花生过敏").seqs == [4]
    some = found(alice, code, "harbour submarine")
    assert (some.seqs, some.every_word) == ([1, 2, 3, 6], False)
    assert some.beginnings == ["harbour", "submarin"]
    assert found(alice, code, "").seqs == found(alice, code, "zebra").seqs == []
    with pytest.raises(NotFound):
        found(bob, code, "harbour")
    monkeypatch.setattr(finding, "MOST_FOUND", 2)
    few = found(alice, code, "harbour")
    assert (few.seqs, few.count) == ([3, 6], 4)
