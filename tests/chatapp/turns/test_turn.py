"""Turns whose conversation must be made to fit first, with the model over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.context.request import ConversationSnapshot, request_sizes
from chatapp.context.tokens import message_tokens
from chatapp.conversations import profiles
from chatapp.conversations.turns import replacing
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.profiles import Profile
from chatapp.models import Conversation, Message, ModelProfile, Summary, Turn, TurnStatus
from chatapp.profile_store import StoredProfiles
from chatapp.turns import runner
from compression import services
from compression.exceptions import NothingToCompress
from compression.types import Outcome, Trigger
from tests.chatapp.activity.log_lines import lines_of
from tests.chatapp.context.test_request import check_shape
from tests.chatapp.stage import COUNTER, PATIENCE, Stage, staged, stored, turn_of, until
from tests.chatapp.talking import row_of
from tests.fake_scripts import (
    Chunk,
    Done,
    Finish,
    Json,
    Script,
    Text,
    Tool,
    Usage,
    Wait,
    calling,
    default_answer,
    failing,
    is_summary_request,
    saying,
    summary_delta,
)

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

MODEL = "fake-model"
WINDOW = 4096
# B is 3,072 calibrated tokens.
WORDS = "the harbour of Malmö opens at nine and closes at five every day of the week "


def fill(code: str, turns: int, *, words: int = 60) -> None:
    """So many ended turns of about ``words`` words a message, straight into the database."""
    row = row_of(code)
    for number in range(turns):
        turn = Turn.objects.create(
            conversation=row, status=TurnStatus.COMPLETE, finished_at=row.created_at
        )
        for role in ("user", "assistant"):
            seq = row.next_seq
            row.next_seq += 1
            text = f"m{seq} number {number}: " + WORDS * (words // 15)
            Message.objects.create(
                conversation=row,
                seq=seq,
                turn=turn,
                role=role,
                text=text,
                token_count=message_tokens(COUNTER, text),
                created_at=row.created_at,
            )
    row.save()


def summaries_of(stage: Stage) -> list[Json]:
    return [one.json for one in stage.upstream.chats if is_summary_request(one.json)]


def asked_of(stage: Stage) -> list[Json]:
    return [one.json for one in stage.upstream.chats if not is_summary_request(one.json)]


def calibrated(request: Json, calibration: float) -> int:
    ruler = sum(message_tokens(COUNTER, one["content"] or "") for one in request["messages"])
    return ceil(ruler * calibration)


async def compressible(stage: Stage, turns: int = 12) -> None:
    await stored(lambda: fill(stage.code, turns))


async def test_a_full_conversation_is_compressed_and_the_turn_waits(
    alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: the compression is told before the turn that waits for it."""
    # Nothing but what follows has the turn announced.
    monkeypatch.setattr(runner, "HEAD_START", PATIENCE)
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await compressible(stage)
        accepted = await stage.send("And now?")
        turn = await stage.ended(accepted)
        assert turn.status == "complete"
        started = await stage.told("compression-started")
        completed = await stage.told("compression-completed")
        row = await stored(lambda: row_of(stage.code))
    assert (started["trigger"], started["locks_input"]) == ("threshold", True)
    assert completed["success"]
    assert completed["usage_after"] < completed["usage_before"]
    kinds = [one.type for one in stage.seen]
    assert kinds.index("turn-started") < kinds.index("compression-started")
    assert kinds.index("compression-completed") < kinds.index("delta")
    # A number out of its order is a gap to a viewer, who is told of the state instead.
    assert [one.event_no for one in stage.seen] == sorted(one.event_no for one in stage.seen)
    assert row.compression_version == 1
    assert 0 < row.compressed_through < accepted.message_seq  # type: ignore[operator]
    (request,) = asked_of(stage)
    check_shape(tuple(request["messages"]))
    system = request["messages"][0]["content"]
    assert row.compressed_context in system
    # Every message is summarised or sent, and none is both (I8).
    sent = [one["content"] for one in request["messages"][1:]]
    first = row.compressed_through + 1
    assert sent[0].startswith(f"m{first} ")
    assert len(sent) == accepted.message_seq - row.compressed_through  # type: ignore[operator]
    assert turn.manifest["boundary"] == row.compressed_through
    assert turn.manifest["summary_version"] == 1


@pytest.mark.parametrize("turns", [1, 4, 7, 9, 10, 11, 13, 20, 40])
async def test_i16_no_request_is_above_the_budget(alice: User, tmp_path: Path, turns: int) -> None:
    """Of conversations of many sizes, counted anew as it was sent.

    Breaks when: ``prepare`` returns a request that the policy has not judged, or the reserve is
    left out of the budget.
    """
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await compressible(stage, turns)
        for _ in range(2):
            calibration = await calibration_of(stage)
            turn = await stage.say("And now?")
            assert turn.status == "complete"
            assert calibrated(asked_of(stage)[-1], calibration) <= WINDOW - WINDOW // 4
            assert asked_of(stage)[-1]["max_tokens"] == WINDOW // 4
            assert turn.manifest["usage"] <= 1.0


async def calibration_of(stage: Stage) -> float:
    return (await stage.services.catalogue.profile(MODEL)).calibration


def without_summaries(request: Json) -> Script:
    if is_summary_request(request):
        return failing(500, "The summary model is down.")
    return default_answer(request)


async def test_i11_with_the_summary_model_down_the_turn_is_answered_by_the_ladder(
    alice: User, tmp_path: Path
) -> None:
    """Breaks when: a failing summariser ends the turn, or its error text becomes the summary."""
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        stage.upstream.handler = without_summaries
        await compressible(stage)
        turn = await stage.say("And now?")
        assert turn.status == "complete"
        row = await stored(lambda: row_of(stage.code))
        active = await stored(lambda: Summary.objects.get(version=1))
    assert active.degraded
    assert row.compressed_through > 0
    assert "is down" not in row.compressed_context
    assert len(summaries_of(stage)) <= 6, "retries are bounded"
    check_shape(tuple(asked_of(stage)[0]["messages"]))


def compressed_by_hand(
    stage: Stage,
    snapshot: ConversationSnapshot,
    profile: Profile,
    on_started: Callable[[], object] | None = None,
) -> Coroutine[Any, Any, Outcome]:
    """A run as ``/compact`` begins it."""
    sized = request_sizes(
        snapshot,
        COUNTER,
        window=profile.window,
        reserve=profile.reserve,
        calibration=profile.calibration,
    )
    return services.compress(
        snapshot.conversation_id,
        engine=stage.services.engine(profile),
        sizes=sized,
        trigger=Trigger.MANUAL,
        on_started=on_started,
    )


async def test_a_run_that_finds_nothing_to_do_leaves_no_gap_for_what_follows(
    alice: User, tmp_path: Path
) -> None:
    """It has raised the number of changes: whoever looks on reads it at once.

    Breaks when: nobody is told of ``compression_withdrawn``.
    """
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        snapshot = await stage.snapshot()
        profile = await stage.services.catalogue.profile(MODEL)
        async with stage.bus.subscribe(snapshot.conversation_id) as viewer:
            with pytest.raises(NothingToCompress):
                await compressed_by_hand(stage, snapshot, profile)
            assert await asyncio.wait_for(viewer.next(), PATIENCE) is None


async def test_c01_a_message_that_comes_while_compressing_is_in_the_tail(
    alice: User, tmp_path: Path
) -> None:
    """Breaks when: the boundary is put at the end of the conversation instead of the span's."""
    write = asyncio.Event()

    def slow(request: Json) -> Script:
        if not is_summary_request(request):
            return default_answer(request)
        delta = json.dumps(summary_delta(request))
        return Script(steps=(Wait(write), Text(delta), Finish(), Done()))

    async with staged(alice, tmp_path, window=WINDOW) as stage:
        stage.upstream.handler = slow
        await compressible(stage)
        snapshot = await stage.snapshot()
        begins = asyncio.Event()
        profile = await stage.services.catalogue.profile(MODEL)
        run = compressed_by_hand(stage, snapshot, profile, on_started=begins.set)
        await stage.runner.begin_compression(snapshot.conversation_id, run, begins)
        accepted = await stage.send("What came meanwhile?")
        await until(lambda: Message.objects.filter(text="What came meanwhile?").exists())
        # The turn waits: no model is asked for a reply.
        assert asked_of(stage) == []
        assert (await stored(lambda: turn_of(accepted))).finished_at is None
        write.set()
        turn = await stage.ended(accepted)
        row = await stored(lambda: row_of(stage.code))
    assert turn.status == "complete"
    assert 0 < row.compressed_through < accepted.message_seq  # type: ignore[operator]
    (request,) = asked_of(stage)
    assert request["messages"][-1]["content"] == "What came meanwhile?"
    assert row.compressed_context in request["messages"][0]["content"]
    check_shape(tuple(request["messages"]))


async def test_a_stop_while_compressing_ends_the_turn_and_gives_the_lease_back(
    alice: User, tmp_path: Path
) -> None:
    never = asyncio.Event()

    def slow(request: Json) -> Script:
        return Script(steps=(Wait(never),)) if is_summary_request(request) else saying("no")

    async with staged(alice, tmp_path, window=WINDOW) as stage:
        stage.upstream.handler = slow
        await compressible(stage)
        accepted = await stage.send("And now?")
        await stage.told("compression-started")
        asked = await stage.upstream.came(1)
        stage.runner.stop(accepted.turn)
        assert (await stage.ended(accepted)).status == "stopped"
        await asyncio.wait_for(asked.disconnected.wait(), PATIENCE)
        await until(lambda: row_of(stage.code).compression_token == "")
        assert (await stored(lambda: row_of(stage.code))).compression_version == 0


def overflowing(window: int | None, limit: int) -> Any:
    """A server that refuses requests above ``limit`` of its own tokens."""

    def answer(request: Json) -> Script:
        size = sum(len(one["content"] or "") for one in request["messages"]) // 4
        if is_summary_request(request) or size <= limit:
            return default_answer(request)
        named = f"This model's maximum context length is {window} tokens. " if window else ""
        return failing(400, f"{named}Your request is too long.", code="context_length_exceeded")

    return answer


async def test_l09_an_overflow_is_believed_once_the_window_is_learned(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=16_384) as stage:
        await compressible(stage, 16)
        stage.upstream.handler = overflowing(4096, 2000)
        turn = await stage.say("And now?")
        assert turn.status == "complete", turn.error
        learned = await stored(lambda: ModelProfile.objects.get(name=MODEL))
        row = await stored(lambda: row_of(stage.code))
    assert profiles.in_force(learned) == {"window": 4096}
    assert learned.window == 16_384, "its own word is not forgotten"
    assert len(asked_of(stage)) == 2
    assert row.compressed_through > 0
    assert turn.manifest["window"] == 4096


async def test_l09_a_server_that_always_refuses_is_asked_twice_and_no_more(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        stage.upstream.handler = overflowing(None, -1)
        await compressible(stage, 2)
        turn = await stage.say("And now?")
        assert (turn.status, turn.error_code) == ("failed", "llm_context_overflow")
        learned = await stored(lambda: ModelProfile.objects.get(name=MODEL))
    assert len(asked_of(stage)) == 2
    assert profiles.in_force(learned) == {"window": int(WINDOW * 0.9)}


async def test_the_operators_window_gives_way_to_a_smaller_one_that_the_server_enforces(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path) as stage:
        catalogue = Catalogue(stage.services.client, StoredProfiles(window=100_000), window=100_000)
        assert (await catalogue.profile(MODEL)).window == 100_000
        await catalogue.learn(MODEL, "window", 5000)
        assert (await catalogue.profile(MODEL)).window == 5000


async def test_what_cannot_be_compressed_is_truncated_and_said(alice: User, tmp_path: Path) -> None:
    """Automatic compression is off: the oldest turns are left out, and nothing is deleted."""
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await compressible(stage, 16)
        await stored(lambda: Conversation.objects.update(compression_off=True))
        turn = await stage.say("And now?")
        assert turn.status == "complete"
        row = await stored(lambda: row_of(stage.code))
        assert await stored(Message.objects.count) == 34
    assert row.truncated_through > 0
    assert row.compressed_through == 0
    assert turn.manifest["truncated_through"] == row.truncated_through
    (request,) = asked_of(stage)
    assert request["messages"][1]["content"].startswith(f"m{row.truncated_through + 1} ")
    check_shape(tuple(request["messages"]))
    (changed,) = stage.told_of("summary-changed")
    assert changed["compression"]["truncated_count"] == row.truncated_through
    assert changed["compression"]["off"]


async def test_a_giant_question_is_refused_in_plain_words_before_any_model_is_asked(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        turn = await stage.say("word " * 20_000)
        assert turn.status == "blocked"
        assert turn.error is not None
        assert turn.error["code"] == "blocked"
        assert turn.error["fields"]["total"] > turn.manifest.get("budget", WINDOW)
    assert stage.upstream.chats == []


async def test_a_giant_reply_before_the_question_is_shortened_to_fit(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        accepted = await stage.send("one")
        await stage.ended(accepted)
        giant = "word " * 20_000
        await stored(
            lambda: Message.objects.filter(pk=accepted.reply_id).update(
                text=giant, token_count=message_tokens(COUNTER, giant)
            )
        )
        turn = await stage.say("and?")
        assert turn.status == "complete", turn.error
        assert calibrated(asked_of(stage)[-1], await calibration_of(stage)) <= WINDOW


async def test_a_summary_is_prepared_in_the_background_and_applied_without_waiting(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: fill(stage.code, 8))
        for _ in range(12):
            turn = await stage.say("And now? " + WORDS * 3)
            assert turn.status == "complete"
            if summaries_of(stage):
                break
        await until(lambda: Summary.objects.filter(status="ready").exists())
        assert (await stored(lambda: row_of(stage.code))).compression_version == 0
        calls = len(summaries_of(stage))
        for _ in range(12):
            await stage.say("And now? " + WORDS * 6)
            if stage.told_of("compression-completed")[1:]:
                break
        row = await stored(lambda: row_of(stage.code))
    assert row.compression_version >= 1
    applied = stage.told_of("compression-completed")[1]
    assert (applied["trigger"], applied["success"]) == ("background", True)
    assert applied["duration"] < 1.0
    started = stage.told_of("compression-started")
    assert [one["locks_input"] for one in started][:1] == [False]
    assert calls >= 1
    # Each call is noted with its conversation (I29).
    noted = [one["kind"] for one in lines_of(tmp_path) if one["conversation"] == str(row.code)]
    assert noted.count("summary") == len(summaries_of(stage))


async def test_i17_turn_after_turn_the_next_request_begins_with_the_last(
    alice: User, tmp_path: Path
) -> None:
    """Over the whole way, database and wire included.

    Breaks when: a stored text differs from the one that was sent, by a stripped space for one.
    """
    async with staged(alice, tmp_path) as stage:
        texts = [" leading", "trailing \n", "é😀\r\n", "x" * 500, "[no reply: failed]"]
        stage.upstream.enqueue(saying("one  "), saying("two\n"), saying(" "), saying("four"))
        for text in texts:
            await stage.say(text)
    bodies = [[json.dumps(one) for one in body["messages"]] for body in asked_of(stage)]
    assert len(bodies) == 5
    for earlier, later in pairwise(bodies):
        assert later[: len(earlier)] == earlier
        assert len(later) == len(earlier) + 2


async def test_a_model_without_a_system_role_is_asked_without_one(
    alice: User, tmp_path: Path
) -> None:
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await profiles.alearn(MODEL, "supports_system_role", False)
        await compressible(stage)
        assert (await stage.say("And now?")).status == "complete"
        row = await stored(lambda: row_of(stage.code))
    (request,) = asked_of(stage)
    check_shape(tuple(request["messages"]), system_role=False)
    assert row.compressed_context in request["messages"][0]["content"]
    # Nor is it asked with one for the summary.
    asked = [{part["role"] for part in one.json["messages"]} for one in stage.upstream.chats]
    assert len(asked) > 1
    assert not any("system" in roles for roles in asked)


async def test_regenerating_sends_nothing_superseded(alice: User, tmp_path: Path) -> None:
    """I14, on the wire. Breaks when: the tail is read without ``live``."""
    async with staged(alice, tmp_path) as stage:
        stage.upstream.enqueue(saying("the words of the first reply"))
        await stage.say("one")
        again = await stage.runner.begin(
            replacing.aregenerate(
                stage.owner.pk, stage.code, model=MODEL, process_id=stage.runner.process_id
            )
        )
        await stage.ended(again)
    assert "first reply" not in json.dumps(asked_of(stage)[1])
    assert asked_of(stage)[1]["messages"] == asked_of(stage)[0]["messages"]


WEATHER = Tool("get_weather", '{"city": "Malmö"}')


@pytest.mark.parametrize(
    ("script", "status", "code", "words"),
    [
        (calling(WEATHER), "failed", "llm_tool_call", "call a tool (get_weather), and none"),
        (saying("", finish="tool_calls"), "failed", "llm_tool_call", "call a tool, and none"),
        (saying("", reasoning="Hm. "), "failed", "llm_only_reasoning", "said nothing"),
        (saying("", reasoning="Hm. ", finish="length"), "truncated", "llm_only_reasoning", "room"),
        (saying(""), "failed", "llm_empty", "sent an empty reply"),
        (saying("", finish="content_filter"), "filtered", "llm_filtered", "content filter"),
        (
            Script(
                steps=(
                    Chunk({"choices": [{"index": 0, "delta": {"refusal": "I will not."}}]}),
                    Finish(),
                    Done(),
                )
            ),
            "filtered",
            "llm_refused",
            "The model refused",
        ),
    ],
)
async def test_a_reply_without_words_is_told_as_what_it_was(
    alice: User, tmp_path: Path, script: Script, status: str, code: str, words: str
) -> None:
    """A tool call was told as "answered with nothing", a refusal as a provider's filter.

    Breaks when: ``_ending`` looks at the text alone.
    """
    async with staged(alice, tmp_path) as stage:
        stage.upstream.enqueue(script)
        turn = await stage.say("What is the weather in Malmö?")
        assert turn.error is not None
        assert (turn.status, turn.error["code"]) == (status, code)
        assert words in turn.error["message"]
        # And the conversation goes on.
        assert (await stage.say("Hello")).status == "complete"
        check_shape(tuple(asked_of(stage)[-1]["messages"]))


async def test_words_beside_a_tool_call_stay(alice: User, tmp_path: Path) -> None:
    """Breaks when: a call ends a reply that has a text."""
    async with staged(alice, tmp_path) as stage:
        both = Script(steps=(Text("I will look."), WEATHER, Finish("tool_calls"), Done()))
        stage.upstream.enqueue(both)
        accepted = await stage.send("What is the weather?")
        assert (await stage.ended(accepted)).status == "complete"
        assert (await stage.reply(accepted)).text == "I will look."


async def test_a_reply_that_may_not_be_so_long_is_asked_for_shorter(
    alice: User, tmp_path: Path
) -> None:
    """A server whose replies are limited, without saying so before: the turn is answered.

    Breaks when: the refusal is the end of the turn, or its figure is taken for the window.
    """

    def limited(request: Json) -> Script:
        if request["max_tokens"] > 500:
            return failing(400, "max_tokens must be <= 500")
        return default_answer(request)

    async with staged(alice, tmp_path) as stage:
        stage.upstream.handler = limited
        assert (await stage.say("Hello")).status == "complete"
        learned = await stored(lambda: ModelProfile.objects.get(name=MODEL))
    assert profiles.in_force(learned) == {"max_output_tokens": 500}
    assert [one["max_tokens"] for one in asked_of(stage)] == [2048, 500]


async def test_a_wrong_window_of_one_refusal_is_taken_back_by_a_longer_reply(
    alice: User, tmp_path: Path
) -> None:
    """One wrong figure left a model at 4,096 for ever: here it lasts until it is spoken against.

    Breaks when: a reported prompt above the learned window changes nothing.
    """

    def told(request: Json) -> Script:
        return saying("Yes.", usage=Usage(prompt_tokens=5000))

    async with staged(alice, tmp_path, window=16_384) as stage:
        stage.upstream.enqueue(
            failing(400, "Maximum context length is 4096 tokens.", code="context_length_exceeded")
        )
        assert (await stage.say("Hello")).status == "complete"
        learned = await stored(lambda: ModelProfile.objects.get(name=MODEL))
        assert profiles.in_force(learned) == {"window": 4096}
        stage.upstream.handler = told
        assert (await stage.say("And now?")).status == "complete"
        learned = await stored(lambda: ModelProfile.objects.get(name=MODEL))
    assert profiles.in_force(learned) == {}
    assert (learned.window, learned.longest_prompt) == (16_384, 5000)
