"""How much of a conversation to keep word for word at a compression: evidence, cost, compressions.

The dialogues of ``recall`` grow message by message, the extract writes the summaries, and before
each reply the share of the evidence said so far that stands word for word in the request is taken.
``DATA=folder`` takes the dialogues from there; without one in LoCoMo's form, its conversations with
tools, for which there are only costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean

from compression.planning.planner import PlannerSettings
from tests.benchmarks._trajectories import Message, trajectories
from tests.benchmarks.masking import Masked
from tests.benchmarks.recall import dialogues

WINDOWS = (8_192, 16_384)
#: Shares of the budget: the tail, and the landing that leaves room for it and for a full summary.
CHOICES = (
    *((0.20, 0.45), (0.25, 0.45), (0.30, 0.45), (0.35, 0.50)),
    *((0.40, 0.55), (0.45, 0.60), (0.50, 0.60)),
)
Conversation = tuple[list[Message], dict[int, str]]
"""The messages, and the texts of those that are evidence by their numbers."""


@dataclass(slots=True)
class Tail:
    """What one choice of tail and landing came to, over all conversations."""

    reached: list[float] = field(default_factory=list)
    """Share of the evidence said so far, in each request."""
    afterwards: list[float] = field(default_factory=list)
    """The same in the first request after each compression."""
    used: list[float] = field(default_factory=list)
    """Share of the budget that this request takes."""
    requests: int = 0
    compressions: int = 0
    sent: int = 0
    billed: float = 0.0
    blocked: int = 0


def conversations() -> list[Conversation]:
    """Dialogues with evidence, else one long conversation with tools."""
    return list(_dialogues()) or [(list(chain.from_iterable(trajectories())), {})]


def _dialogues() -> Iterator[Conversation]:
    for one in dialogues():
        messages = [{"role": role, "text": text} for role, text in one.said]
        seqs = {seq for _, evidence, _ in one.questions for seq in evidence}
        yield messages, {seq: one.said[seq - 1][1] for seq in sorted(seqs)}


async def measured(talks: list[Conversation], window: int, settings: PlannerSettings) -> Tail:
    """All conversations at this window, with these settings."""
    tail = Tail()
    for messages, evidence in talks:
        host = Masked(window=window, settings=settings)
        version, in_summary = 0, set[int]()
        for message in messages:
            if message["role"] == "assistant":
                await host.ask()
                said = [seq for seq in evidence if seq <= len(host.messages)]
                if host.version > version:
                    in_summary = {seq for seq in said if evidence[seq] in host.summary}
                kept = sum(seq > host.boundary or seq in in_summary for seq in said)
                if said:
                    tail.reached.append(kept / len(said))
                if host.version > version:
                    version = host.version
                    tail.afterwards += tail.reached[-1:]
                    tail.used.append(host.request()[0].usage.share)
            host.take(message)
        tail.requests += host.bill.requests
        tail.compressions += host.compressions
        tail.sent += host.bill.sent
        tail.billed += host.bill.billed
        tail.blocked += host.bill.blocked
    return tail


def main() -> int:
    """Print a table for each window; 1 when the product's own tail does not fit a request."""
    talks = conversations()
    own = PlannerSettings()
    bad = []
    for window in WINDOWS:
        print(f"window {window:,}: evidence in % of what was said, tokens and cost for a request")
        print(
            "  tail  landing  evidence  after one  in use  compressed    sent  with cache  blocked"
        )
        for share, landing in CHOICES:
            settings = PlannerSettings(tail_share=share, landing_share=landing)
            one = asyncio.run(measured(talks, window, settings))
            print(
                f"  {share:.2f} {landing:8.2f} {_percent(one.reached)} {_percent(one.afterwards)}  "
                f"{_percent(one.used)[3:]} {one.compressions:11,} {one.sent // one.requests:8,}"
                f" {one.billed / one.requests:11,.0f} {one.blocked:8,}"
            )
            if share == own.tail_share and one.blocked:
                bad.append(f"window {window:,}: {one.blocked} requests did not fit")
    print("\n".join(bad) or "Every request fits with the product's own tail.")
    return 1 if bad else 0


def _percent(shares: list[float]) -> str:
    return f"{100 * fmean(shares):9.1f}" if shares else f"{'–':>9}"
