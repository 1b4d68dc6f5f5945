"""What is left of the paths, commands, names, figures and decisions of a conversation.

Each is looked for after the first compression and the last, among all that were said before the
boundary. With recall, a sample of those that the request lacks is searched for by the words around
them: what else a model would remember of a thing whose name it has forgotten.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compression.judging import cues
from compression.judging.salience import holds, normalise
from compression.recall.answers import search
from compression.recall.in_memory import ItemsHistory
from compression.recall.tools import LIMIT, SHARE
from compression.types import Item
from tests.benchmarks._host import CALIBRATION, RULER, Host
from tests.benchmarks._mentions import Kind, mentions
from tests.benchmarks._trajectories import Message
from tests.benchmarks.masking import Masked

WINDOW = 16_384
COMPRESSIONS = 20
DECISIONS = "decisions"
#: Things of each kind that are searched for.
SAMPLE = 30
#: Characters before and after a thing of which the question is made.
AROUND = 80
#: The numbers of messages at the end of a line; no figure is kept by them.
_SOURCES = re.compile(r"\[[\d, –]+\]$", re.MULTILINE)

Arm = Callable[[Host], str]
"""What the model can read."""


def in_summary(host: Host) -> str:
    """The summary alone."""
    return _SOURCES.sub("", host.summary)


def in_request(host: Host) -> str:
    """The summary and the messages that are sent word for word."""
    return "\n".join([in_summary(host), *(one.content for one in host.messages[host.boundary :])])


ARMS: dict[str, Arm] = {"the summary": in_summary, "the whole request": in_request}
"""By the name in the table."""
RECALL = "the request and recall"


@dataclass(slots=True)
class Survival:
    """Shares of what was said once, by arm and kind: after the first compression, and the last."""

    first: dict[str, dict[str, float]] = field(default_factory=dict)
    last: dict[str, dict[str, float]] = field(default_factory=dict)
    compressions: int = 0
    tokens: int = 0
    """Of the last summary."""


def said(items: Sequence[Item]) -> dict[str, dict[str, int]]:
    """What is to be found again, by kind: the thing, normalised, and where it was said first."""
    found = {
        str(kind): {one.key: one.seqs[0] for one in all_} for kind, all_ in mentions(items).items()
    }
    decisions: dict[str, int] = {}
    for text, seq in _decisions(items):
        decisions.setdefault(text, seq)
    return {**found, DECISIONS: decisions}


def _decisions(items: Sequence[Item]) -> Iterator[tuple[str, int]]:
    for item in items:
        if item.role == "tool":
            continue
        for line in cues.prose_lines(item.text):
            for sentence in cues.END.split(line):
                if len(sentence) <= 240 and cues.DECISION().search(sentence):
                    yield normalise(sentence.strip(" \t*-#>")), item.seq


def measured(messages: Sequence[Message]) -> Survival:
    """The way of one conversation through at most ``COMPRESSIONS`` compressions."""
    return asyncio.run(_measured(messages))


async def _measured(messages: Sequence[Message]) -> Survival:
    host, result = Masked(window=WINDOW), Survival()
    for message in messages:
        before = host.version
        if message["role"] == "assistant":
            await host.ask()
        host.take(message)
        if host.version > before:
            result.first = result.first or _shares(host)
            if host.version == COMPRESSIONS:
                break
    result.last = _shares(host)
    result.compressions, result.tokens = host.version, RULER.count(host.summary)
    return result


def _shares(host: Host) -> dict[str, dict[str, float]]:
    """Arm → kind → the share that is left."""
    before = [one.as_item() for one in host.messages[: host.boundary]]
    history = ItemsHistory(before, through=host.boundary)
    texts = {arm: normalise(readable(host)) for arm, readable in ARMS.items()}
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    for kind, things in said(before).items():
        if not things:
            continue
        for arm, text in texts.items():
            left = {one: seq for one, seq in things.items() if not holds(text, one)}
            shares[arm][kind] = 1 - len(left) / len(things)
        # Of those that the whole request, the last arm, lacks.
        shares[RECALL][kind] = 1 - len(left) / len(things) * _not_found(history, before, left)
    return shares


def _not_found(history: ItemsHistory, items: Sequence[Item], things: Mapping[str, int]) -> float:
    """The share of a sample of the things that a search does not bring."""
    asked = random.Random(3).sample(sorted(things.items()), min(SAMPLE, len(things)))
    room = int(SHARE * (WINDOW - WINDOW // 4) / CALIBRATION)
    missed = 0
    for thing, seq in asked:
        query = question(thing, items, seq)
        answer = search(history, query, limit=LIMIT, count=RULER.count, most_tokens=room)
        missed += not holds(normalise(answer), thing)
    return missed / max(1, len(asked))


def question(thing: str, items: Sequence[Item], seq: int) -> str:
    """The words around a thing where it was said first, without the thing itself.

    Of one in the arguments of a call: the words of the messages around it.
    """
    near = [normalise(one.text) for one in items if abs(one.seq - seq) <= 1]
    here = next(normalise(one.text) for one in items if one.seq == seq)
    start = here.find(thing)
    if start >= 0:
        words = here[max(0, start - AROUND) : start] + here[start + len(thing) :][:AROUND]
        if len(words.split()) > 2:
            return words.replace(thing, " ")
    return " ".join(text[:AROUND] for text in near).replace(thing, " ")


def table(result: Survival) -> None:
    """Print the shares of one conversation."""
    kinds = [*map(str, Kind), DECISIONS]
    size = f"{result.tokens:,} tokens"
    print(f"after {result.compressions} compressions, in a summary of {size}: % kept of")
    print(f"{'':40}" + "".join(f"{kind:>11}" for kind in kinds))
    for when, shares in (("first", result.first), ("last", result.last)):
        for arm, by_kind in shares.items():
            cells = (f"{100 * by_kind[kind]:.1f}" if kind in by_kind else "–" for kind in kinds)
            print(f"{f'after the {when}, in {arm}':40}" + "".join(f"{cell:>11}" for cell in cells))
