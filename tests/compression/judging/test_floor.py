"""What a draft must say of its messages, and what code adds to a thin one."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compression.exceptions import DraftRejected
from compression.judging.floor import SAYS_NOTHING, Findings, Floor, check_part
from compression.ledger.ledger import Addition, Delta, Lift, Supersession
from compression.summarizers.extractive import ExtractiveSummarizer, room_for
from compression.tokens import CharacterCounter
from compression.types import Entry, EntryState, Item, Ledger, Role, Section

COUNTER = CharacterCounter()
CAP = 600
SAID = (
    "The bakery in Turku opens at 6:30 and its invoice has the number 48213.",
    "I noted the invoice 48213. The oven was repaired for 912 euros by Lehtinen.",
    "Our server harbour-7 listens on port 8443 and the parser lives in src/reader/tokens.py.",
    "I moved the parser to src/reader/lexer.py and raised MAX_TOKENS to 4096.",
    "The boat Albatross needs 14 litres of varnish before the regatta in Bergen on 2026-06-12.",
    "Varnish costs 38 euros a litre at Nordlys; the regatta starts at 10:15 near pier 22.",
)
FILLER = (
    "The user and the assistant had a productive conversation in which many important topics were "
    "discussed in detail. Helpful answers were given, several problems were identified, and good "
    "progress was made step by step. They agreed on how to continue and were satisfied. "
)


def say(seq: int, text: str, role: Role | None = None) -> Item:
    role = role or ("user" if seq % 2 else "assistant")
    return Item(seq=seq, role=role, text=text, tokens=COUNTER.count(text) + 4)


def conversation(*said: str, padding: int = 12) -> list[Item]:
    """Each thing said, with small talk around it."""
    words = "It was a calm morning and nobody was in a hurry about it. "
    return [say(seq, f"{text} {words * padding}") for seq, text in enumerate(said, start=1)]


TALK = conversation(*SAID)


def add(text: str, *sources: int, section: Section = Section.CONTEXT) -> Addition:
    return Addition(section=section, text=text, sources=sources)


GOOD = {
    "as JSON": Delta(
        narrative="The bakery's bills, the move of the parser and the regatta were talked about.",
        add=(
            add("invoice of the bakery = 48213", 1, 2),
            add("oven repaired for 912 euros by Lehtinen", 2),
            add("src/reader/lexer.py: the parser, moved", 4, section=Section.FILES),
            add("MAX_TOKENS = 4096", 4),
            add(
                "varnish for the Albatross: 14 litres before 2026-06-12", 5, section=Section.PENDING
            ),
        ),
    ),
    "as a story": Delta(
        narrative="The bakery in Turku sent invoice 48213 and its oven was repaired. The parser "
        "was moved to src/reader/lexer.py. The boat Albatross is to be varnished for the regatta."
    ),
    "in few words": Delta(
        narrative="Bakery, parser and regatta.",
        add=(add("invoice 48213", 1), add("port 8443", 3), add("regatta 2026-06-12", 5)),
    ),
}
BAD = {
    "ok": Delta(narrative="ok"),
    "one word": Delta(narrative="Conversation."),
    "one sentence": Delta(narrative="The user and the assistant talked about several things."),
    "filler": Delta(narrative=FILLER * 3),
    "empty entries": Delta(
        narrative="They talked.", add=tuple(add("something was said", seq) for seq in range(1, 7))
    ),
    "unknown ids": Delta(resolve=(77, 78)),
    "invented": Delta(
        narrative="A journey was planned.",
        add=tuple(add("Captain Nemo sails for Zanzibar", seq) for seq in range(1, 7)),
    ),
    "the beginning only": Delta(
        narrative="The bakery's invoice was noted.",
        add=(
            add("invoice = 48213", 1),
            add("bakery in Turku opens at 6:30", 1),
            add("oven repaired for 912 euros by Lehtinen", 2),
        ),
    ),
    "the last message copied": Delta(narrative=SAID[5]),
}


def floor_of(items: list[Item], before: Ledger | None = None, cap: int = CAP) -> Floor:
    ledger = before or Ledger()
    return Floor(ledger, items, COUNTER.count, room=room_for(items, ledger, cap, COUNTER.count))


def found(delta: Delta, items: list[Item] = TALK, before: Ledger | None = None) -> Findings:
    floor = floor_of(items, before)
    return floor.findings(floor.applied(before or Ledger(), delta))


@pytest.mark.parametrize("how", GOOD)
def test_what_a_good_small_model_writes_passes(how: str) -> None:
    """Breaks when: ``LEAST`` or ``LEAST_SHARE`` is 0.8."""
    assert found(GOOD[how]).refusal == ""


@pytest.mark.parametrize("how", BAD)
def test_i11_what_says_next_to_nothing_is_refused(how: str) -> None:
    """I11. Breaks when: :attr:`Findings.refusal` leaves out any of its four reasons."""
    assert found(BAD[how]).refusal


def test_the_reason_tells_the_figures() -> None:
    """Breaks when: a reason says only that the summary is bad."""
    assert found(BAD["ok"]).refusal == SAYS_NOTHING
    filler = found(BAD["filler"])
    assert "keeps 0 of these messages' facts" in filler.refusal
    assert (
        f"the plain extract keeps {filler.extract}, and at least {filler.least}" in filler.refusal
    )
    assert filler.extract > 8 < 5 * filler.least
    beginning = found(BAD["the beginning only"]).refusal
    assert beginning.endswith("it says nothing of messages 3 to 4 and 5 to 6.")


def test_operations_that_change_nothing_do_not_count() -> None:
    """What stands, said again, superseded by itself or resolved twice.

    Breaks when: ``_NewLines`` holds entries whose text stood before, or ``standing`` facts count.
    """
    floor = floor_of(TALK)
    before = floor.applied(Ledger(), GOOD["as JSON"])
    old = [entry for entry in before.entries if entry.state is EntryState.LIVE]
    again = Delta(
        narrative="",
        add=tuple(add(f"{entry.text}.", 1) for entry in old),
        supersede=tuple(Supersession(id=one.id, text=one.text, sources=(1,)) for one in old),
        resolve=(99,),
        lift=(Lift(id=98, source=1),),
    )
    more = conversation(*(text.replace("48213", "55501") for text in SAID))
    assert found(again, more, before).refusal == SAYS_NOTHING
    assert found(Delta(add=(add("invoice = 48213 of the bakery", 1),)), TALK, before).held == 0


def test_closing_a_note_is_enough_where_hardly_anything_was_said() -> None:
    """ "Done, thanks." Breaks when: a draft without a line is always refused, or never is."""
    note = Entry(id=1, section=Section.PENDING, text="tests for the parser", sources=(1,))
    thanks = [say(seq, "Thanks, this is done now, and all is well.") for seq in range(2, 8)]
    assert found(Delta(resolve=(1,)), thanks, Ledger(entries=(note,))).refusal == ""
    assert found(Delta(resolve=(2,)), thanks, Ledger(entries=(note,))).refusal == SAYS_NOTHING
    assert found(Delta(resolve=(1,)), TALK, Ledger(entries=(note,))).refusal == SAYS_NOTHING


@pytest.mark.parametrize(
    ("said", "told", "filler"),
    [
        (
            ["I feel low since my friend moved away.", "That is hard. What do you miss most?",
             "Our evening walks. I sit at home now.", "Perhaps a walking group could help.",
             "Maybe. I'll think about it.", "Take your time."],
            "The user misses a friend who moved away and their evening walks. A group may help.",
            FILLER,
        ),
        (
            ["你好,我最近心情不太好,工作压力很大,晚上也睡不着。",
             "听起来你最近很辛苦。压力大的时候睡眠常常会受影响。",
             "领导总是临时改需求,周末也要加班,家里人都抱怨。",
             "可以试着和领导谈谈,先把优先级定下来。",
             "妈妈最近身体也不好,需要我照顾。", "谈的时候可以先说明家里的情况。"],
            "用户因为工作压力和加班失眠,妈妈身体不好;助手建议和领导谈谈优先级。",
            "用户和助手进行了一次很有成效的对话,讨论了许多重要的话题,并取得了良好的进展。",
        ),
        (
            ["أشعر بالتعب الشديد هذه الأيام ولا أستطيع النوم جيدا بسبب ضغط العمل.",
             "يبدو أنك تمر بفترة صعبة. ضغط العمل يؤثر كثيرا على النوم.",
             "مديري يغير المهام في آخر لحظة وأمي مريضة وتحتاج إلى رعايتي.",
             "ابدأ بشرح ظروف عائلتك ثم اقترح خطة واضحة على المدير.",
             "حسنا، سأحاول غدا. هذا المساء سأذهب للجري قليلا.", "الجري فكرة جيدة."],
            "يعاني المستخدم من ضغط العمل وقلة النوم، وأمه مريضة، وسيحاول غدا بعد الجري هذا المساء.",
            "أجرى المستخدم والمساعد محادثة مثمرة حول مواضيع كثيرة ومهمة وتم تقديم معلومات مفيدة.",
        ),
    ],
)  # fmt: skip
def test_small_talk_needs_no_facts_in_any_script(said: list[str], told: str, filler: str) -> None:
    """Breaks when: a draft without facts is refused, or passes, whatever it says."""
    items = [say(seq, text) for seq, text in enumerate(said, start=1)]
    assert found(Delta(narrative=told), items).refusal == ""
    assert found(Delta(narrative=filler), items).refusal


def test_a_thin_draft_is_filled_from_where_it_is_silent() -> None:
    """Breaks when: ``filled`` adds the extract's first lines whatever the draft holds."""
    floor = floor_of(TALK)
    thin = Delta(
        narrative="Of the bakery's invoice, and of the parser.",
        add=(add("invoice = 48213", 1), add("src/reader/lexer.py", 4)),
    )
    draft = floor.applied(Ledger(), thin)
    before = floor.findings(draft)
    assert (before.refusal, before.thin, before.missing) == ("", True, ((5, 6),))
    filled, lines = floor.filled(draft, draft)
    after = floor.findings(filled)
    assert not after.thin
    assert after.held >= after.enough > before.held
    new = [entry for entry in filled.entries if entry.text in lines]
    assert any(set(entry.sources) & {5, 6} for entry in new)
    assert all(entry.text in TALK[entry.sources[0] - 1].text for entry in new)
    assert not any(entry.text == SAID[0] and before.held == 0 for entry in new)
    assert {entry.section for entry in new} <= {Section.CONTEXT, Section.DECISIONS, Section.FILES}


def test_the_beginning_alone_is_filled_only_when_one_part_is_missing() -> None:
    """Two thirds missing are refused. Breaks when: a draft of one third counts as thin."""
    two = Delta(
        narrative="", add=(*BAD["the beginning only"].add, add("port 8443 for harbour-7", 3))
    )
    assert found(two).refusal == ""
    assert found(two).missing == ((5, 6),)
    assert found(BAD["the beginning only"]).refusal


def test_sources_that_do_not_bear_an_entry_out_are_no_coverage() -> None:
    """Breaks when: any source counts for its third, whatever the entry says."""
    spread = tuple(add("the bakery in Turku has the invoice 48213", seq) for seq in (1, 3, 6))
    assert found(Delta(add=spread)).missing == ((3, 4), (5, 6))


def test_a_part_is_held_to_the_floor_by_itself() -> None:
    """Breaks when: ``check_part`` does not raise, or takes each piece of a giant for the whole."""
    with pytest.raises(DraftRejected, match="says nothing"):
        check_part(Ledger(), BAD["unknown ids"], TALK, COUNTER.count)
    check_part(Ledger(), GOOD["as a story"], TALK, COUNTER.count)
    piece = [replace(say(1, "The bakery in Turku opens early."), tokens=90_000)]
    said = Delta(narrative="The bakery in Turku opens early.")
    check_part(Ledger(), said, piece, COUNTER.count)


@pytest.mark.parametrize("cap", [120, 300, 1500])
def test_the_extract_passes_by_construction(cap: int) -> None:
    """It is the yardstick. Breaks when: it is held to what it does not hold itself."""
    assert _extract_refused(TALK, Ledger(), cap) == ""
    assert _extract_refused([say(1, "hi"), say(2, "hello")], Ledger(), cap) == ""
    before = floor_of(TALK).applied(Ledger(), GOOD["as JSON"])
    later = [replace(item, seq=item.seq + 6) for item in TALK]
    assert _extract_refused(later, before, cap) == ""


WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "never always use port 8443 src/a.py MAX_TOKENS harbour Bergen 14:30 we'll use todo my "
        'invoice 48213 "two words" lantern 你好世界 和 https://e.org/x a1b2c3d4 Nordlys . ! ?',
    )
)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=60), min_size=1, max_size=12))
@example(
    said=[
        ["never", "never"],
        ["use", "https://e.org/x"],
        ["harbour", "你好世界"],
        ["always"],
        ["never"],
    ]
)
@settings(max_examples=150, deadline=None)
def test_the_extract_passes_whatever_was_said(said: list[list[str]]) -> None:
    """Breaks when: the extract and its yardstick choose their lines in different ways."""
    items = [say(seq, " ".join(words) * 3) for seq, words in enumerate(said, start=1)]
    assert _extract_refused(items, Ledger(), 300) == ""


def _extract_refused(items: list[Item], before: Ledger, cap: int) -> str:
    async def told(tokens: int) -> None:
        return None

    made = ExtractiveSummarizer(COUNTER, cap).draft(items, before, focus="", on_tokens=told)
    try:
        draft = asyncio.run(made)
    except DraftRejected:
        return ""
    findings = floor_of(items, before, cap).findings(draft.ledger)
    return findings.refusal if findings.asked else ""
