from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from chatapp.conversations import profiles
from chatapp.conversations.turns import progress, sending
from chatapp.live.bus import Published
from chatapp.models import Conversation, Message, Turn
from chatapp.rendering.markdown.cost_estimate import LARGE
from chatapp.rendering.markdown.stream import StreamRenderer, Update
from chatapp.turns import checkpoints
from chatapp.turns.live_reply import LiveStream, Phase
from chatapp.turns.pacing import Pace
from chatapp.turns.runner import Runner
from chatapp.turns.turn import Job
from chatapp.turns.upkeep import Upkeep
from compression.exceptions import NothingToCompress
from tests.chatapp.stage import PATIENCE, Stage, reply_of, staged, stored, turn_of, until
from tests.chatapp.talking import by, expire, row_of
from tests.fake_scripts import (
    Chunk,
    Cut,
    Delay,
    Done,
    Finish,
    Raw,
    Reasoning,
    Script,
    Text,
    Wait,
    failing,
    saying,
)

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

MOST_STATEMENTS = 11
OF_THE_LOG = re.compile(r'"chatapp_(modelcall|dailycalls)"|"chatapp_conversation"."code" AS "code"')


@pytest.fixture
async def stage(alice: User, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(alice, tmp_path) as made:
        yield made


def held(*before: str, finish: bool = True) -> tuple[Script, asyncio.Event]:
    """A reply that says so much and then waits for the event."""
    event = asyncio.Event()
    rest = (Text(" and the rest"), Finish(), Done()) if finish else ()
    return Script(steps=(*map(Text, before), Wait(event), *rest)), event


def deltas(stage: Stage) -> str:
    """The text that the deltas make, checked to be without gap or overlap."""
    text = ""
    for delta in stage.told_of("delta"):
        assert delta["offset"] == len(text)
        text += delta["text"]
    return text


async def test_it_works(stage: Stage) -> None:
    stage.upstream.enqueue(saying("Hello to you too"))
    accepted = await stage.send("Hello")
    turn = await stage.ended(accepted)
    reply = await stage.reply(accepted)
    assert (turn.status, turn.finish_reason, turn.error) == ("complete", "stop", None)
    assert (reply.text, reply.status) == ("Hello to you too", "complete")
    assert reply.token_count > 4
    assert turn.prompt_tokens
    assert turn.completion_tokens
    assert turn.first_token_at is not None
    assert turn.manifest["seqs"] == [[1, 1]]
    (asked,) = stage.upstream.chats
    assert [one["role"] for one in asked.json["messages"]] == ["system", "user"]
    kinds = [one.type for one in stage.seen]
    assert kinds[:3] == ["message-added", "message-added", "turn-started"]
    assert kinds.index("delta") < kinds.index("turn-finished")
    assert deltas(stage) == reply.text
    await stage.told("title-changed", title="Hello")


async def test_a_whole_reply_is_not_lost_for_a_figure(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the provider counted cannot be stored: the reply can, and the count waits.

    Breaks when: storing what was counted raises for the database, or forgets it.
    """
    monkeypatch.setattr(
        "chatapp.conversations.profiles.alearn_usage",
        AsyncMock(side_effect=OperationalError("disk is full")),
    )
    stage.upstream.enqueue(saying("Hello to you too"))
    catalogue = stage.services.catalogue
    turn = await stage.ended(await stage.send("Hello"))
    await catalogue.store_usage()
    assert (turn.status, turn.error) == ("complete", None)
    assert turn.prompt_tokens
    monkeypatch.undo()
    await catalogue.store_usage()
    stored = await profiles.aprofile("fake-model")
    assert stored is not None
    assert stored.calibration == catalogue.known_profile("fake-model").calibration
    assert stored.longest_prompt == turn.prompt_tokens


async def test_what_a_provider_counted_is_stored_at_the_latest_at_the_shutdown(
    stage: Stage,
) -> None:
    """Breaks when: the runner ends without storing it."""
    await stage.say("Hello")
    await stage.runner.shutdown()
    stored = await profiles.aprofile("fake-model")
    assert stored is not None
    assert stored.longest_prompt


async def test_deltas_are_contiguous_and_make_the_final_text(stage: Stage) -> None:
    """Breaks when: the last words are stored and not told, or an offset counts what waits."""
    text = " ".join(f"word{n} é 😀" for n in range(300))
    stage.upstream.enqueue(saying(text, reasoning="let me think", seconds_a_word=0.001))
    accepted = await stage.send()
    await stage.ended(accepted)
    assert deltas(stage) == text == (await stage.reply(accepted)).text
    reasoning = "".join(one["reasoning"] for one in stage.told_of("delta"))
    assert reasoning == "let me think" == (await stage.reply(accepted)).reasoning
    assert len(stage.told_of("delta")) < 200, "deltas are coalesced"


async def test_i7_words_are_stored_before_they_are_shown(stage: Stage) -> None:
    """I7: whatever becomes of this process, what anybody was shown is in the database.

    Breaks when: a delta is published without waiting for its text to be stored.
    """
    text = " ".join(f"word{n}" for n in range(200))
    stage.upstream.enqueue(saying(text, seconds_a_word=0.005))
    behind: list[tuple[str, str]] = []
    deliver = stage.bus._deliver

    def delivered(conversation_id: int, published: Published | None) -> None:
        deliver(conversation_id, published)
        if published is not None and published.type == "delta":
            shown = published.json["offset"] + len(published.json["text"])
            # Looked at now, in the middle of the loop: what another process would find.
            with ThreadPoolExecutor(1) as pool:
                kept = pool.submit(kept_of, published.json["seq"]).result()
            if len(kept) < shown:
                behind.append((kept, published.json["text"]))

    stage.bus._deliver = delivered  # type: ignore[method-assign]
    turn = await stage.say()
    assert turn.status == "complete"
    assert turn.first_token_at is not None
    assert len(stage.told_of("delta")) > 5
    assert behind == []


def kept_of(seq: int) -> str:
    try:
        return Message.objects.values_list("text", flat=True).get(seq=seq)
    finally:
        connections.close_all()


async def test_a_reply_that_ends_while_it_is_being_stored_is_stored_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first words are shown without waiting for a second time.

    Breaks when: the end of a reply cuts off the flush under way.
    """
    taken: list[str] = []
    gate = asyncio.Event()
    store = progress.acheckpoint

    async def held_up(texts: Any) -> set[int]:
        taken.extend(one.text for one in texts)
        await gate.wait()
        return await store(texts)

    driver = stage.runner._driver
    finish = driver._finish

    async def finished(stream: LiveStream, ending: progress.Ending) -> None:
        gate.set()
        await finish(stream, ending)

    monkeypatch.setattr(progress, "acheckpoint", held_up)
    monkeypatch.setattr(driver, "_finish", finished)
    stage.upstream.enqueue(saying("Well, yes."))
    accepted = await stage.send()
    assert (await stage.ended(accepted)).status == "complete"
    assert deltas(stage) == "Well, yes."
    assert taken == ["Well, yes."]


LONG_CODE = "```python\n" + "".join(f"value_{n} = {n} * {n}\n" for n in range(400)) + "```\n"
LONG_TABLE = "| a | b |\n| - | - |\n" + "".join(f"| {n} | *{n}* |\n" for n in range(150)) + "\n"


async def test_i25_long_blocks_are_rendered_beside_the_event_loop(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I25, I22: in order all the same, and equal to what a fresh page shows.

    Breaks when: a long block is rendered where every other reply would wait, or two of its
    renderings meet.
    """
    on_the_loop: list[int] = []
    feed = StreamRenderer.feed

    def watched(self: StreamRenderer, text: str, thoughts: str = "") -> Update:
        if threading.current_thread() is threading.main_thread():
            on_the_loop.append(self.open_length + len(text))
        return feed(self, text, thoughts)

    monkeypatch.setattr(StreamRenderer, "feed", watched)
    text = f"Before.\n\n{LONG_CODE}\nBetween.\n\n{LONG_TABLE}After."
    stage.upstream.enqueue(saying(text, seconds_a_word=0.0005))
    await stage.say()
    assert deltas(stage) == text
    assert on_the_loop
    assert max(on_the_loop) <= LARGE
    html = [one.html for one in stage.seen if one.type == "delta"]
    closed = "".join(part(fragment, "closed") for fragment in html)
    assert (closed, part(html[-1], "open")) == StreamRenderer.split(text)


def part(fragment: str, name: str) -> str:
    """What a delta's fragment puts into the closed or the open part of its message."""
    found = re.search(rf'<div id="m-\d+-{name}"[^>]*>(.*?)</div>(?=<div id="m-|$)', fragment, re.S)
    return found[1] if found else ""


async def test_a_database_that_takes_nothing_holds_no_words_back_for_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply goes on before its viewers' eyes, and is stored as soon as that can be.

    Breaks when: ``Checkpoints.store`` waits without end, or gives up what could not be stored.
    """
    monkeypatch.setattr(checkpoints, "PATIENCE", 0.05)
    away = True
    store = progress.acheckpoint

    async def tried(texts: Any) -> set[int]:
        if away:
            raise OperationalError("database is locked")
        return await store(texts)

    monkeypatch.setattr(progress, "acheckpoint", tried)
    first, second = asyncio.Event(), asyncio.Event()
    steps = (Text("One "), Wait(first), Text("two "), Wait(second), Text("three"), Finish("stop"))
    stage.upstream.enqueue(Script(steps=steps))
    accepted = await stage.send()
    await stage.told("delta", text="One ")
    first.set()
    await stage.told("delta", text="two ")
    assert (await stage.reply(accepted)).text == ""
    away = False
    await until(lambda: reply_of(accepted).text == "One two ")
    assert (await stored(lambda: turn_of(accepted))).first_token_at is not None
    second.set()
    assert (await stage.ended(accepted)).status == "complete"
    assert deltas(stage) == "One two three"


async def test_text_is_stored_at_once(stage: Stage) -> None:
    """Also where nobody looks: who comes next reads it.

    Breaks when: it is stored for viewers only, or at the end.
    """
    script, event = held("as far as it came")
    stage.upstream.enqueue(script)
    stage.bus._viewers.clear()
    accepted = await stage.send()
    took = await until(lambda: reply_of(accepted).text == "as far as it came")
    assert took < 2.0
    assert (await stage.reply(accepted)).status == "streaming"
    event.set()
    await until(lambda: turn_of(accepted).finished_at is not None)


async def test_i5_nobody_is_shown_words_of_a_turn_that_another_process_has_ended(
    stage: Stage,
) -> None:
    """Found when its next words are to be stored, which is long before a lease is renewed.

    Breaks when: what was not stored is shown all the same.
    """
    gate = asyncio.Event()
    steps = (Text("One "), Wait(gate), Text("two "), Delay(30), Finish("stop"))
    stage.upstream.enqueue(Script(steps=steps))
    accepted = await stage.send()
    asked = await stage.upstream.came(1)
    await stage.told("delta", text="One ")

    def ended_elsewhere() -> None:
        expire(accepted.turn)
        assert len(progress.sweep(len)) == 1

    await stored(ended_elsewhere)
    gate.set()
    await asyncio.wait_for(asked.disconnected.wait(), PATIENCE)
    await until_gone(stage, accepted)
    assert deltas(stage) == (await stage.reply(accepted)).text == "One "
    assert stage.told_of("turn-finished") == []


NO_END = Script(steps=(Text("as far "), Text("as it came")))


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        (NO_END, "interrupted", "llm_cut"),
        (NO_END.followed_by(Cut()), "interrupted", "llm_cut"),
        (NO_END.followed_by(Chunk({"error": {"message": "boom"}})), "failed", None),
        (NO_END.followed_by(Raw(b"data: {oops\n\n")), "interrupted", None),
    ],
    ids=["L02 no finish reason", "L01 cut", "L15 error event", "L06 malformed"],
)
async def test_i6_a_reply_that_breaks_off_keeps_its_text_and_is_not_complete(
    stage: Stage, script: Script, status: str, code: str | None
) -> None:
    """Breaks when: the end of the stream counts as the end of the reply."""
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    reply = await stage.reply(accepted)
    assert turn.status == status
    assert (reply.text, reply.status) == ("as far as it came", "partial")
    assert turn.error is not None
    assert turn.error["partial_kept"] is True
    assert code is None or turn.error_code == code
    # L01: the conversation goes on, and the model sees what was kept.
    assert (await stage.say("Go on")).status == "complete"
    sent = stage.upstream.chats[-1].json["messages"]
    assert sent[2] == {"role": "assistant", "content": "as far as it came"}


@pytest.mark.parametrize(
    "script",
    [
        saying("   \n "),
        saying("", reasoning="thinking of nothing"),
        Script(steps=(Finish(), Done())),
        Script(body=b"", content_type="text/event-stream"),
        Script(body=b"<html>hello</html>", content_type="text/html"),
        Script(status=204, body=b""),
    ],
    ids=["blank", "only reasoning", "nothing", "empty body", "a page", "no content"],
)
async def test_i6_l03_l05_a_blank_reply_is_a_failure(stage: Stage, script: Script) -> None:
    """Breaks when: ``_ending`` takes any normal end as complete."""
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    assert turn.status == "failed"
    assert turn.error_code.startswith("llm_")
    reply = await stage.reply(accepted)
    assert reply.status == "partial"
    assert not reply.text.strip()
    assert (await stage.say("Still there?")).status == "complete"
    roles = [one["role"] for one in stage.upstream.chats[-1].json["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("reason", "status", "whole"),
    [
        ("length", "truncated", True),
        ("content_filter", "filtered", True),
        ("a word of their own", "complete", True),
    ],
)
async def test_l04_the_finish_reason_makes_the_status(
    stage: Stage, reason: str, status: str, whole: bool
) -> None:
    stage.upstream.enqueue(saying("so much", finish=reason))
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    assert (turn.status, turn.finish_reason) == (status, reason)
    assert ((await stage.reply(accepted)).status == "complete") == whole


async def test_l15_an_error_beside_the_length_is_told_beside_it(stage: Stage) -> None:
    """The reply was cut off by its length, and the server complained: the turn says both.

    Breaks when: the error makes the turn a failed one, or is dropped, or shows a secret.
    """
    complaint = Chunk({"error": {"message": "no room, Bearer key-of-the-tests", "code": 500}})
    stage.upstream.enqueue(Script(steps=(Text("so much"), Finish("length"), complaint, Done())))
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    assert (turn.status, turn.finish_reason) == ("truncated", "length")
    assert turn.error is not None
    assert turn.error["partial_kept"]
    assert "no room" in turn.error["fields"]["provider_message"]
    assert "key-of-the-tests" not in str(turn.error)
    reply = await stage.reply(accepted)
    assert (reply.text, reply.status) == ("so much", "complete")


async def test_l07_what_no_database_takes_is_stored_as_replacement(stage: Stage) -> None:
    pieces = ("a\x00b", "\ud800", "c\uffff", "😀")
    stage.upstream.enqueue(Script(steps=(*map(Text, pieces), Finish(), Done())))
    accepted = await stage.send()
    assert (await stage.ended(accepted)).status == "complete"
    text = (await stage.reply(accepted)).text
    assert "\x00" not in text
    text.encode()
    assert deltas(stage) == text
    assert text.startswith("a")
    assert text.endswith("😀")


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 500, 503])
async def test_l10_a_refusal_is_told_in_plain_words(stage: Stage, status: int) -> None:
    words = "Bad key sk-abcdefghijkl at https://u:p@host/v1"
    stage.upstream.handler = lambda _: failing(status, words)
    turn = await stage.say()
    assert turn.status == "failed"
    assert turn.error is not None
    said = str(turn.error)
    for secret in ("sk-abcdefghijkl", "u:p@", "key-of-the-tests", "Traceback", "127.0.0.1"):
        assert secret not in said
    assert turn.error["message"].endswith(".")


async def test_l10_nobody_listens(alice: User, tmp_path: Path) -> None:
    async with staged(alice, tmp_path) as stage:
        await stage.upstream.stop()
        turn = await stage.say()
    assert (turn.status, turn.error_code) == ("failed", "llm_unreachable")


async def test_l14_stop_keeps_the_text_and_closes_the_upstream(stage: Stage) -> None:
    """Breaks when: a body that was not read to its end leaves its connection open."""
    script, _ = held("as far as it came")
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    asked = await stage.upstream.came(1)
    await stage.told("delta")
    begun = time.monotonic()
    stage.runner.stop(accepted.turn)
    stage.runner.stop(accepted.turn)
    turn = await stage.ended(accepted)
    await asyncio.wait_for(asked.disconnected.wait(), PATIENCE)
    assert time.monotonic() - begun < 2
    assert (turn.status, turn.error) == ("stopped", None)
    assert (await stage.reply(accepted)).text == "as far as it came"
    stage.runner.stop(accepted.turn)
    assert len(stage.told_of("turn-finished")) == 1
    assert (await stage.say("again")).status == "complete"


async def test_l14_stop_before_the_first_piece(stage: Stage) -> None:
    script, _ = held()
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    await stage.upstream.came(1)
    stage.runner.stop(accepted.turn)
    turn = await stage.ended(accepted)
    assert turn.status == "stopped"
    assert (await stage.reply(accepted)).status == "partial"


async def test_l14_stop_before_the_task_has_run_at_all(stage: Stage) -> None:
    """Breaks when: ``stop`` cancels a task that has not begun: it would never store its end."""
    accepted = await stage.acceptance("Hello")
    starting = asyncio.create_task(stage.runner.start(accepted))
    starting.add_done_callback(lambda _: None)
    await asyncio.sleep(0)  # the task exists now and has not begun
    stage.runner.stop(accepted.turn)
    assert (await stage.ended(accepted)).status == "stopped"
    await starting
    await until_gone(stage, accepted)
    assert stage.upstream.chats == []


async def test_l14_stop_at_the_last_piece_leaves_one_end(stage: Stage) -> None:
    for _ in range(5):
        script, event = held("almost")
        stage.upstream.enqueue(script)
        accepted = await stage.send()
        await stage.upstream.came(len(stage.upstream.chats) + (not stage.upstream.chats))
        event.set()
        stage.runner.stop(accepted.turn)
        turn = await stage.ended(accepted)
        assert turn.status in {"stopped", "complete"}
        ends = [one for one in stage.told_of("turn-finished") if one["turn"] == accepted.turn]
        assert len(ends) == 1


async def test_a_stop_from_another_process_is_seen(stage: Stage) -> None:
    script, _ = held("as far as it came")
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    await stage.told("delta")
    begun = time.monotonic()
    await sending.arequest_stop(stage.owner.pk, stage.code)
    assert (await stage.ended(accepted)).status == "stopped"
    assert time.monotonic() - begun < 5


async def test_i7_who_asked_may_go_away_at_any_moment(stage: Stage) -> None:
    """A request that is cancelled while the message is stored: the turn runs all the same.

    Breaks when: ``begin`` awaits the acceptance and the start without a task of their own.
    """
    identity = uuid.uuid4()
    asking = asyncio.create_task(
        stage.runner.begin(stage.acceptance("Hello", client_msg_id=identity))
    )
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await stage.told("turn-finished", status="complete")
    again = await stage.runner.begin(stage.acceptance("Hello", client_msg_id=identity))
    assert not again.fresh
    assert len(stage.upstream.chats) == 1


async def test_what_waits_is_sent_when_the_turn_ends(stage: Stage) -> None:
    script, event = held("first")
    stage.upstream.enqueue(script)
    await stage.send("one")
    queued = await stage.runner.begin(stage.acceptance("two"))
    assert isinstance(queued, sending.Queued)
    event.set()
    await until(lambda: Turn.objects.filter(status="complete").count() == 2)
    texts = await stored(lambda: list(Message.objects.values_list("text", flat=True)))
    assert texts == ["one", "first and the rest", "two", "You said: two"]
    sent = stage.upstream.chats[1].json["messages"]
    assert [one["content"] for one in sent[1:]] == ["one", "first and the rest", "two"]


async def test_i1_what_waits_is_sent_though_the_process_died(stage: Stage) -> None:
    """The turn's process is gone before it sent what waits; another sweeps, and sends it.

    Breaks when: a sweep only ends turns.
    """
    accepted = await stage.acceptance("one", process_id="a process that died")
    await stage.acceptance("two")
    await stored(lambda: expire(accepted.turn))
    stage.runner.keep()
    await until(lambda: Turn.objects.filter(status="complete").count() == 1)
    statuses = await stored(lambda: list(Turn.objects.order_by("pk").values_list("status")))
    assert statuses == [("interrupted",), ("complete",)]
    assert (await stored(lambda: row_of(stage.code))).send_when_done is False


async def test_i1_what_waited_when_the_process_ended_is_sent_at_the_next_start(
    stage: Stage,
) -> None:
    """Breaks when: the first sweep does not look for orphaned queues."""
    script, _ = held("so far")
    stage.upstream.enqueue(script)
    accepted = await stage.send("one")
    await stage.told("delta")
    await stage.acceptance("two")
    await stage.runner.shutdown()
    assert (await stored(lambda: turn_of(accepted))).status == "interrupted"
    assert (await stored(lambda: row_of(stage.code))).draft == "two"
    stage.runner = Runner(stage.services, stage.bus, stage.announcer)
    stage.runner.keep()
    await until(lambda: Message.objects.filter(text="You said: two").exists())


async def test_i5_shutdown_ends_every_turn_with_its_text(stage: Stage) -> None:
    """Breaks when: ``shutdown`` cancels without waiting for the last writes."""
    script, _ = held("as far as it came")
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    await stage.told("delta")
    await stage.runner.shutdown()
    turn, reply = await stored(lambda: (turn_of(accepted), reply_of(accepted)))
    assert (turn.status, turn.error_code) == ("interrupted", "interrupted")
    assert (reply.text, reply.status) == ("as far as it came", "partial")


async def test_a_shutdown_before_the_first_word_says_so(stage: Stage) -> None:
    """Breaks when: whatever a shutdown ends is said to have been written in part."""
    script, _ = held()
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    await stage.upstream.came(1)
    await stage.runner.shutdown()
    turn = await stored(lambda: turn_of(accepted))
    assert turn.status == "interrupted"
    assert turn.error is not None
    assert turn.error["partial_kept"] is False
    assert "before the reply began" in turn.error["message"]


async def test_i27_a_turn_whose_lease_is_lost_writes_nothing_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process swept it: the upstream is closed at the next renewal, the end stands.

    Breaks when: ``_renew`` does not cancel a turn that it has lost. That its last write changes
    nothing is the database's to keep: it names its process.
    """
    monkeypatch.setattr("chatapp.turns.upkeep.RENEWAL_INTERVAL", 0.2)
    script, _ = held("as far as it came")
    stage.upstream.enqueue(script)
    accepted = await stage.send()
    asked = await stage.upstream.came(1)
    await stage.told("delta")
    await stored(
        lambda: Turn.objects.filter(pk=accepted.turn).update(
            status="interrupted", finished_at=timezone.now(), lease_token="another"
        )
    )
    await asyncio.wait_for(asked.disconnected.wait(), PATIENCE)
    await until_gone(stage, accepted)
    assert (await stored(lambda: turn_of(accepted))).status == "interrupted"
    assert stage.told_of("turn-finished") == []


async def until_gone(stage: Stage, accepted: sending.Accepted) -> None:
    async with asyncio.timeout(PATIENCE):
        while accepted.turn in stage.runner._streams:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_i31_deletion_ends_nothing_well(stage: Stage) -> None:
    """A conversation deleted before its turn reads it: no model is asked.

    Breaks when: ``snapshot_with_tail`` reads deleted conversations.
    """
    accepted = await stage.acceptance("Hello")
    await stored(lambda: Conversation.objects.update(deleted_at=timezone.now()))
    # What was read with the message is from before.
    await stage.runner.start(replace(accepted, snapshot=None))
    turn = await stage.ended(accepted)
    assert (turn.status, turn.error_code) == ("failed", "not_found")
    assert stage.upstream.chats == []


async def test_many_turns_at_once(stage: Stage) -> None:
    """One runner, many conversations; each gets its own text."""
    codes = await stored(
        lambda: [str(Conversation.objects.create(owner=stage.owner).code) for _ in range(10)]
    )
    begun = []
    for number, code in enumerate(codes):
        acceptance = sending.aaccept(
            stage.owner.pk,
            code,
            text=f"number {number}",
            client_msg_id=uuid.uuid4(),
            tokens=8,
            admit=by("fake-model"),
            process_id=stage.runner.process_id,
        )
        begun.append(await stage.runner.begin(acceptance))
    await until(lambda: Turn.objects.filter(status="complete").count() == 10)
    for number, accepted in enumerate(begun):
        assert isinstance(accepted, sending.Accepted)
        assert (await stage.reply(accepted)).text == f"You said: number {number}"


async def test_only_reasoning_is_told_and_kept(stage: Stage) -> None:
    stage.upstream.enqueue(
        Script(steps=(Reasoning("hm"), Text("so"), Finish(), Done())),
    )
    accepted = await stage.send()
    await stage.ended(accepted)
    reply = await stage.reply(accepted)
    assert (reply.reasoning, reply.text) == ("hm", "so")


async def test_the_log_says_nothing_of_a_usual_turn(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await stage.say()
    assert caplog.records == []


async def test_a_renewal_during_the_last_write_takes_nothing_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ended turn has no lease; what waits behind it is sent all the same.

    Breaks when: ``_renew`` counts a turn as lost whose last write is under way.
    """
    accepted = await stage.send("Hello")
    await stage.ended(accepted)
    job = Job(
        conversation_id=accepted.conversation_id,
        owner_id=accepted.owner_id,
        turn=accepted.turn,
        reply_seq=accepted.reply_seq,
        reply_id=accepted.reply_id,
        model=accepted.model,
    )
    stream = LiveStream(job=job, event_no=accepted.event_no, pace=Pace())
    upkeep = Upkeep(
        process_id=stage.runner.process_id,
        streams={accepted.turn: stream},
        announcer=stage.announcer,
        stop=stage.runner.stop,
        send_orphaned_queues=stage.runner.send_orphaned_queues,
        store_usage=stage.services.catalogue.store_usage,
        count=len,
    )
    monkeypatch.setattr("chatapp.turns.upkeep.RENEWAL_INTERVAL", 0.0)
    await upkeep._renew()
    assert stream.lost
    upkeep._streams = {accepted.turn: LiveStream(job=job, event_no=1, phase=Phase.FINISHING)}
    await upkeep._renew()
    assert not upkeep._streams[accepted.turn].lost


@pytest.mark.parametrize(
    ("error", "level", "traced"),
    [(NothingToCompress(), logging.INFO, False), (ValueError("a bug"), logging.ERROR, True)],
)
async def test_an_ordinary_refusal_leaves_no_traceback(
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    level: int,
    traced: bool,
) -> None:
    """Whoever asked was told; a traceback is for what somebody has to mend.

    Breaks when: what a person was refused is logged as what broke.
    """

    async def refuse() -> None:
        raise error

    caplog.set_level(logging.INFO, logger="chatapp.turns.runner")
    with pytest.raises(type(error)):
        await stage.runner.spawn(refuse(), "what is refused")
    await asyncio.sleep(0)
    (record,) = [one for one in caplog.records if "what is refused" in one.getMessage()]
    assert (record.levelno, record.exc_info is not None) == (level, traced)


async def test_a_turn_takes_few_statements(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the acceptance of its message to its end, once the process has read the conversation.

    Five to accept it, two for its first piece, four to end it. What the model's profile learns from
    the tokens that the server counted is stored apart from turns, and so is the index of calls.

    Breaks when: a turn reads something twice, or writes it for a second time.
    """
    asked: list[str] = []
    execute = CursorWrapper.execute

    def counted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)", sql) and not OF_THE_LOG.search(sql):
            asked.append(sql)
        return execute(self, sql, params)

    # It looks for Stops and dead processes now and then, whatever turns do.
    monkeypatch.setattr(Upkeep, "begin", lambda self: None)
    await stage.say("one")
    await stage.rest()
    await stage.services.catalogue.profile("fake-model")
    monkeypatch.setattr(CursorWrapper, "execute", counted)
    ended = asyncio.Event()
    finish = progress.afinish

    async def finished(*args: Any, **kwargs: Any) -> Any:
        result = await finish(*args, **kwargs)
        statements.extend(asked)
        ended.set()
        return result

    statements: list[str] = []
    monkeypatch.setattr(progress, "afinish", finished)
    stage.upstream.enqueue(saying("Yes"))
    asked.clear()
    await stage.send("two")
    await ended.wait()
    assert len(statements) <= MOST_STATEMENTS, "\n".join(statements)
