"""Both sides of the floor: drafts of a good small model and empty ones, on long conversations.

The conversations are the project's own, or those under the folder that ``DATA`` names: any JSON
there that holds lists of messages with ``role`` and ``content``. The good drafts are made by plain
rules from what the users said, as thin as a small model's: they hold whole sentences of a few
messages, and nothing else.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from compression.judging.cues import END, prose_lines
from compression.judging.floor import SPREAD_TOKENS, Floor
from compression.judging.salience import facts
from compression.ledger.ledger import Addition, Delta
from compression.summarizers.extractive import room_for
from compression.types import Item, Ledger, Role, Section
from tests.benchmarks._host import RULER
from tests.benchmarks._models import fact, prose, rule

CAP = 1500
SPAN_TOKENS = 12_000
#: Longer conversations are looked at in spans of this size.
SHORTEST = 8
#: Messages of a conversation that is looked at.
FILLER = (
    "The user and the assistant had a productive conversation in which many important topics were "
    "discussed in detail. Helpful and comprehensive answers were given, the user followed up with "
    "further questions, and several problems were solved step by step. They considered different "
    "options, agreed on how to continue, and were satisfied with the progress that was made. "
) * 3


@dataclass(slots=True)
class Row:
    """One kind of draft over all spans."""

    good: bool
    applied: int = 0
    filled: int = 0
    refused: int = 0
    lines: int = 0
    """Filled by code, in all."""
    shares: list[float] = field(default_factory=list)
    """Facts held, of those that the extract holds; where it holds any."""


def conversations() -> Iterator[tuple[str, list[Item]]]:
    """Spans to summarise, by name."""
    folder = os.environ.get("DATA", "")
    if not folder:
        yield from _own()
        return
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix not in {".json", ".traj"}:
            continue
        try:
            value = json.loads(path.read_text("utf-8"))
        except ValueError:
            continue
        for number, messages in enumerate(_lists(value)):
            yield from _spans(f"{path.stem}:{number}", messages)


def _own() -> Iterator[tuple[str, list[Item]]]:
    """Talk about harbours with facts and rules in it, of several lengths and densities."""
    for turns, each in ((12, 1), (40, 3), (120, 6)):
        chance = random.Random(turns)
        said: list[tuple[Role, str]] = []
        for number in range(turns):
            told = fact(number // each % 40)[0] if number % each == 0 else ""
            told += f" {rule(number)}" if number in (2, 11) else ""
            said += [("user", f"{told} {prose(60, chance)}"), ("assistant", prose(150, chance))]
        yield from _spans(f"harbours, a fact in {each}", said)


def _lists(value: Any) -> Iterator[list[tuple[Role, str]]]:
    """Every list of messages anywhere in a JSON value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _lists(inner)
    elif isinstance(value, list):
        said = [one for one in map(_message, value) if one is not None]
        if len(said) >= SHORTEST:
            yield said
        else:
            for inner in value:
                yield from _lists(inner)


def _message(value: Any) -> tuple[Role, str] | None:
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        return None
    role = value.get("role")
    return (role, value["content"]) if role in ("user", "assistant", "tool") else None


def _spans(name: str, said: list[tuple[Role, str]]) -> Iterator[tuple[str, list[Item]]]:
    items: list[Item] = []
    for role, text in said:
        items.append(Item(seq=len(items) + 1, role=role, text=text, tokens=RULER.count(text) + 4))
        if sum(item.tokens for item in items) > SPAN_TOKENS:
            yield name, items
            items = []
    if sum(item.tokens for item in items) > 2 * SPREAD_TOKENS and len(items) >= SHORTEST:
        yield name, items


def good_drafts(items: list[Item]) -> dict[str, Delta]:
    """Twelve lines, five lines, a story, and Markdown's three lines with a sentence."""
    told = [(item.seq, best) for item in items if (best := _sentence(item))]
    story = " ".join(text for _, text in _evenly(told, 8))[:1100]
    return {
        "12 lines": _lines(_evenly(told, 12)),
        "5 lines": _lines(_evenly(told, 5)),
        "a story": Delta(narrative=story),
        "3 lines and a sentence": Delta(
            narrative=_evenly(told, 2)[0][1], add=_lines(_evenly(told, 3)).add
        ),
    }


def bad_drafts(items: list[Item]) -> dict[str, Delta]:
    """What must not be applied."""
    told = [(item.seq, best) for item in items[: len(items) // 4] if (best := _sentence(item))]
    every = [(item.seq, "something was said") for item in items]
    return {
        "ok": Delta(narrative="ok"),
        "one word": Delta(narrative="Conversation."),
        "unknown ids": Delta(resolve=(90_001,)),
        "a sentence of nothing": Delta(narrative="They talked about several things."),
        "filler of 200 words": Delta(narrative=FILLER),
        "empty entries": _lines(_evenly(every, 6)),
        "an invention": Delta(
            narrative="A journey was planned.",
            add=_lines([(seq, "Captain Nemo sails for Zanzibar") for seq, _ in every[::5]]).add,
        ),
        "the beginning only": _lines(told[:5]),
    }


def _sentence(item: Item) -> str:
    """The sentence of a message that holds the most facts, else its longest."""
    if item.role == "tool":
        return ""
    found = [
        sentence.strip()[:200]
        for line in prose_lines(item.text[:4000])
        for sentence in END.split(line)
        if len(sentence.split()) > 3 or not sentence.isascii()
    ]
    return max(found, key=lambda one: (len(facts(one)), len(one)), default="")


def _evenly(told: list[tuple[int, str]], most: int) -> list[tuple[int, str]]:
    """The one with the most facts of each of so many parts, as a model would choose."""
    edges = [at * len(told) // most for at in range(most + 1)]
    parts = (told[start:end] for start, end in pairwise(edges))
    return [max(part, key=lambda one: len(facts(one[1]))) for part in parts if part]


def _lines(told: list[tuple[int, str]]) -> Delta:
    return Delta(
        add=tuple(
            Addition(section=Section.CONTEXT, text=text, sources=(seq,)) for seq, text in told
        )
    )


def judged(row: Row, floor: Floor, delta: Delta) -> None:
    """Count what becomes of one draft."""
    draft = floor.applied(Ledger(), delta)
    found = floor.findings(draft)
    if found.extract:
        row.shares.append(found.held / found.extract)
    if found.refusal:
        row.refused += 1
        return
    row.applied += 1
    if found.thin:
        lines = floor.filled(draft, draft)[1]
        row.filled += bool(lines)
        row.lines += len(lines)


def main() -> int:
    """0 when no empty draft is applied, and at most one good one in a hundred is refused."""
    rows: dict[str, Row] = {}
    spans = 0
    for _, items in conversations():
        spans += 1
        room = room_for(items, Ledger(), CAP, RULER.count)
        floor = Floor(Ledger(), items, RULER.count, room=room)
        for good, drafts in ((True, good_drafts(items)), (False, bad_drafts(items))):
            for name, delta in drafts.items():
                judged(rows.setdefault(name, Row(good=good)), floor, delta)
    print(f"{spans} spans; facts held, of those that the extract holds in {CAP:,} tokens")
    print(f"{'draft':26}{'applied':>9}{'refused':>9}{'filled':>8}{'lines':>7}  least median most")
    for name, row in rows.items():
        shares = sorted(row.shares) or [0.0]
        held = f"{shares[0]:.2f}   {shares[len(shares) // 2]:.2f}  {shares[-1]:.2f}"
        lines = row.lines / max(1, row.filled)
        print(f"{name:26}{row.applied:>9}{row.refused:>9}{row.filled:>8}{lines:>7.1f}   {held}")
    lost = sum(row.refused for row in rows.values() if row.good)
    # A beginning may be all that a short span has facts of: it is filled, not refused.
    bad = [row for name, row in rows.items() if not row.good and name != "the beginning only"]
    empty = sum(row.applied for row in bad)
    print(f"Good drafts refused: {lost}. Empty drafts applied: {empty}.")
    return 1 if empty or lost > 0.01 * 4 * spans else 0
