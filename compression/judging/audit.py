"""Checks of a draft, which refuse it whole or drop single entries, and its audit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from compression.exceptions import DraftRejected
from compression.judging.cues import takes_back
from compression.judging.redaction import redact, redacted
from compression.judging.salience import evidence, normalise, salient, scripts
from compression.languages.phrases import Phrases, of_every_language
from compression.ledger.ledger import Addition, Delta, Lift, Supersession
from compression.types import Audit, Completion, Item, Ledger, Section

__all__ = [
    "Checked",
    "audit",
    "check_draft",
    "check_entries",
    "check_summary",
    "redact",
    "redact_delta",
    "salient",
    "without_reasoning",
]

FINISHED = frozenset({"stop", "end_turn", "eos", "stop_sequence"})
#: Characters; far more than any cap allows.
LONGEST_ANSWER = 200_000
LONGEST_CONSTRAINT = 400
#: Characters; a model that copies whole messages would push the facts out of the summary.
LONGEST_ENTRY = 500
#: Characters of an entry copied from a message, constraints aside: those are copied by design.
LONGEST_COPY = 200
#: Characters; one or two sentences are expected.
LONGEST_NARRATIVE = 1200
#: Missing items that are listed for the reviewer.
LISTED = 200

_REASONING = re.compile(
    r"<(think|thinking|reasoning)>[\s\S]*?(?:</\1>|\Z)|\A[\s\S]*?</think(?:ing)?>", re.IGNORECASE
)
_TOOL_CALL = re.compile(
    r"\s*(?:<\|?(?:tool_call|function_call|tool_calls)|\[TOOL_CALLS\]|<function=)"
    r"|\s*(?:```json\s*)?\{\s*\"(?:name|tool|function)\"\s*:[\s\S]{0,400}\"(?:arguments|parameters)\"",
    re.IGNORECASE,
)
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<head|<\?xml)", re.IGNORECASE)
#: A hash, of a commit for instance; people write only its beginning.
_HASH = re.compile(r"(?=\d*[a-f])[0-9a-f]{7,40}")


def refusal(languages: Phrases) -> re.Pattern[str]:
    """The pattern of an answer that begins with a refusal; use ``match``."""
    return re.compile(rf"\s*(?:[\"'*#-]*\s*){languages.any_of('refusal')}", re.IGNORECASE)


def negation(languages: Phrases) -> re.Pattern[str]:
    """The pattern of a negation at the end of a text; use ``search``."""
    return re.compile(rf"{languages.whole('negation')}\s*\Z", re.IGNORECASE)


_REFUSAL = of_every_language(refusal)
_NEGATION = of_every_language(negation)
_WORDS = of_every_language(
    lambda languages: {digit: languages.listed("numbers", digit) for digit in "0123456789"}
)


def without_reasoning(text: str) -> str:
    """The answer without the reasoning that a model wrote before it."""
    return _REASONING.sub("", text).strip()


def check_draft(completion: Completion, *, prompt: str = "", secret: str = "") -> str:
    """The text of the answer, without reasoning, if it can be a summary at all.

    ``prompt`` is the request's text and ``secret`` the nonce of its delimiters: an answer that
    repeats them is an echo. Raises :class:`DraftRejected` with the reason when the answer is empty,
    cut off, too long, an echo, or something else than a summary.
    """
    if completion.finish_reason in {"tool_calls", "function_call"}:
        raise DraftRejected("The model called a tool instead of writing the summary.")
    if completion.finish_reason not in FINISHED:
        raise DraftRejected(
            "The model did not finish the summary: it stopped with "
            f"{completion.finish_reason[:40] or 'no reason given'}."
        )
    if not completion.text.strip():
        raise DraftRejected("The model's summary was empty.")
    text = without_reasoning(completion.text)
    if not text:
        raise DraftRejected("The model thought about a summary but wrote none.")
    if len(text) > LONGEST_ANSWER:
        raise DraftRejected("The model's summary was far too long.")
    if _TOOL_CALL.match(text):
        raise DraftRejected("The model called a tool instead of writing the summary.")
    if _PAGE.match(text):
        raise DraftRejected("A web page came instead of a summary.")
    if not text.lstrip("` \njson").startswith("{") and _REFUSAL().match(text):
        raise DraftRejected("The model refused to write a summary.")
    beginning = normalise(prompt)[:200]
    if (secret and secret in text) or (len(beginning) > 80 and beginning in normalise(text)):
        raise DraftRejected("The model repeated its instructions instead of a summary.")
    return text


def check_delta(delta: Delta) -> None:
    """Raise :class:`DraftRejected` for a delta that is empty or consists only of a refusal."""
    if delta.empty:
        raise DraftRejected("The model's summary was empty.")
    operations = delta.add or delta.supersede or delta.resolve or delta.lift
    if not operations and _REFUSAL().match(delta.narrative):
        raise DraftRejected("The model refused to write a summary.")


def check_summary(text: str, items: Sequence[Item]) -> None:
    """Raise :class:`DraftRejected` if a rendered summary cannot stand for the messages."""
    body = re.sub(r"^#+ .*$|\[[\d, –]+\]$", "", text, flags=re.MULTILINE)
    if not any(character.isalnum() for character in body):
        raise DraftRejected("The summary was empty.")
    if _PAGE.match(text):
        raise DraftRejected("A web page came instead of a summary.")
    lines = [line for line in body.splitlines() if line.strip()]
    if len(lines) == 1 and _REFUSAL().match(lines[0]):
        raise DraftRejected("The model refused to write a summary.")
    if not items:
        raise DraftRejected("The summary stands for no message.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A delta whose new entries were checked one by one."""

    kept: Delta
    dropped: tuple[str, ...] = ()
    """A note for each entry that is not in ``kept``, with the reason."""
    problems: tuple[str, ...] = ()
    """The same reasons as the repair call words them, one for each of ``dropped``."""


def check_entries(delta: Delta, items: Sequence[Item], ledger: Ledger) -> Checked:
    """The new entries that their sources support.

    ``items`` is the span. A constraint must be in a user's message, word for word; a wrong source
    is corrected. Any other entry may contain only those numbers, paths, URLs and identifiers that
    are in the messages it cites. No entry may be in another script than the messages, or longer
    than a line. A constraint is lifted only by a user's message that speaks of it.
    """
    check = _EntryCheck(items)
    add: list[Addition] = []
    supersede: list[Supersession] = []
    wrong: list[tuple[str, str]] = []
    for addition in delta.add:
        checked, reason = check.addition(addition)
        if checked is None:
            wrong.append((addition.text, reason))
        else:
            add.append(checked)
    old = {entry.id: entry.text for entry in ledger.entries}
    for one in delta.supersede:
        reason = check.text(one.text, one.sources, also=old.get(one.id, ""))
        if reason:
            wrong.append((one.text, reason))
        else:
            supersede.append(one)
    lifts: list[Lift] = []
    for lift in delta.lift:
        if check.takes_back(lift.source, old.get(lift.id, "")):
            lifts.append(lift)
        else:
            wrong.append((old.get(lift.id, ""), "the message cited does not take that rule back"))
    narrative = delta.narrative
    unheard = check.narrative(narrative)
    if unheard:
        wrong.append((narrative, unheard))
        narrative = ""
    kept = replace(
        delta,
        narrative=narrative,
        add=tuple(add),
        supersede=tuple(supersede),
        lift=tuple(lifts),
    )
    return Checked(
        kept=kept,
        dropped=tuple(f"dropped: {text:.120} ({reason})" for text, reason in wrong),
        problems=tuple(f"“{text:.200}”: {reason}" for text, reason in wrong),
    )


class _EntryCheck:
    """The texts of the span's messages; each is normalised once, when first needed."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = {item.seq: item for item in items}
        self._normal: dict[int, str] = {}
        spoken = [item.text for item in items if item.role == "user"]
        letters = scripts(" ".join(text[:2000] for text in spoken)[:20_000])
        top = letters.most_common(1)
        self._script = top[0][0] if top and top[0][1] > letters.total() / 2 else ""
        sample = " ".join(item.text[:400] for item in items)
        self._scripts = frozenset(scripts(sample))

    def normal(self, seq: int) -> str:
        """The whole normalised text of a message, tool calls included."""
        if seq not in self._normal:
            item = self._items[seq]
            calls = " ".join(str(call) for call in item.tool_calls)
            self._normal[seq] = normalise(f"{item.text} {calls}")
        return self._normal[seq]

    def addition(self, one: Addition) -> tuple[Addition | None, str]:
        """The entry, with its source corrected if necessary; or None and the reason."""
        if one.section is not Section.CONSTRAINTS:
            exact = one.section in (Section.FILES, Section.CONTEXT)
            reason = self.text(one.text, one.sources, any_script=exact)
            return (None, reason) if reason else (one, "")
        if len(one.text) > LONGEST_CONSTRAINT:
            return None, f"a constraint has at most {LONGEST_CONSTRAINT} characters"
        cited = [seq for seq in one.sources if seq in self._items]
        others = [seq for seq in self._items if seq not in cited]
        for seq in (*cited, *others):
            if self._items[seq].role == "user" and _says(self.normal(seq), one.text):
                return replace(one, sources=(seq,)), ""
        return None, "a constraint must be copied word for word from a user message"

    def text(
        self, text: str, sources: Sequence[int], *, also: str = "", any_script: bool = False
    ) -> str:
        """Why the sources do not support a text; empty when they do."""
        if len(text) > LONGEST_ENTRY:
            return f"an entry is one line of at most {LONGEST_ENTRY} characters"
        if not sources:
            return "it cites no message"
        outside = [seq for seq in sources if seq not in self._items]
        if outside:
            return f"it cites message {outside[0]}, which is not among these"
        copied = normalise(text) if len(text) > LONGEST_COPY else ""
        if copied and any(copied in self.normal(seq) for seq in sources):
            return "it copies a message instead of noting what matters in it"
        said = " ".join(self.normal(seq) for seq in sources) + " " + normalise(also)
        return self._unsupported(text, said) or ("" if any_script else self._other_script(text))

    def takes_back(self, seq: int, rule: str) -> bool:
        """False when a user's message does not speak of the rule at all.

        Sources of other roles and unknown rules are left to the merge, which refuses them.
        """
        item = self._items.get(seq)
        if item is None or item.role != "user" or not rule:
            return True
        return takes_back(item.text, rule)

    def narrative(self, text: str) -> str:
        """Why the narrative is not supported by the messages; empty when it is."""
        if len(text) > LONGEST_NARRATIVE:
            return "the narrative has one or two sentences"
        if not evidence(text):
            return self._other_script(text)
        said = " ".join(self.normal(seq) for seq in self._items)
        return self._unsupported(text, said) or self._other_script(text)

    def _unsupported(self, text: str, said: str) -> str:
        plain = _plain(said)
        for one in sorted(evidence(text)):
            found = _holds(said, one) or _holds(plain, _plain(one))
            if not found and not _in_words(one, said):
                return f"{one[:60]} is not in the messages it cites"
        return ""

    def _other_script(self, text: str) -> str:
        letters = scripts(text)
        if letters.total() < 12 or not self._script:
            return ""
        top = letters.most_common(1)[0][0]
        if self._script != "latin" and not letters[self._script] and len(text.split()) >= 3:
            return "it is not in the language of the conversation"
        if top != self._script and top not in self._scripts:
            return "it is not in the language of the conversation"
        return ""


def _says(said: str, constraint: str) -> bool:
    """Whether a message contains these words in full, without a negation before them."""
    words = normalise(constraint).strip("\"' .")
    start = said.find(words) if len(words) >= 3 else -1
    while start >= 0:
        end = start + len(words)
        inside = (start and said[start - 1].isascii() and said[start - 1].isalnum()) or (
            end < len(said) and said[end].isascii() and said[end].isalnum()
        )
        if not inside and not _NEGATION().search(said[max(0, start - 16) : start]):
            return True
        start = said.find(words, start + 1)
    return False


def _plain(text: str) -> str:
    """The text with one way of separating thousands and one of writing paths."""
    return text.replace(",", "").replace("\\", "/")


def _holds(said: str, one: str) -> bool:
    """Whether a text contains these characters, not as part of a longer number."""
    if one not in said or _HASH.fullmatch(one):
        return one in said
    before = r"(?<!\d)" if one[0].isdecimal() else ""
    after = r"(?!\d)" if one[-1].isdecimal() else ""
    return re.search(before + re.escape(one) + after, said) is not None


def _in_words(number: str, said: str) -> bool:
    """Whether a single digit was written as a word."""
    return any(re.search(rf"\b{re.escape(word)}\b", said) for word in _WORDS().get(number, ()))


def redact_delta(delta: Delta) -> tuple[Delta, int]:
    """The delta with secrets redacted, and their number."""
    narrative, count = redact(delta.narrative)
    add: list[Addition] = []
    supersede: list[Supersession] = []
    for addition in delta.add:
        text, found = redact(addition.text)
        add.append(replace(addition, text=text))
        count += found
    for one in delta.supersede:
        text, found = redact(one.text)
        supersede.append(replace(one, text=text))
        count += found
    clean = replace(delta, narrative=narrative, add=tuple(add), supersede=tuple(supersede))
    return clean, count


def audit(
    items: Sequence[Item],
    summary_text: str,
    *,
    evicted: Iterable[str] = (),
    dropped: Iterable[str] = (),
    notes: Iterable[str] = (),
    wanted: Set[str] | None = None,
) -> Audit:
    """The salient items of the span, and those that the summary lost, for the reviewer.

    Linear in the span: an item counts once, however often it was said. ``wanted`` are the span's
    items if the caller has them already.
    """
    if wanted is None:
        # A secret is left out on purpose: it is not missing, and the audit must not show it.
        parts = (part for item in items for part in redacted(item.text))
        wanted = frozenset().union(*map(salient, parts))
    summary = normalise(summary_text)
    missing = sorted(one for one in wanted if one not in summary)
    return Audit(
        salient=len(wanted),
        retained=len(wanted) - len(missing),
        missing=tuple(missing[:LISTED]),
        evicted=tuple(evicted),
        dropped=tuple(dropped),
        notes=tuple(notes),
    )
