"""The words of each language: every list does what its examples say, alone and among the others."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace

import pytest

from compression.judging import audit, cues, standing_rules
from compression.languages.phrases import (
    COUNTEREXAMPLES,
    EXAMPLES,
    LISTS,
    Language,
    Phrases,
    every_language,
    read,
)
from compression.ledger.ledger import Addition, Delta
from compression.types import Item, Ledger, Section

Finds = Callable[[str], object]


def _of(table: str) -> Callable[[Phrases], Finds]:
    return lambda phrases: phrases.pattern(table).search


def _only(table: str) -> Callable[[Phrases], Finds]:
    """Finds texts of which nothing is left without the table's words."""

    def finder(phrases: Phrases) -> Finds:
        known = cues.stems(" ".join(phrases.listed(table, "words")))
        return lambda text: not cues.stems(text) - known

    return finder


def _made_of(table: str) -> Callable[[Phrases], Finds]:
    """Finds texts that have no other words than the table's."""

    def finder(phrases: Phrases) -> Finds:
        known = set(phrases.listed(table, "words"))
        return lambda text: known.issuperset(re.findall(r"\w+", text.casefold()))

    return finder


FINDERS: dict[str, Callable[[Phrases], Finds]] = {
    "strong_rule": lambda phrases: cues.strong_rule(phrases).search,
    "weak_rule": _of("weak_rule"),
    "not_a_rule": lambda phrases: cues.not_a_rule(phrases).search,
    "decision": _of("decision"),
    "open_end": lambda phrases: cues.open_end(phrases).search,
    "told": _of("told"),
    "taken_back": _of("taken_back"),
    "last_taken_back": lambda phrases: standing_rules.last_taken_back(phrases).search,
    "forbidding": _of("forbidding"),
    "negation": lambda phrases: audit.negation(phrases).search,
    "names_one_of": lambda phrases: standing_rules.names_one_of(phrases).search,
    "refusal": lambda phrases: audit.refusal(phrases).match,
    "standing": lambda phrases: standing_rules.standing(phrases).match,
    "empty": _made_of("empty"),
    "common_in_rules": _only("common_in_rules"),
    "talk": _only("talk"),
    "stop": _made_of("stop"),
}
"""How each table is used. The numbers have a test of their own."""
LANGUAGES = {one.code: one for one in every_language().languages}
TABLES = [
    (code, table) for code, one in LANGUAGES.items() for table in one.tables if table in FINDERS
]
KEYS = [
    (code, table, key)
    for code, table in TABLES
    for key in LANGUAGES[code].tables[table]
    if key not in (EXAMPLES, COUNTEREXAMPLES)
]


def wrong(finds: Finds, language: Language, table: str) -> list[str]:
    """The examples in which nothing is found, and the counterexamples in which something is."""
    lists = language.tables[table]
    missed = [one for one in lists[EXAMPLES] if not finds(one)]
    return missed + [one for one in lists[COUNTEREXAMPLES] if finds(one)]


def without(language: Language, table: str, key: str) -> Language:
    lists = {name: one for name, one in language.tables[table].items() if name != key}
    return replace(language, tables={**language.tables, table: lists})


def test_every_file_is_there() -> None:
    """Breaks when: the files are looked for elsewhere than beside the module."""
    assert {*("de", "en", "es", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh")} <= set(LANGUAGES)
    assert len({one.name for one in LANGUAGES.values()}) == len(LANGUAGES)


def test_every_table_is_used_and_tried() -> None:
    assert {*FINDERS, "numbers"} == set(LISTS)
    used = {(table, key) for _, table, key in KEYS}
    known = {(table, key) for table, keys in LISTS.items() for key in keys if table in FINDERS}
    assert used == known


@pytest.mark.parametrize(("code", "table"), TABLES)
def test_the_examples_of_a_table(code: str, table: str) -> None:
    """Breaks when: a phrase that an example needs is taken out, or one too many is added.

    The language by itself, so that no other one's words help; then all of them together.
    """
    language = LANGUAGES[code]
    assert language.tables[table][EXAMPLES]
    assert language.tables[table][COUNTEREXAMPLES]
    assert wrong(FINDERS[table](Phrases([language])), language, table) == []
    assert wrong(FINDERS[table](every_language()), language, table) == []


@pytest.mark.parametrize(("code", "table", "key"), KEYS)
def test_each_list_has_an_example(code: str, table: str, key: str) -> None:
    """Breaks when: a list is written down and no rule reads it, or no example needs it."""
    language = LANGUAGES[code]
    assert language.tables[table][key]
    assert wrong(FINDERS[table](Phrases([without(language, table, key)])), language, table)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_rule_by_its_examples_is_kept(code: str) -> None:
    """Breaks when: a way to tell a rule is in ``standing`` and its words not in ``strong_rule``."""
    assert wrong(standing_rules.is_standing, LANGUAGES[code], "standing") == []


def test_numbers_in_words() -> None:
    """Breaks when: a digit that was said as a word counts as invented."""
    for digit in "0123456789":
        for word in every_language().listed("numbers", digit):
            items = [Item(seq=1, role="user", text=f"There were {word} lamps.", tokens=6)]
            said = Addition(section=Section.CONTEXT, text=f"Lamps: {digit}", sources=(1,))
            checked = audit.check_entries(Delta(add=(said,)), items, Ledger())
            assert checked.kept.add == (said,), word


def test_a_language_is_one_file() -> None:
    """Breaks when: a new language needs more than its lists."""
    text = """
    name = "Svenska"
    spaces = true
    [strong_rule]
    phrases = ["alltid", "aldrig"]
    [standing]
    first = ["aldrig"]
    """
    swedish = Phrases([*LANGUAGES.values(), read(text, code="sv")])
    for phrases, found in ((swedish, True), (every_language(), False)):
        assert bool(cues.strong_rule(phrases).search("Svara alltid kort.")) is found
        assert bool(standing_rules.standing(phrases).match("Aldrig tabbar.")) is found
    # And what it has not, it does not need.
    assert not Phrases([read(text, code="sv")]).pattern("decision").search("Let's use Redis.")


@pytest.mark.parametrize(
    ("phrase", "found", "not_found"),
    [
        ("not allowed", ["is not allowed.", "Not Allowed"], ["not allowedly", "knot allowed"]),
        ("debe[s]", ["debe", "debes"], ["deber"]),
        ("(is/are) called", ["is called", "are called"], ["called"]),
        ("me[ only/ never] x", ["me x", "me only x", "me never x"], ["me only never x"]),
        ("allerg*", ["allergic"], ["allerg", "allerg y"]),
        ("?*ing", ["bring"], ["king", "ing"]),
        ("don't", ["don't", "don’t"], ["dont"]),
        ("a.b|c", ["a.b|c"], ["axb", "c"]),
    ],
)
def test_how_phrases_are_written(phrase: str, found: list[str], not_found: list[str]) -> None:
    """Breaks when: a sign that ``en.toml`` explains means something else."""
    text = f'name = "A"\nspaces = true\n[decision]\nphrases = ["{phrase}"]'
    finds = Phrases([read(text, code="a")]).pattern("decision").search
    assert [one for one in found if not finds(one)] == []
    assert [one for one in not_found if finds(one)] == []
    anywhere = Phrases([read(text.replace("true", "false"), code="a")]).pattern("decision").search
    assert all(anywhere(f"x{one}x") for one in found if "*" not in phrase)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spaces = true", "needs a name"),
        ('name = "A"\nspaces = "yes"', "whether words have spaces"),
        ('name = "A"\nspaces = true\n[rule]', "no table named rule"),
        ('name = "A"\nspaces = true\n[decision]\nwords = []', "no list named words"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = "x"', "no list of texts"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = [" "]', "an empty text"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = ["a (b"]', r"decision.phrases.*\) is"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = ["a b]"]', "closes nothing"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = ["a/b"]', "between brackets only"),
        ('name = "A"\nspaces = true\n[decision]\nphrases = ["a*[ ]*b"]', r"one \* only"),
    ],
)
def test_a_slip_is_named(text: str, told: str) -> None:
    """Breaks when: a list with a slip in its name is silently never used."""
    tomllib.loads(text)
    with pytest.raises(ValueError, match=told):
        read(text, code="a")


@pytest.mark.parametrize(
    "said", ["n", "ne ", "i ", "don't ", "please, ", "to do ", "不", "ないで", "제 "]
)
def test_time_grows_with_the_text_and_no_faster(said: str) -> None:
    """Breaks when: a word of a phrase may have two ``*``: this takes milliseconds, or minutes."""
    text = (said * 60_000)[:60_000]
    begun = time.process_time()
    for table in FINDERS:
        FINDERS[table](every_language())(text)
    assert time.process_time() - begun < 5
