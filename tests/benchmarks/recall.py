"""How many questions have all their evidence among the first ten hits, and how long that takes.

The questions are the project's own, or those of the files under the folder that ``DATA`` names, in
the form of LoCoMo: a JSON list of dialogues, each with ``conversation`` (``session_1`` and so on,
lists of turns with ``speaker``, ``dia_id`` and ``text``) and ``qa`` (``question``, ``evidence``,
``category``).
Every turn is a message and the last 20 are the tail; the question is the query. Asked twice: with
these conversations alone in the index, and with a thousand others.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

TAIL = 20
OTHERS = int(os.environ.get("RECALL_OTHERS", "1000"))
#: Messages of each of the others.
OTHER_LENGTH = 400
BEST = 10
#: The window at which the tool's answer is also measured as it is given, in 0.05 of the budget.
SMALL = 8_192
#: Percent of LoCoMo's questions: all evidence among the first ten, and with their neighbours.
DEMANDED = (70.0, 80.0)
#: The same of the project's own questions, which are easier.
OWN_DEMANDED = (95.0, 95.0)
#: Seconds of a search, of which one in twenty may take longer.
LONGEST = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Messages with their roles, and questions with the places of their evidence."""

    name: str
    said: list[tuple[str, str]]
    questions: list[tuple[str, frozenset[int], str]]
    """Question, seqs of the evidence, category."""


@dataclass(slots=True)
class Tally:
    """What one way of searching reached."""

    asked: int = 0
    all_5: int = 0
    all_10: int = 0
    any_10: int = 0
    neighbours: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, hits: list[int], shown: set[int], evidence: frozenset[int]) -> None:
        """Count one question; ``shown`` are the first ten with what comes along."""
        best = set(hits[:BEST])
        self.asked += 1
        self.all_5 += evidence <= set(hits[:5])
        self.all_10 += evidence <= best
        self.any_10 += bool(evidence & best)
        self.neighbours += evidence <= shown

    def share(self, of: int) -> float:
        """So many of the questions, in percent."""
        return 100 * of / max(1, self.asked)


def dialogues() -> Iterator[Dialogue]:
    """The conversations to ask about."""
    folder = os.environ.get("DATA", "")
    if not folder:
        yield from _own()
        return
    for path in sorted(Path(folder).rglob("*.json")):
        value = json.loads(path.read_text("utf-8"))
        for number, one in enumerate(value if isinstance(value, list) else []):
            if isinstance(one, dict) and "qa" in one and "conversation" in one:
                yield _dialogue(f"{path.stem}:{number}", one)


def _own() -> Iterator[Dialogue]:
    """Talk about harbours in which forty facts are told; each is asked for."""
    from tests.benchmarks._models import fact, prose

    chance = random.Random(5)
    said: list[tuple[str, str]] = []
    questions = []
    for number in range(40):
        sentence, _ = fact(number)
        thing = re.findall(r"the (\w+ of \w+) is", sentence)[0]
        for _ in range(3):
            said.append(("user", prose(30, chance)))
            said.append(("assistant", prose(60, chance)))
        said.append(("user", f"{sentence} {prose(30, chance)}"))
        questions.append((f"What is the {thing} called?", frozenset({len(said)}), "own"))
        said.append(("assistant", prose(60, chance)))
    said += [("user", prose(10, chance))] * TAIL
    yield Dialogue(name="harbours", said=said, questions=questions)


def _dialogue(name: str, value: dict[str, Any]) -> Dialogue:
    told = value["conversation"]
    said: list[tuple[str, str]] = []
    seqs: dict[tuple[int, int], int] = {}
    for session in count(1):
        if f"session_{session}" not in told and f"session_{session}_date_time" not in told:
            break
        for turn in told.get(f"session_{session}", []):
            role = "user" if turn["speaker"] == told["speaker_a"] else "assistant"
            said.append((role, turn["text"]))
            seqs[_place(turn["dia_id"])[0]] = len(said)
    questions = []
    for one in value["qa"]:
        named = [place for text in one.get("evidence", []) for place in _place(text)]
        evidence = frozenset(seqs[place] for place in named if place in seqs)
        if evidence and max(evidence) <= len(said) - TAIL:
            questions.append((str(one["question"]), evidence, str(one["category"])))
    return Dialogue(name=name, said=said, questions=questions)


def _place(text: str) -> list[tuple[int, int]]:
    """``D3:12`` as session and turn; some entries hold several, or none."""
    return [(int(a), int(b)) for a, b in re.findall(r"D:?(\d+):(\d+)", text)]


def main() -> int:
    """Print the tables; 0 when what is demanded is reached, alone and among the others."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'recall.sqlite3'}"
        return _measure()


def _measure() -> int:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", interactive=False, verbosity=0)
    asked = [(one, _store(one.said, one.name)) for one in dialogues()]
    demanded = DEMANDED if os.environ.get("DATA") else OWN_DEMANDED
    missed: list[str] = []
    for others in (0, OTHERS):
        if others:
            _fill(others, [text for one, _ in asked for _, text in one.said])
        print(f"{others} other conversations in the index")
        control = _asked(asked, _by_the_database, _beside)
        _print("the database's own rank", control)
        reached = _asked(asked, _by_recall, _answered)
        _print("recall", reached)
        _print(f"recall, {SMALL:,} tokens", _asked(asked, _by_recall, _answered_within))
        total, slow = reached["all"], quantile(reached["all"].seconds)
        figures = (total.share(total.all_10), total.share(total.neighbours))
        for figure, least in zip(figures, demanded, strict=True):
            if figure < least:
                missed.append(f"{figure:.1f} % where {least} % are demanded, {others} others")
        if slow > LONGEST:
            missed.append(f"one search in twenty took {slow:.2f} s, {others} others")
        if total.all_10 < control["all"].all_10:
            missed.append(f"the database's own rank finds more, {others} others")
    print("\n".join(missed) or "What is demanded was reached.")
    return 1 if missed else 0


def _store(said: list[tuple[str, str]], name: str) -> int:
    """The id of a stored conversation whose last messages are its tail."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from chatapp.models import Conversation, Message

    owner, _ = get_user_model().objects.get_or_create(username="owner")
    row = Conversation.objects.create(
        owner=owner,
        title=name,
        next_seq=len(said) + 1,
        compressed_through=max(0, len(said) - TAIL),
        compressed_context="## Context\n- What was said before. [1]",
        compression_version=1,
    )
    now = timezone.now()
    Message.objects.bulk_create(
        Message(
            conversation=row,
            seq=seq,
            role=role,
            text=text,
            token_count=len(text) // 4 + 4,
            created_at=now,
        )
        for seq, (role, text) in enumerate(said, start=1)
    )
    return row.pk


def _fill(others: int, texts: list[str]) -> None:
    """So many other conversations of the same words, in another order."""
    chance = random.Random(3)
    words = [word for text in texts for word in text.split()]
    for number in range(others):
        said = []
        for at in range(OTHER_LENGTH):
            first = chance.randrange(max(1, len(words) - 40))
            text = " ".join(words[first : first + chance.randrange(5, 40)])
            said.append(("user" if at % 2 == 0 else "assistant", text))
        _store(said, f"other {number}")


Search = Callable[[int, str], list[int]]
Shown = Callable[[int, str, list[int]], set[int]]


def _beside(conversation_id: int, question: str, hits: list[int]) -> set[int]:
    """The first hits and the messages before and after each."""
    return {near for one in hits[:BEST] for near in (one - 1, one, one + 1)}


def _answered(conversation_id: int, question: str, hits: list[int]) -> set[int]:
    """The messages in a tool's answer with ten passages, and room for them."""
    from chatapp.conversations.messages.originals import StoredHistory
    from chatapp.models import Conversation
    from compression.recall.answers import search
    from compression.recall.quoting import numbers

    history = StoredHistory(Conversation.objects.get(pk=conversation_id))
    return set(numbers(search(history, question, limit=BEST, count=len, most_tokens=10**9)))


def _answered_within(conversation_id: int, question: str, hits: list[int]) -> set[int]:
    """The same as ``_answered``, in what one call may cost at ``SMALL``, as the ruler counts."""
    from chatapp.conversations.messages.originals import StoredHistory
    from chatapp.models import Conversation
    from compression.recall.answers import search
    from compression.recall.quoting import numbers
    from compression.recall.tools import SHARE
    from compression.tokens import default_counter
    from compression.types import Sizes

    history = StoredHistory(Conversation.objects.get(pk=conversation_id))
    most = Sizes(window=SMALL, reserve=SMALL // 4).ruler(SHARE)
    count = default_counter().count
    return set(numbers(search(history, question, limit=BEST, count=count, most_tokens=most)))


def _by_recall(conversation_id: int, question: str) -> list[int]:
    """Seqs of the hits of the model's own search."""
    from chatapp.conversations.messages.originals import StoredHistory
    from chatapp.models import Conversation
    from compression.recall.ranking import ranked
    from compression.recall.terms import in_pairs, terms_of

    row = Conversation.objects.get(pk=conversation_id)
    return ranked(StoredHistory(row), in_pairs(terms_of(question)))


def _by_the_database(conversation_id: int, question: str) -> list[int]:
    """Seqs of the hits by the rank of the full-text index, which counts everybody's words."""
    from chatapp.conversations.searching import ranked
    from chatapp.models import Conversation, Message
    from compression.recall.terms import terms_of

    row = Conversation.objects.get(pk=conversation_id)
    ids = ranked(
        terms_of(question), owner_id=row.owner_id, conversation_id=row.pk, limit=BEST + TAIL
    )
    seqs = dict(Message.objects.filter(pk__in=ids).values_list("pk", "seq"))
    return [seqs[pk] for pk in ids if seqs[pk] <= row.compressed_through]


def _asked(asked: list[tuple[Dialogue, int]], search: Search, shown: Shown) -> dict[str, Tally]:
    """Category → what was reached; ``all`` is all of them."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for dialogue, pk in asked:
        for question, evidence, category in dialogue.questions:
            begun = time.perf_counter()
            hits = search(pk, question)
            seconds = time.perf_counter() - begun
            seen = shown(pk, question, hits)
            for tally in (tallies["all"], tallies[category]):
                tally.add(hits, seen, evidence)
                tally.seconds.append(seconds)
    return dict(tallies)


def quantile(seconds: list[float]) -> float:
    """The 95th percentile."""
    return sorted(seconds)[len(seconds) * 95 // 100]


def _print(name: str, tallies: dict[str, Tally]) -> None:
    print(f"  {name:26} asked  all@5 all@10 any@10 all@10 with neighbours   p50 and p95, ms")
    for category, one in sorted(tallies.items()):
        shares = (one.all_5, one.all_10, one.any_10, one.neighbours)
        figures = " ".join(f"{one.share(of):6.1f}" for of in shares)
        middle, slow = statistics.median(one.seconds) * 1000, quantile(one.seconds) * 1000
        print(f"  {category:26} {one.asked:5} {figures}   {middle:14.1f} {slow:8.1f}")
