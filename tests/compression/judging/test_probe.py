"""The closed-book exam: its questions, its score, and that it can only add."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compression.conf import problems
from compression.exceptions import SummarizerError
from compression.judging.judge import Case, Judgement, judge
from compression.judging.probe import GAP, probed, questions
from compression.planning.planner import PlannerSettings, cap_tokens, plan
from compression.testing import merged, says
from compression.tokens import CharacterCounter
from compression.types import (
    Completion,
    Draft,
    EntryState,
    Item,
    Ledger,
    Section,
    Sizes,
    Spent,
    Trigger,
)

COUNTER = CharacterCounter()
SIZES = Sizes(window=4000, reserve=1000, fixed=100, calibration=1.0)
NOTED = "They went on about the weather and boxes 5521 and 5522."
"""Too short a sentence to be asked about, and enough not to be filled by code."""
FACTS = {
    1: "The invoice of the bakery has the number (48213), please note it.",
    3: "Our server listens on its port (8443) behind the proxy.",
    5: "The parser lives in the third cellar (7261) since yesterday.",
}
"""In brackets, numbers are none of the figures that code keeps with the word before them."""


def item(seq: int, text: str, role: Any = "") -> Item:
    role = role or ("user" if seq % 2 else "assistant")
    return Item(seq=seq, role=role, text=text, tokens=COUNTER.count(text) + 4)


def conversation() -> list[Item]:
    filler = "They went on about the weather and nothing else. " * 5
    said = FACTS | {7: "Boxes 5521 and 5522."}
    return [item(seq, said.get(seq, "") + " " + filler) for seq in range(1, 31)]


@dataclass(slots=True)
class Examinee:
    """Answers with what it was given, and keeps what it was asked."""

    answer: str | BaseException | Callable[[str], str]
    asked: list[str] = field(default_factory=list)
    schemas: list[Mapping[str, Any] | None] = field(default_factory=list)

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        self.asked.append(user)
        self.schemas.append(schema)
        if isinstance(self.answer, BaseException):
            raise self.answer
        text = self.answer if isinstance(self.answer, str) else self.answer(user)
        return Completion(
            text=text, finish_reason="stop", cost=0.25, prompt_tokens=100, completion_tokens=10
        )


def knows(*facts: str) -> str:
    return json.dumps({"answers": list(facts)})


def drafted(cap: int = 1500) -> tuple[Draft, Judgement, Case]:
    items = conversation()
    settings = PlannerSettings(summary_tokens=cap)
    span = plan(items, SIZES, settings, trigger=Trigger.THRESHOLD)
    case = Case(
        base_text="",
        base_ledger=Ledger(),
        items=items,
        span=span,
        sizes=SIZES,
        settings=settings,
        trigger=Trigger.THRESHOLD,
        counter=COUNTER,
    )
    draft = merged(span.items, Ledger(), says(NOTED), model="m")
    return draft, judge(draft, case), case


def score_of(judgement: Judgement) -> dict[str, Any]:
    score = judgement.audit["probe"]
    assert isinstance(score, dict)
    return score


def test_questions_are_the_spans_own_sentences_with_a_gap() -> None:
    path = "The parser lives in src/reader/tokens.py since yesterday."
    asked = questions([*conversation()[:4], item(5, path), *conversation()[5:]])
    assert [(one.seq, one.answer) for one in asked] == [
        (1, "48213"),
        (3, "8443"),
        (5, "src/reader/tokens.py"),
    ]
    assert asked[0].text == f"The invoice of the bakery has the number ({GAP}), please note it."


def test_there_are_never_more_than_a_dozen_and_they_come_from_everywhere() -> None:
    many = [item(seq, f"The number of this box is {seq * 1111} in all.") for seq in range(1, 400)]
    asked = questions(many)
    assert len(asked) == 12
    assert asked[0].seq < 40 < 360 < asked[-1].seq
    assert all(one.seq % 2 for one in asked)


def test_secrets_code_and_tool_results_are_not_asked_about() -> None:
    items = [
        item(1, "The key of the service is sk-abcdefghijklmnop1234567890 as agreed."),
        item(3, "password = hunter2-and-more-99 is what you need here."),
        item(4, "The result holds the number 99123 and others.", "tool"),
    ]
    assert questions(items) == ()


async def test_what_is_not_known_is_added_with_its_source() -> None:
    """Breaks when: misses are only counted."""
    draft, judgement, case = drafted()
    examinee = Examinee(knows("48213"))
    better, after = await probed(examinee, draft, judgement, case)
    assert after.audit["probe"] == {
        "asked": 3,
        "right": 1,
        "score": 0.333,
        "missed": ["8443", "7261"],
        "added": 2,
    }
    added = [one for one in after.ledger.entries if one.section is Section.CONTEXT]
    assert [(one.text, one.sources) for one in added] == [(FACTS[3], (3,)), (FACTS[5], (5,))]
    assert FACTS[3] in after.text
    assert "48213" not in after.text
    assert len(examinee.asked) == 1
    assert better.spent == Spent(calls=1, prompt_tokens=100, completion_tokens=10, cost=0.25)
    assert after.summary_tokens == COUNTER.count(after.text)


async def test_only_the_summary_is_shown_and_never_what_was_taken_out() -> None:
    draft, judgement, case = drafted()
    examinee = Examinee(knows())
    await probed(examinee, draft, judgement, case)
    (asked,) = examinee.asked
    assert NOTED in asked
    assert "48213" not in asked
    assert "7261" not in asked


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I am sorry, I cannot.",
        "{",
        '{"answers": 3}',
        "[" * 100_000,
        SummarizerError("The server is down."),
        RuntimeError("broken"),
    ],
    ids=["empty", "refusal", "cut", "shape", "deep", "down", "broken"],
)
async def test_whatever_the_model_does_the_summary_stays(answer: str | BaseException) -> None:
    """I11. Breaks when: an error of the exam reaches the run."""
    draft, judgement, case = drafted()
    same, after = await probed(Examinee(answer), draft, judgement, case)
    assert same.ledger == draft.ledger
    assert (after.text, after.ledger) == (judgement.text, judgement.ledger)
    assert score_of(after)["error"]


async def test_a_wrong_or_endless_answer_is_a_miss() -> None:
    draft, judgement, case = drafted()
    everything = " ".join(FACTS.values()) * 3
    _, after = await probed(Examinee(knows(everything, "8444")), draft, judgement, case)
    assert score_of(after)["right"] == 0


async def test_nothing_is_taken_out_to_make_room() -> None:
    """Breaks when: misses are added past the cap, so that eviction takes other lines."""
    items_cap = COUNTER.count(drafted()[1].text) + 5
    draft, judgement, case = drafted(cap=items_cap)
    _, after = await probed(Examinee(knows()), draft, judgement, case)
    assert after.text == judgement.text
    assert score_of(after)["added"] == 0
    assert after.summary_tokens <= cap_tokens(SIZES, case.settings)
    assert not [one for one in after.ledger.entries if one.state is EntryState.EVICTED]


async def test_with_nothing_to_ask_no_model_is_called() -> None:
    draft, judgement, case = drafted()
    examinee = Examinee(knows())
    silent = [item(one.seq, "Nothing was said. " * 15) for one in case.items]
    span = plan(silent, SIZES, case.settings, trigger=Trigger.THRESHOLD)
    _, after = await probed(examinee, draft, judgement, replace(case, items=silent, span=span))
    assert examinee.asked == []
    assert after.audit["probe"] == {"asked": 0}


def test_the_switch_is_true_or_false() -> None:
    models = {"CONVERSATION": "a.B", "SUMMARY": "a.C"}
    assert not problems(models | {"PROBE": True})
    assert problems(models | {"PROBE": 1}) == [
        ("E005", "COMPRESSION['PROBE'] must be True or False.")
    ]
