"""What is left of the paths, commands, names, figures and decisions of a conversation.

Each is looked for after each compression, among all that were said before the boundary.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from compression.judging import cues
from compression.judging.salience import holds, normalise
from compression.types import Item
from tests.benchmarks._host import RULER, Host
from tests.benchmarks._mentions import Kind, mentions
from tests.benchmarks._trajectories import Message
from tests.benchmarks.masking import Masked

WINDOW = 16_384
COMPRESSIONS = 20
DECISIONS = "decisions"

Arm = Callable[[Host, Sequence[Item]], str]
"""What the model can read, given the conversation and the messages before its boundary."""


def in_summary(host: Host, before: Sequence[Item]) -> str:
    """The summary alone."""
    return host.summary


def in_request(host: Host, before: Sequence[Item]) -> str:
    """The summary and the messages that are sent word for word."""
    return "\n".join([host.summary, *(one.content for one in host.messages[host.boundary :])])


ARMS: dict[str, Arm] = {"the summary": in_summary, "the whole request": in_request}
"""By the name in the table; one with recall adds what its excerpts bring."""


@dataclass(slots=True)
class Survival:
    """Shares of what was said once, by arm and kind: after the first compression, and the last."""

    first: dict[str, dict[str, float]] = field(default_factory=dict)
    last: dict[str, dict[str, float]] = field(default_factory=dict)
    compressions: int = 0
    tokens: int = 0
    """Of the last summary."""


def said(items: Sequence[Item]) -> dict[str, frozenset[str]]:
    """What is to be found again, by kind; normalised."""
    found = {
        str(kind): frozenset(one.key for one in all_) for kind, all_ in mentions(items).items()
    }
    return {**found, DECISIONS: frozenset(_decisions(items))}


def _decisions(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        if item.role == "tool":
            continue
        for line in cues.prose_lines(item.text):
            for sentence in cues.END.split(line):
                if len(sentence) <= 240 and cues.DECISION.search(sentence):
                    yield normalise(sentence.strip(" \t*-#>"))


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
            result.last = _shares(host)
            result.first = result.first or result.last
            result.compressions, result.tokens = host.version, RULER.count(host.summary)
            if host.version == COMPRESSIONS:
                break
    return result


def _shares(host: Host) -> dict[str, dict[str, float]]:
    before = [one.as_item() for one in host.messages[: host.boundary]]
    wanted = said(before)
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    for arm, readable in ARMS.items():
        text = normalise(readable(host, before))
        for kind, all_ in wanted.items():
            if all_:
                shares[arm][kind] = sum(holds(text, one) for one in all_) / len(all_)
    return shares


def table(result: Survival) -> None:
    """Print the shares of one conversation."""
    kinds = [*map(str, Kind), DECISIONS]
    size = f"{result.tokens:,} tokens"
    print(f"after {result.compressions} compressions, in a summary of {size}: % kept of")
    print(f"{'':34}" + "".join(f"{kind:>11}" for kind in kinds))
    for when, shares in (("first", result.first), ("last", result.last)):
        for arm, by_kind in shares.items():
            cells = (f"{100 * by_kind[kind]:.1f}" if kind in by_kind else "–" for kind in kinds)
            print(f"{f'after the {when}, in {arm}':34}" + "".join(f"{cell:>11}" for cell in cells))
