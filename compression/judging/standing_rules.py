"""Standing rules of a user that a draft lacks: found by code and kept verbatim. Pure.

A summariser that drops a rule loses it for good, since the next summary is not made from that
message. So each draft is checked once more, and missing rules are added in the user's own words.
This is a safety net, not a second summariser: it takes only sentences that tell the assistant what
always or never to do, nothing that a later message or a person took back, and only as much as
leaves room for the rest. Time is linear in the text.

Its error rate on real conversations: ``tests/benchmarks/README.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from compression.judging import cues
from compression.judging.redaction import redact
from compression.judging.salience import normalise
from compression.languages.phrases import Phrases, of_every_language
from compression.ledger.ledger import Addition, Delta, apply_delta, evict, render
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

KEPT_SHARE = 0.6
"""Share of the cap: no rule is added once constraints, pending entries and those of a person fill
it. The extract gives the same share to rules; entries noted by a model are not limited by it."""
COVERED = 0.6
"""Share of a sentence's letters: constraints from the same message that contain this much of it
cover the rule, since models quote the clause that matters."""
MOST = 100
"""Most rules that are considered at once; more would not have room."""
ALIKE, ABOUT = 0.66, 0.33
"""Shares of a rule's words: a later rule that forbids or demands the opposite replaces it when it
shares ``ALIKE``; a later sentence that takes something back ends it when it shares ``ABOUT``."""

NEXT = 2
"""Distance in ``seq`` of the user's next message, which may end a rule without naming it."""
_COMMON = of_every_language(
    lambda languages: cues.stems(" ".join(languages.listed("common_in_rules", "words")))
)
"""Stems of words that many rules have in common."""


def standing(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a sentence that tells an assistant what holds from now on; use ``match``.

    Each line of it is one way to say so. The words are in ``en.toml``; other languages have their
    own ways in ``de.toml``, ``zh.toml``, ``ja.toml`` and ``ko.toml``.
    """

    def of(name: str) -> str:
        return languages.any_of("standing", name)

    lead = rf"""^\W*(?:(?:{of("lead")}|{of("lead_numbered")}(?:\ \w{{1,3}})?|\d{{1,2}}
        |{of("lead_scope")}(?:\ [\w-]{{1,20}}){{1,3}}
        |{of("lead_clause")}\ [^,.:]{{2,80}}(?=[,:]))\b[\s,:;.)*–—-]*){{0,3}}"""
    order = rf"(?!(?!{of('no_order_except')}\b){of('no_order')}\b)\w"
    subject = r"[\w'’\ -]{3,60}\b"
    not_to = "".join(
        rf"(?<!\b{re.escape(word)})" for word in languages.listed("standing", "infinitive")
    )
    return re.compile(
        rf"""{lead}(?:
        {of("adverb")},?\ {order}
        |{of("addressed")}\ {of("adverb")}\ {order}
        |{languages.whole("standing", "opening")}
        |(?!{of("unless")}\b){of("opening_unless")}\b
        |(?!{of("opening_with_word_except")}\b){of("opening_with_word")}\ \w
        |{of("verb")}\b[^.!?]{{0,200}}{not_to}\ {of("adverb_later")}\b
        |{subject}{of("behind_subject_with_order")}\ {order}
        |{subject}{of("behind_subject")}\b
        |(?:{of("courtesy")}\ )?{of("first")}\b(?!\ {of("not_behind_first")}\b)
        |(?:{of("negator_joined")}|{of("negator")}\ )?(?!{of("no_verb")}\b)
            [^\W\d]{{3,20}}(?:\ {of("between")})?[\ -]{of("second")}\b
        |{of("request")}[^。！？]{{0,12}}{of("in_request")}
        |(?!{of("no_start")})[^。！？]{{0,30}}{of("within")}
        |(?:[^.!?]{{0,30}}\ )?{of("within_word")}\b
        )""",
        re.IGNORECASE | re.VERBOSE,
    )


def names_one_of(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a rule that names one of several: another language, another name."""
    by = languages.any_of("names_one_of")
    return re.compile(rf"^(?P<head>.*?)\b(?P<by>{by})\s+(?P<what>[^,;.!]{{1,40}})")


def last_taken_back(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a message that ends the rule before it without naming it."""
    return re.compile(rf"\b{languages.any_of('last_taken_back')}\b", re.IGNORECASE)


STANDING = of_every_language(standing)
"""Matches what people tell an assistant to do from now on, not statements that something always is
so or must have been lovely. ``cues.rule_strength`` must also be 2."""
_FORBIDS = of_every_language(lambda languages: languages.pattern("forbidding"))
_FILLED = of_every_language(names_one_of)
_BACK = of_every_language(last_taken_back)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a user's message that sets a rule or may take one back."""

    seq: int
    text: str
    standing: bool
    takes_back: bool
    about: frozenset[str]
    """The stems of its words, except those that are common in rules."""


def missed(items: Sequence[Item], ledger: Ledger) -> tuple[tuple[int, str], ...]:
    """The users' standing rules in these items that no constraint contains: (seq, sentence).

    Rules that a later sentence takes back or replaces, that were lifted since, or that a person
    removed from the summary are left out.
    """
    said = [one for item in items if item.role == "user" for one in _rule_sentences(item)]
    entries = [
        (_plain(one.text), one) for one in ledger.entries if one.section is Section.CONSTRAINTS
    ]
    unsettled = (
        index
        for index, one in enumerate(said)
        if one.standing and not _settled(one, _plain(one.text), entries)
    )
    found: dict[str, tuple[int, str]] = {}
    for index in islice(unsettled, MOST):
        one = said[index]
        if not any(_ends(later, one) for later in said[index + 1 :]):
            found.setdefault(_plain(one.text), (one.seq, one.text))
    return tuple(found.values())


def with_missed(
    ledger: Ledger, items: Sequence[Item], *, cap_tokens: int, count: Callable[[str], int]
) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger with its missing rules added, and a note for each, also for those without room.

    ``cap_tokens``: ruler tokens, by ``count``, that the summary may have; see ``KEPT_SHARE``.
    """
    wanted = missed(items, ledger)
    if not wanted:
        return ledger, ()
    room = cap_tokens * KEPT_SHARE - count(render(evict(ledger, 0, count)[0]))
    add: list[Addition] = []
    notes: list[str] = []
    for seq, sentence in wanted:
        text, _ = redact(sentence)
        room -= count(f"- {text} [{seq}]\n")
        if room < 0:
            notes.append(f"a rule is left out, there is no room: {text:.120}")
            continue
        add.append(Addition(section=Section.CONSTRAINTS, text=text, sources=(seq,)))
        notes.append(f"kept by code: {text:.120}")
    larger, _ = apply_delta(
        ledger,
        Delta(add=tuple(add)),
        first_seq=items[0].seq,
        through_seq=items[-1].seq,
        user_seqs=[seq for seq, _ in wanted],
    )
    return larger, tuple(notes)


def is_standing(sentence: str) -> bool:
    """Whether a user's sentence says what always or never to do."""
    return cues.rule_strength(sentence) == 2 and STANDING().match(sentence) is not None


def _rule_sentences(item: Item) -> Iterator[_Sentence]:
    """The sentences of a message that set a rule or may end one; quoted text is left out."""
    for line in cues.prose_lines(item.text):
        if line.lstrip().startswith((">", "|")):
            continue
        for raw in cues.END.split(line):
            sentence = raw.strip(" \t*-#")
            if len(sentence) > cues.LONGEST_RULE:
                continue
            standing = is_standing(sentence)
            takes_back = cues.TAKEN_BACK().search(sentence) is not None
            if standing or takes_back:
                yield _Sentence(item.seq, sentence, standing, takes_back, _about(sentence))


def _about(text: str) -> frozenset[str]:
    told = cues.stems(cues.TAKEN_BACK().sub(" ", cues.STRONG_RULE().sub(" ", text)))
    return (told - _COMMON()) or told


def _plain(text: str) -> str:
    return normalise(text).strip("\"' .!。！")


def _settled(said: _Sentence, rule: str, entries: Sequence[tuple[str, Entry]]) -> bool:
    """Whether the ledger contains the rule, or contained it and it was ended since."""
    quoted: set[str] = set()
    for held, entry in entries:
        if entry.state is EntryState.LIVE:
            if rule in held:
                return True
            if held in rule and said.seq in entry.sources:
                quoted.add(held)
            continue
        ended = entry.origin is Origin.PERSON or said.seq <= max(entry.sources, default=0)
        if ended and (rule in held or held in rule):
            return True
    return sum(map(len, quoted)) >= COVERED * len(rule)


def _ends(later: _Sentence, rule: _Sentence) -> bool:
    """Whether a later sentence takes the rule back or replaces it."""
    shared = len(rule.about & later.about) / max(1, len(rule.about))
    if _names_another(rule, later):
        return True
    if later.standing:
        opposite = later.takes_back or _forbids(later) != _forbids(rule)
        return opposite and shared >= ALIKE
    at_once = later.seq <= rule.seq + NEXT
    return shared >= ABOUT or (at_once and _BACK().search(later.text) is not None)


def _forbids(said: _Sentence) -> bool:
    return _FORBIDS().search(said.text) is not None


def _names_another(rule: _Sentence, later: _Sentence) -> bool:
    """Whether both set the same thing to one of several: another language, another name."""
    if _forbids(rule) or _forbids(later):
        return False
    old, new = _FILLED().search(_plain(rule.text)), _FILLED().search(_plain(later.text))
    if old is None or new is None or old["by"] != new["by"]:
        return False
    return _about(old["head"]) == _about(new["head"]) and old["what"] != new["what"]
