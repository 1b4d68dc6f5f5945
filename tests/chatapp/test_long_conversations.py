"""Conversations that no window holds, before a model server that counts and refuses strictly."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp import wiring
from chatapp.conversations.profiles import in_force
from chatapp.models import Message, ModelProfile
from compression.database import in_database_thread
from tests.chatapp.long_conversations import MODEL, RULER, StrictUpstream, Talk, talking
from tests.fake_scripts import Json, Script, failing, is_summary_request, saying
from tests.inprocess import JSON, settle

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "Always write dates as year, month, day."
WORDS = ["harbour", "lantern", "module", "river", "ticket", "orbit", "garden", "signal", "copper"]


def prose(tokens: int, seed: int) -> str:
    """About so many ruler tokens of sentences."""
    chosen = random.Random(seed)
    sentences = (
        f"The {chosen.choice(WORDS)} of the {chosen.choice(WORDS)} has {chosen.randrange(10_000)} "
        f"parts, and file src/{chosen.choice(WORDS)}/{chosen.choice(WORDS)}.py was changed."
        for _ in itertools.count()
    )
    size, parts = 0, []
    while size < tokens:
        parts.append(next(sentences))
        size += RULER.count(parts[-1]) + 1
    return " ".join(parts)


def history(tokens: int, *, each: int = 500) -> list[Json]:
    """User and assistant in turn, about ``tokens`` in all; the first message holds a rule."""
    count = max(2, tokens // each // 2 * 2)
    said = [
        {"role": "assistant" if number % 2 else "user", "content": prose(each, number)}
        for number in range(count)
    ]
    said[0]["content"] = f"{RULE} {said[0]['content']}"
    return said


async def profile(name: str = MODEL) -> ModelProfile:
    return await in_database_thread(ModelProfile.objects.get)(name=name)


def system_of(request: Json) -> str:
    return str(request["messages"][0]["content"])


def assert_fits(talk: Talk, *, refused: int = 0) -> None:
    """No request passed the window, other than those that taught the window."""
    assert len(talk.strict.refused) == refused


@pytest.mark.soak
async def test_300_000_tokens_on_a_model_of_8192(alice: User, settings: Any) -> None:
    """I12, I16, I18: compressed chunk by chunk, once; nothing lost, nothing too long.

    Breaks when: ``PromptSummarizer`` gives a whole span to one call.
    """
    strict = StrictUpstream(window=8192)
    said = history(300_000)
    async with talking(alice, settings, strict, said) as talk:
        first = await talk.say("What is next?")
        assert first["status"] == "complete"
        assert first["manifest"]["decision"]["action"] == "continue"
        assert "compress" in [one["action"] for one in first["manifest"]["before"]]
        asked = len(strict.sizes)
        second = await talk.say("And then?")
        assert second["status"] == "complete"
        assert len(strict.sizes) == asked + 1
        assert_fits(talk)
        versions = await talk.summaries()
        assert [(one.status, one.degraded) for one in versions] == [("active", False)]
        assert RULE in system_of((await talk.chats())[-1])
        texts = await talk.texts()
        assert texts[: len(said)] == [one["content"] for one in said]


async def test_a_message_of_87_000_tokens_is_refused_before_it_is_stored(
    alice: User, settings: Any
) -> None:
    settings.MESSAGE_MAX_LENGTH = 1_000_000
    async with talking(alice, settings, StrictUpstream(window=8192)) as talk:
        answer = await talk.say(prose(87_000, 1))
        assert answer["status"] == 413
        figures = answer["error"]["fields"]
        assert figures["message"] > 87_000
        assert await talk.texts() == []
        assert not talk.strict.sizes
        assert (await talk.say("Hello"))["status"] == "complete"


@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_an_imported_message_of_87_000_tokens_is_compressed_in_pieces(
    alice: User, settings: Any, role: str
) -> None:
    """I16. Breaks when: ``quoting.chunks`` lets one message be larger than a call."""
    strict = StrictUpstream(window=8192)
    said = history(4_000)
    said[3 if role == "assistant" else 4]["content"] = prose(87_000, 7)
    async with talking(alice, settings, strict, said) as talk:
        assert (await talk.say("What is next?"))["status"] == "complete"
        assert_fits(talk)
        (version,) = await talk.summaries()
        assert version.status == "active"
        assert version.source_tokens > 85_000


async def test_a_giant_last_reply_does_not_stand_in_the_way(alice: User, settings: Any) -> None:
    strict = StrictUpstream(window=4096)
    said = [*history(1_000), {"role": "user", "content": "Go"}]
    said.append({"role": "assistant", "content": prose(87_000, 9)})
    async with talking(alice, settings, strict, said) as talk:
        assert (await talk.say("What is next?"))["status"] == "complete"
        assert_fits(talk)


BODIES = {
    "openai": None,
    "vllm": lambda tokens, window: failing(
        400,
        f"This model's maximum context length is {window} tokens. However, your request has "
        f"{tokens} input tokens. Please reduce the length of the input messages.",
    ),
    "llama.cpp": lambda tokens, window: failing(
        400,
        f"the request exceeds the available context size ({window} tokens), try increasing it",
    ),
    "without a figure": lambda tokens, window: failing(400, "The prompt is too long."),
    "in a stream": lambda tokens, window: failing(413, "Input is too long for requested model."),
}


@pytest.mark.parametrize("body", list(BODIES))
async def test_an_overflow_teaches_the_window_and_is_tried_once_more(
    alice: User, settings: Any, body: str
) -> None:
    """A server that says nothing of its window: 8192 is assumed, and 4096 is the truth.

    Breaks when: ``turns._after_overflow`` learns nothing, or the retry sends the same request.
    """
    strict = StrictUpstream(window=4096, overflow=BODIES[body])
    async with talking(alice, settings, strict, history(4_500), model_says_window=False) as talk:
        turn = await talk.say("What is next?")
        assert turn["status"] == "complete"
        learned = in_force(await profile())
        if body in {"openai", "vllm", "llama.cpp"}:
            assert learned == {"window": 4096}
            assert_fits(talk, refused=1)
        else:
            assert learned["window"] < 8192
        refused = len([one for one in strict.refused if not is_summary_request(one)])
        assert refused == 1
        assert (await talk.say("And then?"))["status"] == "complete"


async def test_a_server_that_refuses_everything_is_asked_twice_and_not_for_ever(
    alice: User, settings: Any
) -> None:
    """I11. Breaks when: the retry after an overflow becomes a loop."""

    def refuse(request: Json) -> Script:
        return failing(400, "The prompt is too long.")

    strict = StrictUpstream(window=8192, answer=refuse)
    async with talking(alice, settings, strict) as talk:
        turn = await talk.say("Hello")
        assert turn["status"] == "failed"
        assert turn["error"]["code"] == "llm_context_overflow"
        assert len(strict.sizes) == 2
        strict.answer = StrictUpstream(window=1).answer
        assert (await talk.say("Hello again"))["status"] == "complete"


async def test_a_heavier_tokenizer_is_learned_by_its_first_refusal(
    alice: User, settings: Any
) -> None:
    """Twice the ruler's tokens: one refusal at most, and none once usage was reported.

    Breaks when: the calibration learns nothing from what a refusal says of the tokens.
    """
    strict = StrictUpstream(window=8192, factor=1.9)
    async with talking(alice, settings, strict, history(4_000)) as talk:
        for number in range(6):
            turn = await talk.say(prose(250, 100 + number))
            assert turn["status"] == "complete", turn["error"]
            assert (await profile()).calibration > 1.7
        chats = [one for one in strict.refused if not is_summary_request(one)]
        assert len(chats) == 1


async def test_what_no_compression_can_make_fit_is_not_sent_twice(
    alice: User, settings: Any
) -> None:
    """The first message of all, too long by the provider's own count: refused in plain words.

    Breaks when: the calibration learns nothing from what a refusal says of the tokens.
    """
    strict = StrictUpstream(window=8192, factor=1.9)
    async with talking(alice, settings, strict) as talk:
        turn = await talk.say(prose(3_500, 1))
        assert (turn["status"], turn["error"]["code"]) == ("blocked", "blocked")
        assert len(strict.sizes) == 1
        assert (await talk.say("Hello"))["status"] in {"complete", "blocked"}
        assert_fits(talk, refused=1)


async def test_a_model_with_a_smaller_window_compresses_at_the_next_send(
    alice: User, settings: Any
) -> None:
    """COMPRESSION 2, rule 2: its own window applies, and no message is counted again.

    Breaks when: the window is taken from the model that wrote the last reply.
    """
    strict = StrictUpstream(window=32_768)
    async with talking(alice, settings, strict, history(14_000)) as talk:
        small = {"id": "small-model", "object": "model", "max_model_len": 4096}
        talk.upstream.models = (*_listed(talk), small)
        assert (await talk.say("What is next?"))["status"] == "complete"
        assert await talk.summaries() == []
        before = await _token_counts(talk)
        answer = await talk.client.post(
            f"/c/{talk.code}/settings/", {"model": "small-model"}, headers=JSON
        )
        assert answer.status_code == 200
        strict.window = 4096
        turn = await talk.say("And then?")
        assert turn["status"] == "complete"
        assert turn["manifest"]["window"] == 4096
        assert_fits(talk)
        (version,) = await talk.summaries()
        assert (version.status, version.trigger) == ("active", "threshold")
        assert (await _token_counts(talk))[: len(before)] == before


def _listed(talk: Talk) -> tuple[Json, ...]:
    assert isinstance(talk.upstream.models, tuple)
    return talk.upstream.models


async def _token_counts(talk: Talk) -> list[int]:
    rows = Message.objects.filter(conversation__code=talk.code).order_by("seq")
    return await in_database_thread(lambda: list(rows.values_list("token_count", flat=True)))()


async def test_a_manifest_counts_what_was_sent(alice: User, settings: Any) -> None:
    """One ruler: the manifest's total, without the calibration, is the count of the request."""
    strict = StrictUpstream(window=8192)
    async with talking(alice, settings, strict, history(2_000)) as talk:
        turn = await talk.say("What is next?")
        request = (await talk.chats())[-1]
        counted = turn["manifest"]["tokens"]["total"] / 1.1
        assert counted == pytest.approx(strict.tokens(request), abs=8)
        assert turn["usage"]["prompt_tokens"] == strict.tokens(request)


async def test_usage_that_is_reported_moves_the_calibration(alice: User, settings: Any) -> None:
    strict = StrictUpstream(window=32_768, factor=0.8)
    async with talking(alice, settings, strict, history(2_000)) as talk:
        for _ in range(5):
            await talk.say("And then?")
        await wiring.services().catalogue.store_usage()
        assert (await profile()).calibration == pytest.approx(0.85, abs=0.06)


async def test_a_summary_model_that_overflows_leaves_the_extract(
    alice: User, settings: Any
) -> None:
    """I11. Breaks when: a failing summariser fails the turn."""

    def answer(request: Json) -> Script:
        if is_summary_request(request):
            return failing(400, "The prompt is too long.", code="context_length_exceeded")
        return StrictUpstream(window=1).answer(request)

    strict = StrictUpstream(window=8192, answer=answer)
    async with talking(alice, settings, strict, history(20_000)) as talk:
        assert (await talk.say("What is next?"))["status"] == "complete"
        rows = await talk.summaries()
        assert [one.status for one in rows if one.version] == ["active"]
        assert rows[-1].degraded or rows[0].degraded
        assert_fits(talk)


async def test_a_summary_model_with_a_heavier_tokenizer_still_summarises(
    alice: User, settings: Any
) -> None:
    """Nothing was asked of it before, so nobody knows how it counts till it refuses a part.

    Breaks when: a refusal that says how long the prompt was leaves the extract.
    """
    strict = StrictUpstream(window=8192, factor=1.4)
    async with talking(alice, settings, strict, history(30_000)) as talk:
        answer = await talk.client.post(f"/c/{talk.code}/compact/", {}, headers=JSON)
        assert answer.status_code == 202, answer.content
        await settle()
        [version] = [one for one in await talk.summaries() if one.version]
        assert (version.status, version.degraded, version.model) == ("active", False, MODEL)
        assert "extracted" not in version.audit
        assert len(strict.refused) == 1


def _answering_probes(right: int) -> Any:
    """Summaries and replies as usual; of each exam's questions the first ``right`` are known."""
    default = StrictUpstream(window=1).answer

    def answer(request: Json) -> Script:
        wanted = (request.get("response_format") or {}).get("json_schema") or {}
        if wanted.get("name") != "probe":
            return default(request)
        return saying(json.dumps({"answers": ["4"] * right}))

    return answer


async def test_the_probe_is_off_unless_it_is_set(alice: User, settings: Any) -> None:
    strict = StrictUpstream(window=8192, answer=_answering_probes(0))
    async with talking(alice, settings, strict, history(9_000)) as talk:
        await talk.say("What is next?")
        (version,) = await talk.summaries()
        assert "probe" not in version.audit
        assert len(await _probes(talk)) == 0


async def test_the_probe_adds_what_the_summary_does_not_tell(alice: User, settings: Any) -> None:
    """One more call for one summary; its score and its additions are kept with the version.

    Breaks when: the run applies the draft without asking.
    """
    settings.COMPRESSION = {**settings.COMPRESSION, "PROBE": True}
    strict = StrictUpstream(window=8192, answer=_answering_probes(0))
    async with talking(alice, settings, strict, history(9_000)) as talk:
        assert (await talk.say("What is next?"))["status"] == "complete"
        assert_fits(talk)
        (version,) = await talk.summaries()
        score = version.audit["probe"]
        assert score["asked"] == 12
        assert score["right"] == 0
        assert score["added"] > 0
        context = [entry for entry in version.ledger if entry["section"] == "context"]
        # Beside the probe's sentences stand the lines of figures that code keeps.
        sentences = [entry for entry in context if entry["text"].endswith(".")]
        assert len(sentences) == score["added"]
        assert all(entry["sources"] for entry in context)
        assert len(await _probes(talk)) == 1


async def test_a_probe_that_fails_changes_nothing(alice: User, settings: Any) -> None:
    """I11. Breaks when: a failing exam fails the compression."""
    settings.COMPRESSION = {**settings.COMPRESSION, "PROBE": True}
    usual = _answering_probes(0)

    def answer(request: Json) -> Script:
        wanted = (request.get("response_format") or {}).get("json_schema") or {}
        return failing(400, "No.") if wanted.get("name") == "probe" else usual(request)

    strict = StrictUpstream(window=8192, answer=answer)
    async with talking(alice, settings, strict, history(9_000)) as talk:
        assert (await talk.say("What is next?"))["status"] == "complete"
        (version,) = await talk.summaries()
        assert version.status == "active"
        assert version.audit["probe"]["error"]


async def _probes(talk: Talk) -> list[Json]:
    return [
        one.json
        for one in talk.upstream.chats
        if ((one.json.get("response_format") or {}).get("json_schema") or {}).get("name") == "probe"
    ]


FOREIGN = {
    "chinese": ("请始终用简短的句子回答。", "我们讨论了港口的建设计划和下一步的工作安排。"),
    "arabic": (
        "يجب دائما أن تكون الإجابات قصيرة.",
        "ناقشنا خطة بناء الميناء وخطوات العمل التالية.",
    ),
    "german": ("Antworte immer in kurzen Sätzen.", "Wir sprachen über den Plan für den Hafen."),
}


@pytest.mark.parametrize("language", list(FOREIGN))
async def test_a_summary_speaks_the_conversations_language(
    alice: User, settings: Any, language: str
) -> None:
    """A model that summarises in English: its lines in another script are refused, and the rest,
    in the user's own words, stays.

    Breaks when: ``check_entries`` lets any script pass.
    """
    rule, said = FOREIGN[language]
    delta = {
        "narrative": "The user and the assistant discussed the construction of the harbour.",
        "add": [
            {"section": "constraints", "text": rule, "sources": [1]},
            {"section": "decisions", "text": "The harbour is to be built soon.", "sources": [1]},
            {"section": "done", "text": said, "sources": [1]},
        ],
    }
    default = StrictUpstream(window=1).answer

    def answer(request: Json) -> Script:
        return saying(json.dumps(delta)) if is_summary_request(request) else default(request)

    talked = [
        {"role": "assistant" if number % 2 else "user", "content": f"{rule} {said * 20}"}
        for number in range(40)
    ]
    strict = StrictUpstream(window=32_768, answer=answer)
    settings.CONTEXT_WINDOW = 12_000
    async with talking(alice, settings, strict, talked) as talk:
        assert (await talk.say(said))["status"] == "complete"
        row = await talk.row()
        assert rule in row.compressed_context
        assert said in row.compressed_context
        # Letters tell Chinese and Arabic from English; German and English share theirs.
        assert ("harbour" in row.compressed_context) == (language == "german")


async def test_secrets_stay_out_of_summaries(alice: User, settings: Any) -> None:
    """Neither in the text nor in what the reviewer is told of it.

    Breaks when: ``redact_delta`` is not called before the merge, or the audit names as missing
    what was left out on purpose.
    """
    secrets = [
        "sk-proj-abcdefghijklmnopqrstuvwx",
        "hunter2hunter2",
        "ghp_abcdefghijklmnopqrstuvwx12",
    ]
    line = f"Always use the key {secrets[0]} and password={secrets[1]} and {secrets[2]} there."
    said = history(9_000)
    said[0]["content"] = f"{line} {said[0]['content']}"
    for answer in (None, failing(500, "down")):
        strict = StrictUpstream(window=8192)
        if answer is not None:
            strict.answer = _summaries_fail(answer)
        said[0]["content"] += " Once more."
        async with talking(alice, settings, strict, said) as talk:
            assert (await talk.say("What is next?"))["status"] == "complete"
            (version,) = [one for one in await talk.summaries() if one.version]
            stored = json.dumps([version.text, version.ledger, version.narrative, version.audit])
            assert "[redacted]" in version.text
            assert not [secret for secret in secrets if secret.casefold() in stored.casefold()]
            assert secrets[0] in (await talk.texts())[0]


def _summaries_fail(failure: Script) -> Any:
    default = StrictUpstream(window=1).answer

    def answer(request: Json) -> Script:
        return failure if is_summary_request(request) else default(request)

    return answer
