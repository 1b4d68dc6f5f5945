"""Billed prompt tokens of a conversation of 2,000 turns, by what is sent of it each time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chatapp.context.request import StoredMessage
from chatapp.context.tokens import MESSAGE_OVERHEAD
from tests.benchmarks._host import RULER, Host
from tests.benchmarks._models import EMPTY, fact, prose, rule, summarizer

TURNS = 2000
WINDOW = 32_768
#: One in each of the first ten turns.
RULES = 10
#: What a cached prompt token costs of an uncached one, at most large providers in 2026.
CACHED = 0.10
#: Between which shares of the budget the window with hysteresis slides.
HIGH, LOW = 0.80, 0.40
#: The largest window of the models that most people use.
DIES_AT = 131_072

NAMES = {"perfect": "ours, by a model", "extract": "ours, by the extract"}

Messages = Sequence[dict[str, Any]]


@dataclass(slots=True)
class Bill:
    """What all calls of one way cost."""

    name: str
    plain: int = 0
    """Prompt tokens without a cache."""
    cached: float = 0.0
    """The same with the cached prefix at a tenth."""
    summaries: int = 0
    """Prompt tokens of summary calls, in both figures already."""
    largest: int = 0
    applied: int = 0
    """Summaries that say nothing and were put in place all the same."""
    broken: int = 0
    """Requests in which a rule was missing."""
    _before: Messages = field(default_factory=tuple)

    def charge(self, messages: Messages, rules: Sequence[str]) -> None:
        """One request: whole, and with what it shares with the last one at a tenth."""
        whole = sum(_tokens(one) for one in messages)
        shared = 0
        for old, new in zip(self._before, messages, strict=False):
            if old != new:
                break
            shared += _tokens(new)
        self.plain += whole
        self.cached += whole - (1 - CACHED) * shared
        self.largest = max(self.largest, whole)
        self._before = tuple(messages)
        # Rules are said early, and summarised at the head: most are found at once.
        self.broken += any(all(one not in _text(each) for each in messages) for one in rules)

    def charge_summary(self, tokens: int) -> None:
        """Calls with another prompt: nothing of them is cached."""
        self.summaries += tokens
        self.plain += tokens
        self.cached += tokens


def _text(message: dict[str, Any]) -> str:
    return str(message["content"])


def _tokens(message: dict[str, Any]) -> int:
    return RULER.count(_text(message)) + MESSAGE_OVERHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is said in one turn."""

    user: str
    reply: str


def conversation() -> tuple[list[Turn], list[str]]:
    """Turns of 60 to 900 tokens, as in coding chats, and the rules said in the first of them."""
    chance = random.Random(5)
    rules = [rule(number) for number in range(RULES)]
    turns = []
    for number in range(TURNS):
        user = prose(chance.randrange(20, 200), chance)
        if number < RULES:
            user = f"{rules[number]} {user}"
        elif number % 50 == 0:
            user = f"{fact(number // 50 % 40)[0]} {user}"
        turns.append(Turn(user=user, reply=prose(chance.randrange(40, 700), chance)))
    return turns, rules


def full(turns: Sequence[Turn], rules: Sequence[str]) -> Bill:
    """Everything, every time. Sums of prefixes, since comparing 2,000 lists would take minutes."""
    bill = Bill("full conversation")
    head = _tokens(build(()).messages[0])
    length, before = head, 0
    for turn in turns:
        length += RULER.count(turn.user) + MESSAGE_OVERHEAD
        bill.plain += length
        bill.cached += length - (1 - CACHED) * before
        bill.largest, before = length, length
        length += RULER.count(turn.reply) + MESSAGE_OVERHEAD
    return bill


def build(tail: Sequence[StoredMessage]) -> Any:
    """The product's request for this tail, nothing summarised."""
    host = Host(window=WINDOW, messages=list(tail))
    return host.request()[0]


def sliding(turns: Sequence[Turn], rules: Sequence[str], *, high: float, low: float) -> Bill:
    """The newest messages that fit: above ``high`` of the budget cut down to ``low``."""
    name = "sliding, each turn" if high == low else f"sliding, {high:.0%} to {low:.0%}"
    bill = Bill(name)
    head = dict(build(()).messages[0])
    budget = WINDOW * 3 // 4
    tail: list[dict[str, Any]] = []
    size = _tokens(head)
    for number, turn in enumerate(turns):
        tail.append({"role": "user", "content": turn.user})
        size += _tokens(tail[-1])
        if size > high * budget:
            while size > low * budget and len(tail) > 1:
                size -= _tokens(tail.pop(0))
            while tail[0]["role"] != "user":
                size -= _tokens(tail.pop(0))
        bill.charge([head, *tail], rules[: number + 1])
        tail.append({"role": "assistant", "content": turn.reply})
        size += _tokens(tail[-1])
    return bill


async def ours(turns: Sequence[Turn], rules: Sequence[str], quality: str) -> Bill:
    """The product's policy, planner, summariser, judge and request builder."""
    model = None if quality == "extract" else summarizer(quality, WINDOW)
    bill = Bill(NAMES.get(quality, f"ours, model {quality}"))
    host = Host(window=WINDOW, summarizer=model)
    for number, turn in enumerate(turns):
        host.say("user", turn.user)
        built = await host.fitted()
        bill.charge(built.messages, rules[: number + 1])
        host.say("assistant", turn.reply)
        await host.after_turn()
    bill.charge_summary(host.summary_prompts)
    bill.name += f", {host.compressions} times"
    bill.applied = host.compressions - host.refused if quality in EMPTY else 0
    return bill


def main() -> int:
    """0 when ours is the cheapest way that keeps every rule in force, with a cache and without."""
    turns, rules = conversation()
    bills = [
        full(turns, rules),
        sliding(turns, rules, high=1.0, low=1.0),
        sliding(turns, rules, high=HIGH, low=LOW),
        asyncio.run(ours(turns, rules, "perfect")),
        asyncio.run(ours(turns, rules, "extract")),
        *(asyncio.run(ours(turns, rules, quality)) for quality in EMPTY),
    ]
    print(f"{TURNS:,} turns, window {WINDOW:,}; millions of billed prompt tokens")
    print(f"{'':32}{'no cache':>10}{'cached':>9}{'summaries':>11}{'largest':>10}  rules broken")
    for bill in bills:
        dies = f"  (dies at {DIES_AT:,})" if bill.largest > DIES_AT else ""
        print(
            f"{bill.name:32}{bill.plain / 1e6:>10.1f}{bill.cached / 1e6:>9.1f}"
            f"{bill.summaries / 1e6:>11.2f}{bill.largest:>10,}  in {bill.broken} requests{dies}"
        )
    keeping = [bill for bill in bills if not bill.broken]
    plain = min(keeping, key=lambda bill: bill.plain)
    cached = min(keeping, key=lambda bill: bill.cached)
    print(f"Cheapest that keeps all rules: {plain.name}; with a cache: {cached.name}.")
    applied = sum(bill.applied for bill in bills)
    print(f"Summaries that say nothing and were applied: {applied}.")
    kept = all(not bill.broken for bill in bills[3:]) and not applied
    return 0 if kept and plain in bills[3:] and cached in bills[3:] else 1
