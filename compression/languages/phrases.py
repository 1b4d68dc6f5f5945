"""The language files, read once, and the regular expressions made from them. Pure.

To add a language, write ``xx.toml`` beside ``en.toml``, which explains each list and how phrases
are written. A file needs ``name``, ``spaces`` and the lists that its speakers use; nothing has to
be registered. ``tests/compression/languages`` tries its examples. The modules that use a list
decide where in a sentence its words must stand: ``cues``, ``standing_rules`` and ``audit``.

The expressions take time linear in the text: a word of a phrase has at most one ``*``, and nothing
that contains a repetition is repeated.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TypeVar

T = TypeVar("T")

EXAMPLES, COUNTEREXAMPLES = "examples", "counterexamples"
LISTS: Mapping[str, frozenset[str]] = {
    "strong_rule": frozenset({"phrases", "order", "clause"}),
    "weak_rule": frozenset({"phrases"}),
    "not_a_rule": frozenset({"phrases", "somebody", "auxiliary", "filler", "told", "demand"}),
    "decision": frozenset({"phrases"}),
    "open_end": frozenset({"phrases", "except"}),
    "told": frozenset({"phrases"}),
    "taken_back": frozenset({"phrases"}),
    "last_taken_back": frozenset({"phrases"}),
    "forbidding": frozenset({"phrases"}),
    "negation": frozenset({"phrases"}),
    "names_one_of": frozenset({"phrases"}),
    "refusal": frozenset({"phrases"}),
    "standing": frozenset(
        {
            *("lead", "lead_numbered", "lead_scope", "lead_clause"),
            *("adverb", "addressed", "no_order", "no_order_except"),
            *("opening", "opening_unless", "unless"),
            *("opening_with_word", "opening_with_word_except"),
            *("verb", "adverb_later", "infinitive"),
            *("behind_subject", "behind_subject_with_order"),
            *("courtesy", "first", "not_behind_first"),
            *("second", "between", "negator", "negator_joined", "no_verb"),
            *("request", "in_request", "within", "no_start", "within_word"),
        }
    ),
    "numbers": frozenset("0123456789"),
    "empty": frozenset({"words"}),
    "common_in_rules": frozenset({"words"}),
    "talk": frozenset({"words"}),
    "stop": frozenset({"words"}),
}
"""The tables that a file may have, and the lists in each, examples aside."""
OF_WORDS = frozenset({"numbers", "empty", "common_in_rules", "talk", "stop"})
"""The tables that hold plain words."""

_SIGNS = {
    "[": "(?:",
    "]": ")?",
    "(": "(?:",
    ")": ")",
    "/": "|",
    "*": r"\w+",
    "?": r"\w",
    "'": "['’]",
}
_CLOSING = {"[": "]", "(": ")"}
_NOTHING = "(?!)"
"""A regular expression that matches nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The content of one language file."""

    code: str
    """The file's name without ``.toml``."""
    name: str
    """The language's name in that language."""
    spaces: bool
    """Whether blanks separate words, so that a phrase is matched as whole words only."""
    tables: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Table → list → its phrases or words."""


class Phrases:
    """The lists of several languages, merged."""

    def __init__(self, languages: Iterable[Language]) -> None:
        self.languages = tuple(languages)

    def listed(self, table: str, name: str = "phrases") -> tuple[str, ...]:
        """All phrases of this list, without duplicates."""
        return tuple(dict.fromkeys(self._listed(table, name, self.languages)))

    def any_of(self, table: str, name: str = "phrases") -> str:
        """A regular expression for any of these phrases, anywhere."""
        return _one_of(self.listed(table, name))

    def whole(self, table: str, name: str = "phrases") -> str:
        """The same for whole words; in languages without blanks, anywhere."""
        apart = [one for one in self.languages if one.spaces]
        joined = [one for one in self.languages if not one.spaces]
        words = _one_of(self._listed(table, name, apart))
        return rf"(?:\b{words}\b|{_one_of(self._listed(table, name, joined))})"

    def pattern(self, table: str) -> re.Pattern[str]:
        """The case-insensitive pattern of a table's phrases, matched as :meth:`whole` says."""
        return re.compile(self.whole(table), re.IGNORECASE)

    @staticmethod
    def _listed(table: str, name: str, languages: Iterable[Language]) -> Iterator[str]:
        assert name in LISTS[table], f"{table}.{name}"
        for language in languages:
            yield from language.tables.get(table, {}).get(name, ())


@cache
def every_language() -> Phrases:
    """The lists of all files of this folder."""
    files = (one for one in resources.files(__package__).iterdir() if one.name.endswith(".toml"))
    ordered = sorted(files, key=lambda one: one.name)
    return Phrases(
        read(one.read_text("utf-8"), code=one.name.removesuffix(".toml")) for one in ordered
    )


def of_every_language(make: Callable[[Phrases], T]) -> Callable[[], T]:
    """A function that returns what ``make`` makes of all languages' phrases, at its first call.

    These patterns take 2 MB, which a process does not need before its first compression.
    """
    return cache(lambda: make(every_language()))


def read(text: str, *, code: str) -> Language:
    """The language in a file's text. Raises :class:`ValueError` that says what to correct."""
    tables = tomllib.loads(text)
    name, spaces = tables.pop("name", None), tables.pop("spaces", None)
    if not isinstance(name, str) or not isinstance(spaces, bool):
        raise ValueError(f"{code}.toml: it needs a name, and whether words have spaces.")
    for table, lists in tables.items():
        if table not in LISTS or not isinstance(lists, dict):
            raise ValueError(f"{code}.toml: there is no table named {table}.")
        for key, listed in lists.items():
            if key not in LISTS[table] | {EXAMPLES, COUNTEREXAMPLES}:
                raise ValueError(f"{code}.toml: {table} has no list named {key}.")
            if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
                raise ValueError(f"{code}.toml: {table}.{key} is no list of texts.")
            try:
                _check(table, key, listed)
            except ValueError as error:
                raise ValueError(f"{code}.toml, {table}.{key}: {error}") from None
    known = {
        table: {key: tuple(one) for key, one in lists.items()} for table, lists in tables.items()
    }
    return Language(code=code, name=name, spaces=spaces, tables=known)


def _check(table: str, key: str, listed: Iterable[str]) -> None:
    for one in listed:
        if not one.strip():
            raise ValueError("there is an empty text.")
        if key not in (EXAMPLES, COUNTEREXAMPLES) and table not in OF_WORDS:
            expression(one)


def _one_of(phrases: Iterable[str]) -> str:
    return "(?:" + ("|".join(map(expression, dict.fromkeys(phrases))) or _NOTHING) + ")"


@cache
def expression(phrase: str) -> str:
    """The regular expression of a phrase. Raises :class:`ValueError` when it is malformed."""
    open_brackets: list[str] = []
    stars = 0
    for sign in phrase:
        if sign in _CLOSING:
            open_brackets.append(_CLOSING[sign])
        elif sign in _CLOSING.values() and (not open_brackets or open_brackets.pop() != sign):
            raise ValueError(f"“{phrase}”: {sign} closes nothing.")
        elif sign == "/" and not open_brackets:
            raise ValueError(f"“{phrase}”: / stands between brackets only.")
        stars = 0 if sign == " " and not open_brackets else stars + (sign == "*")
        if stars > 1:
            raise ValueError(f"“{phrase}”: a word may have one * only.")
    if open_brackets:
        raise ValueError(f"“{phrase}”: {open_brackets[-1]} is missing.")
    return "".join(_SIGNS.get(sign) or re.escape(sign) for sign in phrase)
