"""A conversation continued in a new one: numbered, linked, and with all that it needs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp import wiring
from chatapp.actions.conversations import continue_in_new
from chatapp.conversations import branching, continuing, lifecycle
from chatapp.conversations.listing import links, parts
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Conversation, Message
from chatapp.turns.fitting import sent_back, sizes_for
from compression import store
from compression.exceptions import StaleVersion
from tests.chatapp.talking import exchange, new, row_of
from tests.inprocess import JSON, send, settle

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def continued(owner: User, code: str, turns: int = 1) -> str:
    left = continuing.left_behind(owner.pk, code, turns, 1000)
    return continuing.continue_in_new(
        owner.pk, code, left, text=left.text, ledger=left.ledger, summary_tokens=1
    )


def test_parts_are_numbered_and_linked_both_ways(alice: User, bob: User) -> None:
    """Each is one more than what it continues, a branch is not, all name the first one's title.

    Breaks when: the number is counted from the conversations that there are, or is not copied.
    """
    first = new(alice)
    exchange(alice, first, "one")
    Conversation.objects.filter(code=first).update(title="The garden")
    second = continued(alice, first)
    Conversation.objects.filter(code=second).update(title="Roses")
    third = continued(alice, second)
    branch = branching.branch(alice.pk, third, 1)
    other = continued(alice, second)
    found = {code: parts(row_of(code)) for code in (first, second, third, branch, other)}
    assert [found[code].part for code in found] == [1, 2, 3, 3, 3]
    assert {one.of for one in found.values()} == {"The garden"}
    assert found[first].continued_in == [second]
    assert found[second].continued_in == [third, other]
    assert found[third].continued_in == []
    lifecycle.set_flag(alice.pk, first, "deleted_at", on=True)
    lifecycle.set_flag(alice.pk, other, "deleted_at", on=True)
    assert parts(row_of(second)).of == "Roses"
    assert parts(row_of(second)).continued_in == [third]
    assert {one.code: one.part for one in links(alice.pk)} == {second: 2, third: 3, branch: 3}
    assert links(bob.pk) == []


def test_pinned_messages_come_along_and_are_quoted(alice: User) -> None:
    """Before the boundary, as the first messages, so that each request quotes them once.

    Breaks when: only the last turns are copied, or the boundary does not lie after the pins.
    """
    code = new(alice)
    for text in ("keep this", "not this", "last"):
        exchange(alice, code, text)
    Message.objects.filter(conversation__code=code, seq__in=(1, 6)).update(
        pinned_at=row_of(code).created_at
    )
    later = row_of(continued(alice, code))
    copies = list(later.messages.order_by("seq").values_list("seq", "text", "pinned_at"))
    assert [(seq, text, pin is not None) for seq, text, pin in copies][:2] == [
        (1, "keep this", True),
        (2, "last", False),
    ]
    assert (later.compressed_through, later.compression_version, later.next_seq) == (1, 1, 4)
    version = store.read_version(later.pk, 1)
    assert store.fingerprint_matches(later.pk, version, StoredTranscript())


def test_turns_that_are_too_large_stay_behind(alice: User) -> None:
    """Otherwise the next part would be blocked as this one is; what they hold is extracted.

    Breaks when: the last turns are taken whatever they are.
    """
    code = new(alice)
    for text in ("one", "two", "three"):
        exchange(alice, code, text)
    Message.objects.filter(conversation__code=code).update(token_count=10)
    kept = [continuing.left_behind(alice.pk, code, 3, most) for most in (100, 40, 39, 0)]
    assert [one.first_kept for one in kept] == [1, 3, 5, 7]
    assert [len(one.items) for one in kept] == [0, 2, 4, 6]


def test_i9_a_summary_that_changed_meanwhile_is_not_carried_over(alice: User) -> None:
    """I9: Breaks when: the version that was read is not compared."""
    code = new(alice)
    exchange(alice, code, "one")
    left = continuing.left_behind(alice.pk, code, 1, 1000)
    Conversation.objects.filter(code=code).update(compression_version=7)
    with pytest.raises(StaleVersion):
        continuing.continue_in_new(
            alice.pk, code, left, text="", ledger=left.ledger, summary_tokens=0
        )
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    "rule",
    [
        "Always answer in British English.",
        "One thing: put every price in euros, for the whole party and never for one person; I "
        "always get that wrong, and then the sums of the others do not come out either.",
    ],
)
async def test_i18_rules_between_the_summary_and_the_last_turns_are_kept(
    chat_client: AsyncClient, code: str, alice: User, rule: str
) -> None:
    """I18: word for word in the next part's requests, although their message stays behind.

    Breaks when: what lies between is not extracted, or may take half its own length only.
    """
    for text in (rule, "What grows here?", "And in winter?", "And in spring?"):
        await send(chat_client, code, text)
        await settle()
    later = await continue_in_new(alice.pk, code)
    page = (await chat_client.get(f"/c/{later}/", headers=JSON)).json()
    assert rule not in [one["text"] for one in page["messages"]]
    assert rule in page["compression"]["summary"]
    assert page["part"] == {"part": 2, "of": page["conversation"]["title"], "continued_in": []}
    shown = (await chat_client.get(f"/c/{later}/")).content.decode()
    assert "Back to part 1" in shown
    before = (await chat_client.get(f"/c/{code}/")).content.decode()
    assert f'<a href="/c/{later}/">part 2</a>' in before


async def test_left_out_messages_are_counted_everywhere(
    chat_client: AsyncClient, code: str, pk: int, caplog: Any
) -> None:
    """On the page, in the JSON of a viewer's state, in the manifest, and in the server's log.

    Breaks when: one of them counts otherwise, or a count is left away.
    """
    from chatapp.context.request import build_request
    from chatapp.conversations.messages.reading import asnapshot_with_tail
    from chatapp.conversations.turns.progress import aset_truncated

    for text in ("one", "two"):
        await send(chat_client, code, text)
        await settle()
    await aset_truncated(pk, 2)
    found = (await chat_client.get(f"/c/{code}/", headers=JSON)).json()["compression"]
    left = [one async for one in Message.objects.filter(conversation=pk, seq__lte=2)]
    tokens = sum(one.token_count for one in left)
    assert (found["truncated_count"], found["truncated_tokens"]) == (2, tokens)
    assert f"2 messages, {tokens} tokens, are left out" in (
        (await chat_client.get(f"/c/{code}/")).content.decode()
    )
    services = wiring.services()
    profile = await services.catalogue.profile("")
    snapshot = await asnapshot_with_tail(pk)
    sizes = sizes_for(snapshot, services.counter, profile)
    manifest = build_request(snapshot, sizes, back=sent_back(profile)).manifest
    assert (manifest["truncated_messages"], manifest["truncated_tokens"]) == (2, tokens)
    assert f"2 messages with {tokens} tokens are left out" in caplog.text
