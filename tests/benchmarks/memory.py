"""How much of what was once said a model can still reach: three ways to keep a long conversation.

The whole conversation in each request, as if the window had no end; summary and tail; and these
with recall, by a scripted model that asks with the question's words and reads around the hits. The
conversation grows message by message and is compressed by the product's own policy, its summaries
written by the extract. The questions are those of ``recall``; a piece of evidence is reached when
its message stands word for word in what the model has seen when it answers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

from compression.recall.answers import MOST_HITS
from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import History
from compression.recall.quoting import numbers
from compression.recall.terms import terms_of
from compression.recall.tools import SHARE, recall_tools
from compression.tools.loop import ToolLoop
from compression.types import Sizes
from tests.benchmarks._host import CALIBRATION, RULER, Host
from tests.benchmarks.recall import Dialogue, dialogues

WINDOWS = (8_192, 16_384)
#: Calls for searches; those that the product allows besides read around the hits.
SEARCHES = 2
#: Percentage points by which recall may stay behind the whole conversation.
MOST_BEHIND = 5.0


@dataclass(slots=True)
class Reached:
    """Pieces of evidence of all questions, and those in what the model has seen."""

    pieces: int = 0
    summary: int = 0
    recall: int = 0
    questions: int = 0
    whole: int = 0
    """Questions of which recall has reached every piece."""
    tokens: list[int] = field(default_factory=list)
    """Ruler tokens of the results of a question's calls."""

    def shares(self) -> tuple[float, float]:
        """Summary and tail, and these with recall, in percent of the pieces."""
        return 100 * self.summary / self.pieces, 100 * self.recall / self.pieces


async def grown(dialogue: Dialogue, window: int) -> Host:
    """The dialogue as it stands after its last message."""
    host = Host(window=window)
    for role, text in dialogue.said:
        host.say("user" if role == "user" else "assistant", text)
        if role == "user":
            await host.fitted()
    return host


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A call as the scripted model writes it."""

    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)


class Asking:
    """One turn of a model that looks things up, with the product's tools, loop and limits."""

    def __init__(self, there: History, window: int) -> None:
        async def look_up(work: Callable[[History], str]) -> str:
            return work(there)

        sizes = Sizes(window=window, reserve=window // 4, calibration=CALIBRATION)
        self._budget = sizes.ruler(1.0)
        self._look_up = look_up
        self._most_tokens = sizes.ruler(SHARE)
        self._told: list[str] = []
        self._loop = ToolLoop(RULER)

    async def call(self, name: str, **arguments: Any) -> str:
        """The result of a call; empty once the turn's calls are used up."""
        if not self._loop.offers:
            return ""
        tools = recall_tools(self._look_up, RULER, most_tokens=self._most_tokens, quoted=self._told)
        self._loop.asked(tools)
        written = Written(name=name, arguments=json.dumps(arguments))
        made = await self._loop.made([written], tools, taken=())
        async with aclosing(self._loop.answers(made, self._budget)) as results:
            (text,) = [one.outcome.text async for one in results]
        self._told.append(text)
        return "" if text.startswith("error:") else text


async def answers(question: str, asking: Asking) -> list[str]:
    """What a model is told that looks for the question's words and reads around the hits.

    ``SEARCHES`` searches, for all words and then for fewer, and the messages around the best hits,
    until no more calls are allowed.
    """
    found = []
    for query in islice(_queries(question), SEARCHES):
        found.append(await asking.call("search_history", query=query, limit=MOST_HITS))
    read: list[str] = []
    for first, last in _around(found):
        text = await asking.call("read_messages", first=first, last=last)
        if not text:
            break
        read.append(text)
    return found + read


def _queries(question: str) -> Iterator[str]:
    """The question's words; without names, of which everything is full; and by halves."""
    words = list(terms_of(question).words)
    names = {word.lower() for word in re.findall(r"(?<=\s)[A-Z]\w+", question)}
    things = [word for word in words if word not in names] or words
    yield question
    yield " ".join(things)
    half = (len(things) + 1) // 2
    yield " ".join(things[:half])
    yield " ".join(things[half:] or things)


def _around(found: list[str]) -> Iterator[tuple[int, int]]:
    """The messages around the best hits of the searches, each part of the conversation once."""
    ranked = [one for answer in zip_longest(*map(numbers, found)) for one in answer if one]
    read: set[int] = set()
    for hit in ranked:
        if hit not in read:
            read.update(range(hit - 1, hit + 4))
            yield max(1, hit - 1), hit + 3


async def measured(window: int, conversations: list[Dialogue]) -> dict[str, Reached]:
    """Category → what was reached at this window."""
    reached: dict[str, Reached] = defaultdict(Reached)
    for dialogue in conversations:
        host = await grown(dialogue, window)
        built, _, _ = host.request()
        seen = "\n".join(str(one.get("content") or "") for one in built.messages)
        there = ItemsHistory([one.as_item() for one in host.messages], through=host.boundary)

        for question, evidence, category in dialogue.questions:
            told = await answers(question, Asking(there, window))
            texts = "\n".join(told)
            pieces = [dialogue.said[seq - 1][1] for seq in evidence]
            by_summary = [text in seen for text in pieces]
            by_recall = [text in seen or text in texts for text in pieces]
            for one in (reached["all"], reached[category]):
                one.pieces += len(pieces)
                one.summary += sum(by_summary)
                one.recall += sum(by_recall)
                one.questions += 1
                one.whole += all(by_recall)
                one.tokens.append(sum(map(RULER.count, told)))
    return dict(reached)


def main() -> int:
    """Print a table for each window; 0 when recall is near enough to the whole conversation."""
    conversations = list(dialogues())
    missed = []
    for window in WINDOWS:
        reached = asyncio.run(measured(window, conversations))
        print(f"window {window:,}: percent of the evidence reached")
        print(
            "  category   questions   whole conversation   summary   with recall   tokens looked up"
        )
        for category, one in sorted(reached.items()):
            summary, recall = one.shares()
            mean = sum(one.tokens) / len(one.tokens)
            print(
                f"  {category:10} {one.questions:9} {100.0:20.1f} {summary:9.1f} {recall:13.1f} "
                f"{mean:18.0f}"
            )
        behind = 100.0 - reached["all"].shares()[1]
        if behind > MOST_BEHIND:
            missed.append(f"window {window:,}: {behind:.1f} points behind the whole conversation")
    print("\n".join(missed) or "Recall is as near to the whole conversation as demanded.")
    return 1 if missed else 0
