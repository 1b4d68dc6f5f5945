"""By what rules, decisions and open ends are known. Pure.

The words stand in ``compression/languages``, a file a language; here are the shapes of sentences.
Deliberately few and plain: a rule taken for one that is none costs a line; the opposite costs a
promise. Sources: everyday usage; tried on real coding chats and on long two-person dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compression.languages.phrases import Phrases, every_language

_LANGUAGES = every_language()


def strong_rule(languages: Phrases) -> re.Pattern[str]:
    """What finds a rule: its phrases anywhere, "don't" only where a clause begins."""
    clause = languages.any_of("strong_rule", "clause")
    order = languages.any_of("strong_rule", "order")
    return re.compile(
        rf"{languages.whole('strong_rule')}|(?:^|[,;:(]\s*|\b{clause}\s+){order}\b", re.IGNORECASE
    )


def not_a_rule(languages: Phrases) -> re.Pattern[str]:
    """What finds somebody telling that something always or never is so."""
    somebody, auxiliary, filler, told = (
        languages.any_of("not_a_rule", name) for name in ("somebody", "auxiliary", "filler", "told")
    )
    return re.compile(
        rf"\b{somebody}\s+(?:{auxiliary} )?(?:{filler} )?{told}\b|{languages.whole('not_a_rule')}",
        re.IGNORECASE,
    )


def open_end(languages: Phrases) -> re.Pattern[str]:
    """What finds something left to do."""
    unless = languages.any_of("open_end", "except")
    return re.compile(rf"(?!{unless}){languages.whole('open_end')}", re.IGNORECASE)


STRONG_RULE = strong_rule(_LANGUAGES)
WEAK_RULE = _LANGUAGES.pattern("weak_rule")
NOT_A_RULE = not_a_rule(_LANGUAGES)
DECISION = _LANGUAGES.pattern("decision")
OPEN_END = open_end(_LANGUAGES)
TOLD = _LANGUAGES.pattern("told")
"""By which people tell of themselves: what they say so is asked for later, and is not guessed."""
TAKEN_BACK = _LANGUAGES.pattern("taken_back")
"""By which a user ends a rule, or puts another in its place."""
EMPTY_WORDS = frozenset(_LANGUAGES.listed("empty", "words"))
PAIR = re.compile(r"^[-*\s]{0,6}([^\W\d][\w .-]{1,40}?)\s{0,3}[=:：]\s{0,3}(\S[^\n]{0,80})$")
NUMBER = re.compile(r"\d[\d.,:/%-]{0,20}")
#: Not at a sentence's start, where every word is capital, nor at its end, where people are called.
NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]{2,30}(?![!?.,]?$)")
END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
#: Characters: a message that says little else need not name the rule that it ends.
SHORT_MESSAGE = 200
#: Characters of a constraint at most; it is the user's own words.
LONGEST_RULE = 400
#: Characters of a line looked at together.
WINDOW = 4000


def rule_strength(sentence: str) -> int:
    """2 for a standing rule, 1 for a wish, 0 for neither. A mere question is neither."""
    if not len(sentence) >= 4:
        return 0
    asked = sentence.rstrip().endswith(("?", "？"))
    if STRONG_RULE.search(sentence) and not asked:
        told = NOT_A_RULE.sub(" ", sentence)
        if STRONG_RULE.search(told):
            return 2
    return 1 if WEAK_RULE.search(sentence) and not asked else 0


def takes_back(message: str, rule: str) -> bool:
    """Whether a user's message may end a rule: it says so, or rules otherwise, about the same.

    A rule that stands too long is lifted by a person with one click; one that is gone is missed
    by nobody until it is broken. So in doubt it stands.
    """
    same = bool(stems(message) & stems(rule))
    if TAKEN_BACK.search(message):
        return same or len(message) <= SHORT_MESSAGE
    return same and bool(STRONG_RULE.search(message) or WEAK_RULE.search(message))


def stems(text: str) -> frozenset[str]:
    """The beginnings of the words that say something; pairs of characters where none are apart."""
    found: set[str] = set()
    for word in re.findall(r"[^\W_]+", text.casefold()):
        if word.isascii() or len(word) < 3 or word[0] < "\u2e80":
            if (len(word) > 2 or word.isdigit()) and word not in EMPTY_WORDS:
                found.add(word[:5])
        else:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
    return frozenset(found)


def prose_lines(text: str) -> Iterator[str]:
    """The lines of a message's prose, code and console output left out, long ones in parts."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.strip():
            for start in range(0, len(line), WINDOW):
                yield line[start : start + WINDOW]


TALK_STEMS = stems(" ".join(_LANGUAGES.listed("talk", "words")))
"""By which any talk at all can be told: a summary made of these says nothing of this one."""


def telling(text: str) -> frozenset[str]:
    """The words that say something, by their beginnings; numbers are facts, not words."""
    return frozenset(
        one for one in stems(text) - TALK_STEMS if not any(character.isdigit() for character in one)
    )
