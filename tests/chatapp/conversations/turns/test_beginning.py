"""A conversation that is made for a message is there with it, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.context.request import ConversationSnapshot
from chatapp.conversations import drafts, lifecycle
from chatapp.conversations.turns.beginning import First, begin, begin_branch
from chatapp.conversations.turns.sending import Accepted
from chatapp.errors import MessageTooLarge, TooManyReplies
from chatapp.models import Conversation, Message, Turn
from tests.chatapp.talking import end, exchange, first_message, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

WAYS = ("new", "branch")


def made(owner: User, way: str, source: str, first: First) -> Accepted:
    """The message sent in a new conversation, or in a branch of ``source`` after its answer."""
    if way == "new":
        return begin(owner.pk, first, {"system_prompt": "Be kind."})
    return begin_branch(owner.pk, source, 2, first)


def stored() -> list[Any]:
    """Every row that there is."""
    rows: list[Any] = []
    for model in (Conversation, Message, Turn):
        rows += model.objects.order_by("pk").values()
    return rows


@pytest.mark.parametrize("way", WAYS)
def test_it_is_there_with_its_message(alice: User, way: str) -> None:
    """The room for it is asked of the conversation that it is sent in.

    Breaks when: the snapshot is that of another conversation, or the message starts no turn.
    """
    source, frames = new(alice), list[ConversationSnapshot]()
    lifecycle.change(alice.pk, source, {"system_prompt": "In rhyme."})
    exchange(alice, source)

    def admit(snapshot: ConversationSnapshot) -> str:
        frames.append(snapshot)
        return "model"

    accepted = made(alice, way, source, first_message(admit=admit))
    assert accepted.fresh
    assert accepted.code != source
    assert [one.code for one in frames] == [accepted.code]
    prompt, seq = {"new": ("Be kind.", 1), "branch": ("In rhyme.", 3)}[way]
    assert frames[0].system_prompt == prompt
    assert (accepted.message_seq, accepted.reply_seq) == (seq, seq + 1)
    assert row_of(accepted.code).next_seq == seq + 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("refused", [MessageTooLarge, TooManyReplies])
def test_what_is_refused_leaves_nothing(
    alice: User, settings: Any, way: str, refused: type[Exception]
) -> None:
    """Breaks when: the conversation is made in a transaction of its own."""
    source = new(alice)
    exchange(alice, source)
    before = stored()

    def admit(snapshot: ConversationSnapshot) -> str:
        raise MessageTooLarge

    first = first_message()
    if refused is TooManyReplies:
        settings.REPLIES_PER_USER = 0
    else:
        first = first_message(admit=admit)
    with pytest.raises(refused):
        made(alice, way, source, first)
    assert stored() == before


@pytest.mark.parametrize("way", WAYS)
def test_i2_a_repeated_one_leads_to_the_first(alice: User, way: str) -> None:
    """I2: also when there would be no room for it any more, and after more was said.

    Breaks when: the ``client_msg_id`` is not looked for, or after the room.
    """
    source = new(alice)
    exchange(alice, source)
    first = first_message()
    accepted = made(alice, way, source, first)
    end(accepted)
    exchange(alice, accepted.code)
    before = stored()

    def admit(snapshot: ConversationSnapshot) -> str:
        raise MessageTooLarge

    again = first_message(client_msg_id=first.client_msg_id, admit=admit)
    repeated = made(alice, way, source, again)
    assert (repeated.code, repeated.turn, repeated.fresh) == (accepted.code, accepted.turn, False)
    assert stored() == before


@pytest.mark.parametrize("was_draft", [True, False])
def test_a_draft_that_was_sent_in_a_branch_is_none_any_more(alice: User, was_draft: bool) -> None:
    """Also as it was before the last words were written; another message leaves it.

    Breaks when: it comes back in the conversation that it was not sent in, or is lost there.
    """
    source = new(alice)
    exchange(alice, source)
    drafts.save_draft(alice.pk, source, "Hel")
    begin_branch(alice.pk, source, 2, first_message("Hello"), clears_draft=was_draft)
    assert row_of(source).draft == ("" if was_draft else "Hel")
