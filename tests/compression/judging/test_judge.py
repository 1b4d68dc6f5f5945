"""The last door for every draft: what it may not change, what it must hold, what it must free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compression.exceptions import DraftRejected, NothingToCompress
from compression.judging import standing_rules
from compression.judging.judge import MOST_SHARE, Case, Fruitless, judge
from compression.ledger.ledger import Delta, apply_delta
from compression.planning import planner
from compression.planning.planner import PlannerSettings
from compression.summarizers import extractive
from compression.testing import merged, says
from compression.tokens import CharacterCounter
from compression.types import (
    Draft,
    Entry,
    EntryState,
    Item,
    Ledger,
    NarrativeLine,
    Origin,
    Role,
    Section,
    Sizes,
    Span,
    Trigger,
)

COUNTER = CharacterCounter()
SIZES = Sizes(window=4000, reserve=1000, fixed=100, calibration=1.0)
RULE = "Never use tabs in this project."
TALK = says("They talked about words.")


def conversation(*said: str, messages: int = 30) -> list[Item]:
    """Users say these sentences first, then words."""
    items = []
    for seq in range(1, messages + 1):
        role: Role = "user" if seq % 2 else "assistant"
        text = said[seq // 2] if seq % 2 and seq // 2 < len(said) else "word " * 100
        items.append(Item(seq=seq, role=role, text=text, tokens=COUNTER.count(text) + 4))
    return items


def case_of(
    items: list[Item], ledger: Ledger | None = None, trigger: Trigger = Trigger.THRESHOLD
) -> Case:
    settings = PlannerSettings()
    return Case(
        base_text="",
        base_ledger=ledger or Ledger(),
        items=items,
        span=planner.plan(items, SIZES, settings, trigger=trigger),
        sizes=SIZES,
        settings=settings,
        trigger=trigger,
        counter=COUNTER,
    )


def judged(delta: Delta, case: Case) -> dict[str, object]:
    draft = merged(case.span.items, case.base_ledger, delta, model="m")
    judgement = judge(draft, case)
    return {"text": judgement.text, "ledger": judgement.ledger, **judgement.audit}


def test_i18_a_rule_that_no_summariser_noted_is_kept_by_code() -> None:
    """I18. Breaks when: judge() does not look for missed rules."""
    case = case_of(conversation(RULE))
    result = judged(TALK, case)
    assert f"- {RULE} [1]" in str(result["text"])
    assert f"kept by code: {RULE}" in str(result["notes"])
    noted = judged(says("They talked.", constraints={1: RULE}), case)
    assert str(noted["text"]).count(RULE) == 1
    assert "kept by code" not in str(noted["notes"])


def test_what_was_dropped_on_the_way_is_kept_with_the_version() -> None:
    """Breaks when: the audit leaves the draft's notes out."""
    case = case_of(conversation())
    draft = replace(merged(case.span.items, Ledger(), TALK, model="m"), notes=("dropped: x",))
    assert judge(draft, case).audit["notes"] == ("dropped: x",)


def test_what_the_tail_says_is_not_looked_at() -> None:
    """It is sent verbatim still. Breaks when: all items are looked at instead of the span's."""
    items = conversation()
    items[-2] = replace(items[-2], text=RULE)
    assert RULE not in str(judged(TALK, case_of(items))["text"])


def test_i13_a_rule_that_a_person_struck_out_stays_out() -> None:
    """I13. Breaks when: the look for missed rules passes over entries that are not live."""
    struck = Entry(
        id=1,
        section=Section.CONSTRAINTS,
        text=RULE,
        sources=(1,),
        origin=Origin.PERSON,
        state=EntryState.LIFTED,
    )
    result = judged(TALK, case_of(conversation(RULE), Ledger(entries=(struck,))))
    assert RULE not in str(result["text"])


def test_rules_go_before_what_can_be_evicted_and_never_make_a_draft_too_long() -> None:
    """Breaks when: the rules kept by code have no bound, or are added after eviction, or nobody
    is told what was evicted.
    """
    rules = [f"Never paint the gadget number {n} in colour {7 * n}, please." for n in range(13)]
    context = [f"fact number {n} is {n * 11}" for n in range(60)]
    filled, _ = apply_delta(Ledger(), TALK, first_seq=1, through_seq=1, user_seqs=[1])
    entries = tuple(
        Entry(id=n + 1, section=Section.CONTEXT, text=text, sources=(1,))
        for n, text in enumerate(context)
    )
    base = replace(filled, entries=entries)
    case = case_of(conversation(*rules), base)
    result = judged(TALK, case)
    text = str(result["text"])
    cap = planner.cap_tokens(SIZES, case.settings)
    assert COUNTER.count(text) <= cap
    kept = sum(rule in text for rule in rules)
    assert 3 <= kept < len(rules)
    assert (
        sum(COUNTER.count(rule) for rule in rules if rule in text)
        <= cap * standing_rules.KEPT_SHARE
    )
    assert "there is no room" in str(result["notes"])
    gone = [fact for fact in context if fact not in text]
    evicted = result["evicted"]
    assert isinstance(evicted, tuple)
    assert gone
    assert [one for one in evicted if one in context] == gone


@pytest.mark.parametrize("state", [EntryState.REPLACED, EntryState.EVICTED, None])
def test_i18_i13_what_no_machine_may_change_is_still_there(state: EntryState | None) -> None:
    """I13, I18: a live constraint, a person's entry, a person's narrative.

    Breaks when: ``_check_kept`` is not called, or looks at one of the three only.
    """
    rule = Entry(id=1, section=Section.CONSTRAINTS, text=RULE, sources=(1,))
    note = Entry(id=2, section=Section.CONTEXT, text="mine", origin=Origin.PERSON)
    line = NarrativeLine(text="As told by me.", first_seq=0, through_seq=0, origin=Origin.PERSON)
    base = Ledger(entries=(rule, note), narrative=(line,))
    case = case_of(conversation(), base)
    judge(merged(case.span.items, base, TALK, model="m"), case)
    draft = merged(case.span.items, base, TALK, model="m")
    for gone in (1, 2):
        entries = tuple(
            replace(one, state=state) if one.id == gone and state else one
            for one in draft.ledger.entries
            if one.id != gone or state
        )
        with pytest.raises(DraftRejected):
            judge(replace(draft, ledger=replace(draft.ledger, entries=entries)), case)
    spoken = tuple(one for one in draft.ledger.narrative if one != line)
    with pytest.raises(DraftRejected):
        judge(replace(draft, ledger=replace(draft.ledger, narrative=spoken)), case)


def test_what_must_be_kept_may_exceed_the_cap_up_to_a_fifth_of_the_budget() -> None:
    """Beyond it the person is asked to choose. Breaks when: either limit is the other."""
    for tokens, fits in ((1.5 * 300, True), (MOST_SHARE * 3000 + 100, False)):
        note = Entry(
            id=1, section=Section.CONTEXT, text="word " * int(tokens), origin=Origin.PERSON
        )
        counted = COUNTER.count(note.text)
        note = replace(note, text=note.text[: int(len(note.text) * tokens / counted)])
        case = case_of(conversation(messages=36), Ledger(entries=(note,)))
        if fits:
            judged(TALK, case)
        else:
            with pytest.raises(Fruitless, match="Shorten the constraints"):
                judged(TALK, case)


@pytest.mark.parametrize(("tokens", "lands"), [(400, True), (460, False)])
def test_a_summary_above_its_cap_must_reach_the_landing_too(tokens: int, lands: bool) -> None:
    """Breaks when: ``_check_gain`` does not ask where the run lands."""
    note = Entry(
        id=1,
        section=Section.CONTEXT,
        text=("word " * tokens)[: 3 * tokens],
        origin=Origin.PERSON,
    )
    items = [replace(item, tokens=60) for item in conversation(messages=36)]
    case = case_of(items, Ledger(entries=(note,)))
    case = replace(case, sizes=replace(SIZES, fixed=300))
    if lands:
        judged(TALK, case)
    else:
        with pytest.raises(Fruitless, match="still be too long"):
            judged(TALK, case)


def test_a_summary_that_frees_too_little_is_fruitless() -> None:
    """Breaks when: ``_check_gain`` asks for nothing."""
    case = case_of(conversation())
    short = replace(case, span=replace(case.span, items=case.span.items[:1], through_seq=1))
    with pytest.raises(Fruitless, match="would free"):
        judged(TALK, short)


@pytest.mark.parametrize(("messages", "fits"), [(6, True), (4, False)])
def test_where_what_must_stay_is_large_a_tenth_is_enough(messages: int, fits: bool) -> None:
    """Fixed parts and the last turn alone are above the landing.

    Breaks when: ``_check_gain`` asks for 0.20 or for the landing there, too, or for nothing.
    """
    items = [replace(item, tokens=75) for item in conversation(messages=18)]
    span = Span(items=tuple(items[:messages]), through_seq=messages, source_tokens=75 * messages)
    sizes = replace(SIZES, fixed=1200)
    case = replace(case_of(conversation()), items=items, span=span, sizes=sizes)
    if fits:
        judged(TALK, case)
    else:
        with pytest.raises(Fruitless, match="10% is needed"):
            judged(TALK, case)


@pytest.mark.parametrize(("messages", "fits"), [(4, True), (0, False)])
def test_a_run_in_the_background_frees_what_its_settings_ask_for(messages: int, fits: bool) -> None:
    """Breaks when: every automatic run must free 0.20, or none must."""
    items = [replace(item, tokens=75) for item in conversation(messages=18)]
    settings = PlannerSettings(prepare_messages=messages)
    whole = case_of(conversation())
    case = replace(
        whole,
        items=items,
        span=Span(items=tuple(items[:10]), through_seq=10, source_tokens=750),
        settings=settings,
        trigger=Trigger.BACKGROUND,
    )
    said = says("They talked about words, and words, and words again. " * 15)
    if not fits:
        with pytest.raises(Fruitless, match="would free"):
            judged(said, case)
        with pytest.raises(NothingToCompress):
            planner.plan(items, SIZES, settings, trigger=Trigger.BACKGROUND)
        return
    judged(said, case)
    # All but the last turns and six messages.
    assert planner.plan(items, SIZES, settings, trigger=Trigger.BACKGROUND).through_seq == 12
    with pytest.raises(NothingToCompress):
        planner.plan(items, SIZES, settings, trigger=Trigger.THRESHOLD)


def test_i11_what_has_no_room_is_refused_unless_it_is_the_extract() -> None:
    """A person's notes fill the cap: a model must say something, the extract need not.

    Breaks when: nothing is asked of a draft that has no room, or the extract is refused there.
    """
    text = " ".join(f"note{n}" for n in range(150))
    note = Entry(id=1, section=Section.CONTEXT, text=text, origin=Origin.PERSON)
    said = "The lantern of the harbour, the bridge and the market need 14 pilots by noon today."
    items = [replace(item, text=f"{said} {item.text}") for item in conversation(messages=40)]
    case = case_of(items, Ledger(entries=(note,)))
    nothing = Draft(ledger=case.base_ledger, model="m", prompt_version="test")
    with pytest.raises(DraftRejected, match="says nothing"):
        judge(nothing, case)
    judge(replace(nothing, prompt_version=extractive.PROMPT_VERSION), case)
    judge(merged(case.span.items, case.base_ledger, says(said), model="m"), case)


NAMED = "Run `make all`, then see src/app.py on port 8443 for user_profile."


def test_paths_commands_names_and_figures_that_a_draft_lacks_are_kept_by_code() -> None:
    """Within the cap: the oldest context makes way, and the notes tell.

    Breaks when: judge() does not look for them, or looks after eviction.
    """
    old = tuple(
        Entry(id=n, section=Section.CONTEXT, text=f"thing {n} is {11 * n} here", sources=(1,))
        for n in range(1, 60)
    )
    case = case_of(conversation(NAMED), Ledger(entries=old))
    result = judged(TALK, case)
    text = str(result["text"])
    for kept in ("`make all`", "src/app.py", "port 8443", "user_profile"):
        assert kept in text
        assert kept in str(result["notes"])
    assert old[-1].text in text
    assert old[0].text not in text
    assert COUNTER.count(text) <= planner.cap_tokens(SIZES, case.settings)


def test_i11_a_draft_that_says_nothing_is_refused_though_code_could_fill_it() -> None:
    """I11. Breaks when: the floor is asked after the lines of names were added."""
    said = [NAMED.replace("app", f"part{n}").replace("8443", str(8000 + n)) for n in range(9)]
    case = case_of(conversation(*said))
    with pytest.raises(DraftRejected, match="too little"):
        judged(TALK, case)
