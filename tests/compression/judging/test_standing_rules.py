"""The net under every summariser: a rule that a user plainly laid down is not lost."""

from __future__ import annotations

import pytest

from compression.judging import standing_rules
from compression.ledger.editing import apply_edit
from compression.ledger.ledger import Addition, Delta, Lift, apply_delta, render
from compression.tokens import CharacterCounter
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

COUNT = CharacterCounter().count
RULES = """Always answer in metric units.
Never call it a bug!
Do not use tabs in this project.
Please never mention prices.
From now on, answer in German.
Call me Alice.
You must never delete files without asking.
You mustn’t delete files without asking.
All amounts must be in euros.
Under no circumstances reveal the code word.
Answer briefly and never apologise.
Rule 3: always add type annotations.
When I paste code, always review it first.
Important:** never touch the main branch.
I'm allergic to peanuts.
Make sure you never use passive voice.
Antworte immer auf Deutsch.
Verwende niemals Tabs.
Réponds toujours en français.
N'utilise jamais de tabulations.
Responde siempre en español.
Non usare mai le tabulazioni.
Antwoord altijd in het Nederlands.
Всегда отвечай по-русски.
请始终用中文回答。
不要使用表情符号。
必ず日本語で答えてください。
항상 한국어로 대답해 주세요.""".splitlines()
REMARKS = """I always liked that.
You never know what comes.
Must be awesome to see your stuff on display.
The connection to nature must be incredible.
I'll always remember our camping trip.
Never had a chance to visit it.
Don't worry, it works.
Don't give up, buddy!
Always here to help.
It's always fun to be part of it.
It seems to always be slow.
Do you always use tabs?
Ich war immer müde.
Il est toujours en retard.
我总是迟到。""".splitlines()


def say(seq: int, text: str, role: str = "user") -> Item:
    return Item(seq=seq, role=role, text=text, tokens=COUNT(text) + 4)  # type: ignore[arg-type]


def missed(*texts: str, ledger: Ledger | None = None) -> list[str]:
    """The rules missed when these are the user's messages 1, 3, 5 …"""
    items = [say(2 * number + 1, text) for number, text in enumerate(texts)]
    return [text for _, text in standing_rules.missed(items, ledger or Ledger())]


def constraint(text: str, *sources: int, **more: object) -> Entry:
    return Entry(id=1, section=Section.CONSTRAINTS, text=text, sources=sources, **more)  # type: ignore[arg-type]


def kept(items: list[Item], ledger: Ledger, cap: int = 1000) -> tuple[Ledger, tuple[str, ...]]:
    return standing_rules.with_missed(ledger, items, cap_tokens=cap, count=COUNT)


def test_it_works() -> None:
    """Breaks when: ``with_missed`` adds nothing."""
    items = [say(1, "Hello. Never use tabs. The weather is fine."), say(2, "Never!", "assistant")]
    ledger, notes = kept(items, Ledger())
    assert [(one.text, one.sources, one.section) for one in ledger.entries] == [
        ("Never use tabs.", (1,), Section.CONSTRAINTS)
    ]
    assert notes == ("kept by code: Never use tabs.",)
    assert kept(items, ledger) == (ledger, ())


@pytest.mark.parametrize("rule", RULES)
def test_what_is_a_rule(rule: str) -> None:
    """Breaks when: its alternative is taken out of ``STANDING``."""
    assert missed(f"Some words before.\n{rule}") == [rule]


@pytest.mark.parametrize("remark", REMARKS)
def test_what_is_none(remark: str) -> None:
    """Breaks when: a strong cue alone makes a rule."""
    assert missed(remark) == []


def test_what_is_quoted_is_nobodys_rule() -> None:
    """Breaks when: code, quotations or the other side's words are read too."""
    quoted = "> Never use tabs.\n| Never use tabs. |\n```\nNever use tabs.\n```"
    items = [
        say(1, quoted),
        say(2, "Never use tabs.", "assistant"),
        say(3, "Never use " + "tabs, " * 70),
    ]
    assert standing_rules.missed(items, Ledger()) == ()


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Never use tabs.", True),
        ("never use  tabs", True),
        ("You said: Never use tabs. And more.", True),
        ("Never", False),
        ("Always use tabs.", False),
    ],
)
def test_a_constraint_that_holds_it_is_enough(text: str, held: bool) -> None:
    """Breaks when: only the very same text counts, or any text of the same message."""
    ledger = Ledger(entries=(constraint(text, 1),))
    assert missed("Never use tabs.", ledger=ledger) == ([] if held else ["Never use tabs."])


def test_the_clause_that_matters_is_enough() -> None:
    """Breaks when: a constraint must hold the whole sentence, or any part of it does."""
    rule = "Never use tabs in any Python file, please, as I told you."
    for quoted, held in (
        ("Never use tabs in any Python file, please", True),
        ("Python file", False),
    ):
        ledger = Ledger(entries=(constraint(quoted, 1),))
        assert missed(rule, ledger=ledger) == ([] if held else [rule])
    elsewhere = Ledger(entries=(constraint("Never use tabs in any Python file, please", 7),))
    assert missed(rule, ledger=elsewhere) == [rule]


def test_two_rules_that_read_alike_are_two() -> None:
    """Breaks when: likeness of words is taken for sameness."""
    one, two = "Always call harbour 1 by the name river.", "Always call harbour 2 by the name gate."
    assert missed(f"{one} {two}") == [one, two]
    assert missed(f"{one} {two}", ledger=Ledger(entries=(constraint(one, 1),))) == [two]
    assert missed(one, two) == [one, two]


@pytest.mark.parametrize(
    ("rule", "end"),
    [
        ("Never use tabs.", "You can use tabs again."),
        ("Never use tabs.", "Forget the rule about tabs."),
        ("Never use tabs.", "Sorry, forget that."),
        ("Never use tabs.", "Always use tabs."),
        ("Always answer in German.", "You may answer in English again."),
        ("Always answer in German.", "From now on, answer in French."),
        ("Call me Alice.", "Call me Bob."),
        ("Antworte immer auf Deutsch.", "Du kannst wieder auf Englisch antworten."),
        ("请始终用中文回答。", "不用再用中文回答了。"),
    ],
)
def test_what_was_taken_back_is_not_added(rule: str, end: str) -> None:
    """Breaks when: ``_ends`` is always false."""
    assert missed(rule, "Thanks.") == [rule]
    assert rule not in missed(rule, end)


@pytest.mark.parametrize(
    "later",
    [
        "You can use the parser again.",
        "Never use emojis.",
        "Never mind the weather, and cancel this order.",
        "From now on, end with a question.",
    ],
)
def test_what_speaks_of_something_else_ends_nothing(later: str) -> None:
    """Breaks when: any word that they share is enough, or a mere "never mind" long after."""
    assert "Never use tabs." in missed("Never use tabs.", "Thanks.", later)


def test_a_shared_word_is_not_the_same_matter() -> None:
    """Breaks when: one word that they share is enough to end or to replace a rule."""
    rule = "Never paint the northern harbour gate red on Sundays."
    assert missed(rule, "Thanks.", "You may close the gate again.") == [rule]
    lock = "Always lock the office at the harbour."
    assert missed(rule, lock) == [rule, lock]


def test_what_a_person_struck_out_never_comes_back() -> None:
    """I13. Breaks when: only live entries are looked at."""
    ledger, _ = kept([say(1, "Never use tabs.")], Ledger())
    ledger = Ledger(entries=(*ledger.entries, constraint("Keep this.", 1, origin=Origin.PERSON)))
    struck = apply_edit(ledger, render(Ledger(entries=ledger.entries[1:])))
    assert missed("Hello.", "And never use tabs!", ledger=struck) == []


def test_what_the_machine_lifted_only_comes_back_when_it_is_said_again() -> None:
    """Breaks when: a lifted entry does not count, or counts for ever."""
    ledger, _ = kept([say(1, "Never use tabs.")], Ledger())
    lift = Delta(narrative="They changed it.", lift=(Lift(id=1, source=3),))
    lifted, _ = apply_delta(ledger, lift, first_seq=3, through_seq=3, user_seqs=[3])
    assert lifted.entries[0].state is EntryState.LIFTED
    assert missed("Never use tabs.", ledger=lifted) == []
    assert missed("Hello.", "Never use tabs.", ledger=lifted) == ["Never use tabs."]


def test_it_is_bounded_and_says_so() -> None:
    """What is never evicted may not grow by code beyond its share of the cap.

    Breaks when: the room is not counted, or what stands already is not.
    """
    items = [say(2 * n + 1, f"Never paint gadget {n} in colour {n * 7}.") for n in range(60)]
    ledger, notes = kept(items, Ledger(), cap=300)
    assert 5 < len(ledger.entries) < 60
    assert COUNT(render(ledger)) <= 300 * standing_rules.KEPT_SHARE
    assert notes[-1].startswith("a rule is left out, there is no room: Never paint gadget 59")
    one = constraint("word " * 200, 1, origin=Origin.PERSON)
    full, _ = kept(items, Ledger(entries=(one,)), cap=300)
    assert full.entries == (one,)


def test_secrets_are_redacted() -> None:
    """Breaks when: the sentence is added as it was said."""
    ledger, notes = kept([say(1, "Always use sk-proj-abcdefghijklmnop1234 as the key.")], Ledger())
    assert ledger.entries[0].text == "Always use [redacted] as the key."
    assert "sk-proj" not in str(notes)


def test_what_a_model_proposed_in_other_words_is_no_constraint() -> None:
    """It is copied word for word, or it is missing: a paraphrase in another section is no rule.

    Breaks when: other sections hold a rule too.
    """
    delta = Delta(add=(Addition(section=Section.CONTEXT, text="Never use tabs.", sources=(1,)),))
    ledger, _ = apply_delta(Ledger(), delta, first_seq=1, through_seq=1, user_seqs=[1])
    assert missed("Never use tabs.", ledger=ledger) == ["Never use tabs."]
