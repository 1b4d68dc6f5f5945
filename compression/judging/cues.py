"""Patterns that recognise rules, decisions and open ends in messages. Pure.

The words are in ``compression/languages``, one file per language; the sentence shapes are here.
They are few and simple on purpose: a sentence mistaken for a rule costs a line, a missed rule
breaks a promise. Sources: everyday usage, tried on real coding chats and long dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compression.languages.phrases import Phrases, of_every_language


def strong_rule(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a rule: its phrases anywhere, "don't" only where a clause begins."""
    clause = languages.any_of("strong_rule", "clause")
    order = languages.any_of("strong_rule", "order")
    return re.compile(
        rf"{languages.whole('strong_rule')}|(?:^|[,;:(]\s*|\b{clause}\s+){order}\b", re.IGNORECASE
    )


def not_a_rule(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a statement that something always or never is so."""
    somebody, auxiliary, filler, told, demand = (
        languages.any_of("not_a_rule", name)
        for name in ("somebody", "auxiliary", "filler", "told", "demand")
    )
    return re.compile(
        rf"\b{somebody}\s+(?:{auxiliary} )?(?:{filler} )?{told}\b(?! {demand}\b)"
        rf"|{languages.whole('not_a_rule')}",
        re.IGNORECASE,
    )


def open_end(languages: Phrases) -> re.Pattern[str]:
    """The pattern of something left to do."""
    unless = languages.any_of("open_end", "except")
    return re.compile(rf"(?!{unless}){languages.whole('open_end')}", re.IGNORECASE)


STRONG_RULE = of_every_language(strong_rule)
WEAK_RULE = of_every_language(lambda languages: languages.pattern("weak_rule"))
NOT_A_RULE = of_every_language(not_a_rule)
DECISION = of_every_language(lambda languages: languages.pattern("decision"))
OPEN_END = of_every_language(open_end)
TOLD = of_every_language(lambda languages: languages.pattern("told"))
"""Matches people telling of themselves; such facts are asked for later and cannot be guessed."""
TAKEN_BACK = of_every_language(lambda languages: languages.pattern("taken_back"))
"""Matches a user ending a rule, or replacing it by another."""
EMPTY_WORDS = of_every_language(lambda languages: frozenset(languages.listed("empty", "words")))
PAIR = re.compile(r"^[-*\s]{0,6}([^\W\d][\w .-]{1,40}?)\s{0,3}[=:：]\s{0,3}(\S[^\n]{0,80})$")
NUMBER = re.compile(r"\d[\d.,:/%-]{0,20}")
#: Not at the start of a sentence, where any word is capitalised, nor at its end, where people are
#: addressed.
NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]{2,30}(?![!?.,]?$)")
END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
#: Characters: a message this short may end a rule without naming it.
SHORT_MESSAGE = 200
#: Characters of a constraint, which is copied from the user.
LONGEST_RULE = 400
#: Characters of a line that are matched at once.
WINDOW = 4000


def rule_strength(sentence: str) -> int:
    """2 for a standing rule, 1 for a wish, 0 for anything else, such as a plain question."""
    if not len(sentence) >= 4:
        return 0
    asked = sentence.rstrip().endswith(("?", "？"))
    if STRONG_RULE().search(sentence) and not asked:
        told = NOT_A_RULE().sub(" ", sentence)
        if STRONG_RULE().search(told):
            return 2
    return 1 if WEAK_RULE().search(sentence) and not asked else 0


def takes_back(message: str, rule: str) -> bool:
    """Whether a user's message may end a rule: it says so, or sets another rule on the same topic.

    In doubt the rule stays: a person lifts a rule that stays too long with one click, but nobody
    misses a lost one until it is broken.
    """
    same = bool(stems(message) & stems(rule))
    if TAKEN_BACK().search(message):
        return same or len(message) <= SHORT_MESSAGE
    return same and bool(STRONG_RULE().search(message) or WEAK_RULE().search(message))


def stems(text: str) -> frozenset[str]:
    """The stems of the meaningful words; pairs of characters in scripts without blanks."""
    found, empty = set[str](), EMPTY_WORDS()
    for word in re.findall(r"[^\W_]+", text.casefold()):
        if word.isascii() or len(word) < 3 or word[0] < "\u2e80":
            if (len(word) > 2 or word.isdigit()) and word not in empty:
                found.add(word[:5])
        else:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
    return frozenset(found)


def prose_lines(text: str) -> Iterator[str]:
    """The lines of a message's prose, without code and console output; long ones in pieces."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.strip():
            for start in range(0, len(line), WINDOW):
                yield line[start : start + WINDOW]


TALK_STEMS = of_every_language(lambda languages: stems(" ".join(languages.listed("talk", "words"))))
"""Stems of words that fit any conversation: a summary made only of these says nothing."""


def telling(text: str) -> frozenset[str]:
    """The stems of the words that say something; numbers count as facts instead."""
    return frozenset(
        one
        for one in stems(text) - TALK_STEMS()
        if not any(character.isdigit() for character in one)
    )
