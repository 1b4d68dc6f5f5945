"""What a turn makes of an upstream that is slow, busy, or never ends."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.llm.openai_compatible.limits import Limits
from chatapp.rendering.articles import article_of, render_article
from tests.chatapp.stage import Stage, staged, turn_of, until
from tests.fake_scripts import (
    Chunk,
    Delay,
    Done,
    Finish,
    KeepAlive,
    Raw,
    Script,
    Step,
    Text,
    Tool,
    Wait,
    calling,
    failing,
    saying,
)

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

SHORT = Limits(
    first_token=1.0, between_tokens=0.6, total=2.0, retry_budget=1.5, max_reply_characters=2000
)


@pytest.fixture
async def stage(alice: User, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(alice, tmp_path) as made:
        limit(made, SHORT)
        yield made


def limit(stage: Stage, limits: Limits) -> None:
    """Give the stage's client other limits: minutes are for the real ones."""
    client: Any = stage.services.client
    client._client._limits = limits


async def test_l08_a_wait_within_the_budget_is_waited_for(stage: Stage) -> None:
    """And its viewers are told meanwhile, with the seconds that are left; so is who comes then.

    Breaks when: a busy server is not asked again, nobody is told why nothing comes, or only who was
    there is told, or the turn keeps its reason when the first piece has come, or takes it for the
    error that it ended with.
    """
    gate = asyncio.Event()
    here = Script(steps=(Text("He"), Wait(gate), *saying("re").steps))
    stage.upstream.enqueue(failing(429, headers={"Retry-After": "1"}), here)
    limit(stage, replace(SHORT, between_tokens=30.0, total=30.0))
    begun = time.monotonic()
    accepted = await stage.send()
    told = await stage.told("error", turn=accepted.turn)
    assert time.monotonic() - begun < 0.9
    assert told["seq"] == accepted.reply_seq
    assert (told["error"]["code"], told["error"]["retry_after"]) == ("llm_rate_limited", 1.0)
    (html,) = [one.html for one in stage.seen if one.type == "error"]
    assert f'id="m-{accepted.reply_seq}-late"' in html
    assert 'data-retry-after="1.0"' in html
    await until(lambda: turn_of(accepted).retry_notice is not None)
    fresh = await stage.services.apage(stage.owner.pk, stage.code)
    assert fresh.turn is not None
    assert (fresh.turn.error, fresh.turn.retry_notice) == (None, told["error"])
    # Clients read both under one name.
    as_told = fresh.turn.as_json()
    assert (as_told["error"], "retry_notice" in as_told) == (told["error"], False)
    (late,) = re.findall(r'data-retry-after="1.0" data-from="[^"]+" data-asked', html)
    assert late in render_article(article_of(fresh.messages[-1], turn=fresh.turn))
    await stage.told("delta", turn=accepted.turn)
    assert await until(lambda: turn_of(accepted).retry_notice is None) < 10
    gate.set()
    turn = await stage.ended(accepted)
    assert turn.status == "complete"
    assert 0.9 < time.monotonic() - begun < 10


@pytest.mark.parametrize(("wait", "told"), [("2", 2.0), ("119", 119.0), ("121", 121.0)])
async def test_l08_a_longer_one_is_told_with_its_countdown(
    stage: Stage, wait: str, told: float
) -> None:
    """The turn ends at once, with the seconds on its card, and nothing stays locked.

    Breaks when: the error of the provider loses its ``retry_after`` on the way to the screen.
    """
    stage.upstream.enqueue(failing(429, headers={"Retry-After": wait}))
    begun = time.monotonic()
    turn = await stage.say()
    assert time.monotonic() - begun < 5
    assert stage.told_of("error") == []
    assert (turn.status, turn.error_code) == ("failed", "llm_rate_limited")
    assert turn.error is not None
    assert turn.error["retry_after"] == told
    (html,) = [one.html for one in stage.seen if one.type == "turn-finished"]
    assert f'data-retry-after="{told}"' in html
    assert (await stage.say("Again")).status == "complete"


@pytest.mark.parametrize("wait", ["0", "nonsense", "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_l08_no_usable_wait_is_a_short_one(stage: Stage, wait: str) -> None:
    stage.upstream.enqueue(failing(429, headers={"Retry-After": wait}), saying("Here"))
    assert (await stage.say()).status == "complete"


@pytest.mark.parametrize(
    ("steps", "limits"),
    [
        ((KeepAlive(),), SHORT),
        ((Text("Well"), KeepAlive()), SHORT),
        (tuple(step for _ in range(40) for step in (Text("so "), Delay(0.4))), SHORT),
        ((Delay(30),), SHORT),
    ],
    ids=["comments", "comments after a word", "a word now and then", "headers, then nothing"],
)
async def test_i27_l11_every_turn_ends_and_its_request_with_it(
    stage: Stage, steps: tuple[Step, ...], limits: Limits
) -> None:
    """Breaks when: a limit is taken off ``Limits``, or comments count as content."""
    limit(stage, limits)
    stage.upstream.enqueue(Script(steps=steps))
    begun = time.monotonic()
    turn = await stage.say()
    assert time.monotonic() - begun < 8
    assert turn.error_code == "llm_timeout"
    async with asyncio.timeout(2):
        await stage.upstream.chats[0].disconnected.wait()


async def test_l12_a_reply_without_end_is_capped_and_kept(stage: Stage) -> None:
    """Breaks when: ``max_reply_characters`` is not counted."""
    limit(stage, replace(SHORT, total=30.0))
    steps = tuple(Text("word " * 20) for _ in range(5000))
    stage.upstream.enqueue(Script(steps=(*steps, KeepAlive())))
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    reply = await stage.reply(accepted)
    assert turn.status in {"truncated", "failed", "interrupted"}
    assert turn.error_code == "llm_reply_too_long"
    assert len(reply.text) == 2000
    async with asyncio.timeout(2):
        await stage.upstream.chats[0].disconnected.wait()


async def test_n06_endless_empty_pieces_end_the_turn_and_keep_its_text(stage: Stage) -> None:
    """As fast as a server can send them, long before any limit of time.

    Breaks when: what says nothing is bounded by time only.
    """
    limit(stage, replace(SHORT, first_token=60.0, between_tokens=60.0, total=100.0))
    many = Raw(b":\ndata: {}\n\n" * 10_000)
    stage.upstream.enqueue(Script(steps=(Text("Said."), *(many for _ in range(20)), KeepAlive())))
    accepted = await stage.send()
    turn = await stage.ended(accepted)
    assert (turn.status, turn.error_code) == ("interrupted", "llm_malformed")
    assert (await stage.reply(accepted)).text == "Said."
    async with asyncio.timeout(2):
        await stage.upstream.chats[0].disconnected.wait()


async def test_l13_what_comes_twice_after_the_end_or_in_another_role(stage: Stage) -> None:
    """Breaks when: the decoder goes on after ``[DONE]``."""
    twice = {"choices": [{"index": 0, "delta": {"content": "again "}, "finish_reason": None}]}
    other = {"choices": [{"index": 0, "delta": {"role": "user", "content": "and "}}]}
    steps = (Chunk(twice), Chunk(twice), Chunk(other), Finish(), Finish("length"), Done())
    stage.upstream.enqueue(Script(steps=(*steps, Text("never"), Finish())))
    accepted = await stage.send()
    assert (await stage.ended(accepted)).status == "complete"
    assert (await stage.reply(accepted)).text == "again again and "


@pytest.mark.parametrize(
    "tools",
    [
        (Tool("look", '{"a": '),),
        (Tool("unknown"),),
        (Tool("look", id="one"), Tool("look", id="one")),
        (Tool("look", "null"),),
    ],
    ids=["truncated", "unknown", "two with one id", "null"],
)
async def test_l17_a_tool_call_that_nobody_asked_for_runs_nothing(
    stage: Stage, tools: tuple[Tool, ...]
) -> None:
    """No tool was offered: nothing is executed, and the next turn works.

    Breaks when: a call in a reply ends up in the next request without its result (I15).
    """
    stage.upstream.enqueue(calling(*tools))
    turn = await stage.say()
    assert turn.status in {"failed", "complete"}
    assert (await stage.say("And now?")).status == "complete"
    asked = stage.upstream.chats[-1].json["messages"]
    assert not any(message.get("tool_calls") or message["role"] == "tool" for message in asked)
