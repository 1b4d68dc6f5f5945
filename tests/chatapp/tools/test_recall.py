"""Excerpts of older messages that come along with a message, stored once with it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages import originals
from chatapp.conversations.messages.added_context import add_context
from chatapp.conversations.messages.originals import alook_up
from chatapp.conversations.messages.reading import snapshot_with_tail
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message
from chatapp.tools import excerpts
from chatapp.tools.recall import recall_tools_of
from chatapp.turns.fitting import FittingDeps, Prepared, prepare, sizes_for
from compression import services
from compression.engine import Engine
from compression.recall.ports import History, Original
from compression.recall.quoting import numbers, quoted
from compression.testing import ScriptedSummarizer
from compression.types import Trigger
from tests.chatapp.conversations.messages.test_originals import talked
from tests.chatapp.conversations.test_searching import add
from tests.chatapp.stage import COUNTER, staged, stored
from tests.chatapp.talking import begin, by, end, row_of
from tests.chatapp.turns.test_fitting import PROFILE, deps_with, pk_of
from tests.chatapp.turns.test_turn import MODEL
from tests.compression.hosting import SIZES

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

OLD = ("The report is at /srv/data/report-2024.csv, ticket KX-4021.", "Noted.", "And tea?", "Yes.")
WITHOUT_TOOLS = replace(PROFILE, supports_tools=False)


class Told:
    """The messages that viewers were told of."""

    def __init__(self) -> None:
        self.messages: list[MessageView] = []

    async def __call__(self, event_no: int, message: MessageView) -> None:
        assert event_no == message.event_no
        self.messages.append(message)


async def asked(owner: User, text: str, *, told: Told | None = None, **more: Any) -> Prepared:
    """The first request for a message after messages that the model does not see."""
    code = await stored(lambda: talked(owner, *OLD))
    await stored(lambda: begin(owner, code, text, tokens=message_tokens(COUNTER, text)))
    return await prepare(await pk_of(code), deps_for(told, **more))


def deps_for(told: Told | None = None, **more: Any) -> FittingDeps:
    return replace(deps_with(**more), added=told)


def question(seq: int = 5) -> Message:
    return Message.objects.get(seq=seq, role="user")


async def test_it_works(alice: User) -> None:
    """A name that stands only in older messages brings them along, stored, told, and counted.

    Breaks when: excerpts are not stored, so that the next request does not begin with this one; or
    the message's tokens stay as they were (I16).
    """
    told = Told()
    prepared = await asked(alice, "Open KX-4021 again.", told=told)
    row = await stored(question)
    assert numbers(row.added_context) == (1,)
    assert "/srv/data/report-2024.csv" in row.added_context
    sent = str(prepared.request.messages[-1]["content"])
    assert sent == f"Open KX-4021 again.\n\n{row.added_context}"
    assert row.token_count == message_tokens(COUNTER, sent)
    assert prepared.request.manifest["looked_up"] == [[1, 1]]
    assert [one.added_context for one in told.messages] == [row.added_context]
    conversation = await stored(lambda: Conversation.objects.get(pk=row.conversation_id))
    assert row.event_no == conversation.event_no


async def test_i17_it_is_looked_up_once(alice: User) -> None:
    """I17. Breaks when: a second request of the turn looks again, or finds something else."""
    first = await asked(alice, "Open KX-4021 again.")
    row = await stored(question)
    await stored(lambda: add(str(row.conversation.code), "KX-4021 " * 3))
    again = await prepare(row.conversation_id, deps_for())
    assert again.request.messages[: len(first.request.messages)] == first.request.messages
    assert (await stored(question)).event_no == row.event_no


async def test_words_alone_only_for_a_model_without_tools(alice: User) -> None:
    """Breaks when: a model that can look for itself gets excerpts it did not ask for."""
    await asked(alice, "Where was that ticket report?")
    assert (await stored(question)).added_context == ""
    await asked(alice, "Where was that ticket report?", profile=WITHOUT_TOOLS)
    assert (await stored(lambda: Message.objects.filter(seq=5).latest("pk"))).added_context


async def test_nothing_comes_along_where_there_is_no_cause(alice: User) -> None:
    for text in ("Thanks!", "Open KX-9999."):
        prepared = await asked(alice, text, profile=WITHOUT_TOOLS)
        assert prepared.request.messages[-1]["content"] == text
        assert prepared.request.manifest["looked_up"] == []


@pytest.mark.parametrize("share", [0.5, 0.76, 0.79, 0.9, 0.97])
async def test_excerpts_block_no_message_that_fits_without_them(alice: User, share: float) -> None:
    """They take only what is left below the threshold, and nothing if that is little.

    Breaks when: they may have their share of the budget however full it is.
    """
    code = await stored(
        lambda: talked(alice, *["KX-4021 " + "word " * 400] * 3, compression_off=True)
    )
    pk = await pk_of(code)
    text = "KX-4021 "
    empty = await stored(lambda: snapshot_with_tail(pk))
    fixed = sizes_for(empty, COUNTER, PROFILE).fixed
    text += "x" * int(3 * (share * PROFILE.sizes.budget - fixed - 16))
    await stored(lambda: begin(alice, code, text, tokens=message_tokens(COUNTER, text)))
    prepared = await prepare(pk, deps_for())
    added = (await stored(lambda: question(4))).added_context
    assert bool(added) == (share < 0.79)
    assert share - 0.03 < prepared.request.usage.share <= max(0.8, share)


async def test_a_reply_does_not_wait_for_excerpts(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it fail for them: nobody has asked for them.

    Breaks when: a search of another person that takes long delays the turn, or an error of the
    look-up ends it.
    """
    monkeypatch.setattr(excerpts, "LONGEST", 0.05)
    let_go, begun = threading.Event(), threading.Event()

    def long_search(history: History) -> str:
        begun.set()
        let_go.wait(20)
        return ""

    other = await stored(lambda: talked(alice, *OLD))
    searching = asyncio.create_task(alook_up(await pk_of(other), long_search))
    try:
        await asyncio.to_thread(begun.wait, 20)
        prepared = await asyncio.wait_for(asked(alice, "Open KX-4021 again."), 10)
        assert prepared.request.messages[-1]["content"] == "Open KX-4021 again."
    finally:
        let_go.set()
        await searching


async def test_a_look_up_that_fails_is_logged_and_the_reply_comes(
    alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Breaks when: only a look-up that gives up by itself is survived."""

    def broken(*arguments: Any, **more: Any) -> Any:
        raise RuntimeError("no such table")

    monkeypatch.setattr(originals.StoredHistory, "having", broken)
    prepared = await asked(alice, "Open KX-4021 again.")
    assert prepared.request.messages[-1]["content"] == "Open KX-4021 again."
    assert "Excerpts" in caplog.text


async def test_what_comes_along_is_no_word_of_the_user(alice: User) -> None:
    """A summary quotes rules in the user's words, which these are not.

    Breaks when: compression reads what was looked up as part of the message.
    """
    await asked(alice, "Open KX-4021 again.")
    row = await stored(question)
    read = await stored(
        lambda: StoredTranscript().items(row.conversation_id, after_seq=4, through_seq=5)
    )
    assert [one.text for one in read] == ["Open KX-4021 again."]


async def test_a_summary_is_not_made_of_what_was_looked_up(alice: User) -> None:
    """It was said before, under another number, and is in an earlier summary.

    Breaks when: the results of recall are given to the summariser as new words.
    """
    code = await stored(lambda: talked(alice, *["word " * 60] * 40, compressed_through=0))
    told = quoted([(Original(seq=1, role="user", text="KX-4021"), "KX-4021")])

    def look_up_once() -> None:
        Message.objects.update(token_count=110)
        Message.objects.filter(seq=3).update(role="tool", tool_name="read_messages", text=told)

    await stored(look_up_once)
    summarizer = ScriptedSummarizer()
    engine = Engine(transcript=StoredTranscript(), counter=COUNTER, summarizers=(summarizer,))
    await services.compress(
        await pk_of(code), engine=engine, sizes=SIZES, trigger=Trigger.THRESHOLD
    )
    given = {one.seq: one for one in summarizer.calls[0].items}
    assert (given[3].text, given[3].tokens) == ("", 110)
    assert given[4].text == "word " * 60


async def test_it_is_never_added_to_a_turn_that_has_ended(alice: User) -> None:
    """Breaks when: a late look-up changes what was sent already."""
    code = await stored(lambda: talked(alice, *OLD))
    accepted = await stored(lambda: begin(alice, code, "KX-4021?"))
    pk = await pk_of(code)
    await stored(lambda: end(accepted))
    assert await stored(lambda: add_context(pk, 5, "late", tokens=9)) is None
    assert (await stored(question)).added_context == ""


async def test_in_a_turn_viewers_see_it_before_the_reply(alice: User, tmp_path: Path) -> None:
    """Breaks when: the turn does not announce what it has stored."""
    async with staged(alice, tmp_path) as stage:
        await stored(lambda: add(stage.code, *OLD))
        await stored(
            lambda: Conversation.objects.filter(code=stage.code).update(compressed_through=4)
        )
        turn = await stage.say("Open KX-4021 again.", admit=by(MODEL))
        assert turn.status == "complete"
        changed = stage.told_of("message-changed")
        assert numbers(changed[0]["message"]["added_context"]) == (1,)
        asked_for = stage.upstream.chats[-1].json["messages"][-1]["content"]
        assert asked_for.endswith(changed[0]["message"]["added_context"])
        assert turn.manifest["looked_up"] == [[1, 1]]


async def test_the_tools_find_and_read_what_the_model_does_not_see(alice: User) -> None:
    """Bounded, this conversation's only, quoted as data.

    Breaks when: a tool is bound to another conversation, or its result is not bounded.
    """
    code = await stored(lambda: talked(alice, *OLD, "long " * 9_000, "KX-4021 " + "more " * 9_000))
    now = await stored(lambda: snapshot_with_tail(row_of(code).pk))
    search, read = recall_tools_of(now, COUNTER, PROFILE.sizes)
    assert (search.name, read.name) == ("search_history", "read_messages")
    assert search.most_tokens == PROFILE.sizes.ruler(0.05)
    for answer in (
        await search.run({"query": "ticket KX-4021"}),
        await read.run({"first": 1, "last": 6}),
        await read.run({"first": 5, "last": 5}),
    ):
        assert numbers(answer)
        assert COUNTER.count(answer) <= PROFILE.sizes.ruler(0.05)
    assert "/srv/data/report-2024.csv" in await read.run({"first": 1, "last": 1})
