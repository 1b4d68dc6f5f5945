"""How much of what was once said a model can still reach: three ways to keep a long conversation.

The whole conversation in each request, as if the window had no end; summary and tail; and these
with recall, by a scripted model that asks with the question's words and reads around the hits. The
conversation grows message by message and is compressed by the product's own policy, its summaries
written by the extract. The questions are those of ``recall``; a piece of evidence is reached when
its message stands word for word in what the model has seen when it answers.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from compression.recall.answers import MOST_HITS
from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import History
from compression.recall.quoting import numbers
from compression.recall.terms import terms_of
from compression.recall.tools import SHARE, recall_tools
from tests.benchmarks._host import CALIBRATION, RULER, Host
from tests.benchmarks.recall import Dialogue, dialogues

WINDOWS = (8_192, 16_384)
#: Rounds in which the model may call tools, as in the product.
ROUNDS = 8
#: Percentage points by which recall may stay behind the whole conversation.
MOST_BEHIND = 5.0

Tools = Mapping[str, Callable[[Mapping[str, Any]], Awaitable[str]]]


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


def tools_of(host: Host, window: int) -> Tools:
    """The product's two tools on the host's messages."""
    there = ItemsHistory([one.as_item() for one in host.messages], through=host.boundary)

    async def look_up(work: Callable[[History], str]) -> str:
        return work(there)

    most = int(SHARE * (window - window // 4) / CALIBRATION)
    return {tool.name: tool.run for tool in recall_tools(look_up, RULER, most_tokens=most)}


async def answers(question: str, tools: Tools) -> list[str]:
    """What a model is told that looks for the question's words and reads around the hits.

    Four searches, for all words and then for fewer, and four times the messages around the best
    hits: as many calls as a turn may have.
    """
    found = [
        await tools["search_history"]({"query": query, "limit": MOST_HITS})
        for query in _queries(question)
    ]
    read: list[str] = []
    for first, last in _around(found):
        if len(found) + len(read) < ROUNDS:
            read.append(await tools["read_messages"]({"first": first, "last": last}))
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
            read.update(range(hit - 4, hit + 5))
            yield max(1, hit - 4), hit + 4


async def measured(window: int, conversations: list[Dialogue]) -> dict[str, Reached]:
    """Category → what was reached at this window."""
    reached: dict[str, Reached] = defaultdict(Reached)
    for dialogue in conversations:
        host = await grown(dialogue, window)
        built, _, _ = host.request()
        seen = "\n".join(str(one.get("content") or "") for one in built.messages)
        tools = tools_of(host, window)
        for question, evidence, category in dialogue.questions:
            told = await answers(question, tools)
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
