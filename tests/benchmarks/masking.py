"""What masking frees and costs in conversations with tools, and that every request stays valid.

All conversations are one after another in one, as in a chat that is never begun anew. Each
assistant message is asked for by a request, made to fit as the product does it, by the extract as
summariser. ``DATA=folder`` takes the conversations from there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any

from chatapp.context.request import BuiltRequest, StoredMessage, build_request
from chatapp.context.tokens import message_tokens
from compression.exceptions import NothingToCompress
from compression.ledger.markdown import render
from compression.planning import masking, planner
from compression.planning.policy import PolicySettings, PolicyState, decide
from compression.planning.truncation import shorten_giant, truncate
from compression.summarizers.prompt import instructions
from compression.types import ContextAction, Item, Ledger, Sizes, Trigger
from tests.benchmarks._host import RULER, Host
from tests.benchmarks._trajectories import Message, trajectories
from tests.strict import faults

WINDOWS = (8_192, 32_768)
#: Price of a prompt token that the provider has in its cache, as a share of one that it has not.
CACHED = 0.1
#: Price of a token that a model writes, in tokens that it reads.
WRITTEN = 4
ROUNDS = 8


@dataclass(slots=True)
class Bill:
    """What the requests of one conversation cost, in ruler tokens."""

    requests: int = 0
    sent: int = 0
    """Of all requests."""
    billed: float = 0.0
    """With a provider's cache, and with what a model reads and writes for the summaries."""
    blocked: int = 0
    batches: int = 0
    masked: int = 0
    freed: int = 0
    lost: int = 0
    """Read again because of masks alone."""
    faults: list[str] = field(default_factory=list)

    @property
    def each(self) -> float:
        """What one request costs: more of them fit when results are masked."""
        return self.billed / max(1, self.requests)


@dataclass(slots=True)
class Masked(Host):
    """A host with tools that masks, or only compresses."""

    masks: bool = True
    bill: Bill = field(default_factory=Bill)
    _before: tuple[dict[str, Any], ...] = ()

    def take(self, message: Message) -> None:
        """The next message; a user's ends the turn before it."""
        if message["role"] == "user":
            self.messages = [
                replace(one, turn_open=False) if one.turn_open else one for one in self.messages
            ]
        tokens = message_tokens(RULER, message["text"], message.get("tool_calls", ()))
        seq = len(self.messages) + 1
        self.messages.append(StoredMessage(seq=seq, token_count=tokens, turn_open=True, **message))

    async def ask(self) -> None:
        """One request, made to fit, sent and billed."""
        failed = False
        for _ in range(ROUNDS):
            built, sizes, items = self.request()
            action = self._action(built, sizes, items, failed=failed)
            if action is ContextAction.MASK:
                self._mask(items, sizes)
            elif action is ContextAction.TRUNCATE:
                self.truncated_through = self._truncated(sizes)
            elif action is ContextAction.COMPRESS:
                failed = not await self._compressed(sizes)
            elif built.usage.share <= 1.0:
                return self._send(built)
            else:
                return self._squeeze(sizes, items)
        self.bill.blocked += 1

    def _action(
        self, built: BuiltRequest, sizes: Sizes, items: Sequence[Item], *, failed: bool
    ) -> ContextAction:
        batch = masking.batch(items, sizes) if self.masks else None
        state = PolicyState(
            failed=failed,
            compressible=not failed and self._compressible(sizes),
            maskable=batch.frees if batch else 0.0,
            masking_pays=batch is not None and batch.pays,
            truncatable=self._truncated(sizes) > self.truncated_through,
        )
        return decide(built.usage, PolicySettings(), state).action

    def _all(self) -> tuple[Item, ...]:
        return tuple(one.as_item() for one in self.messages[self.boundary :])

    def _compressible(self, sizes: Sizes) -> bool:
        try:
            planner.plan(self._all(), sizes, self.settings, trigger=Trigger.THRESHOLD)
        except NothingToCompress:
            return False
        return True

    def _truncated(self, sizes: Sizes) -> int:
        return truncate(self._all(), sizes, truncated_through=self.truncated_through)

    async def _compressed(self, sizes: Sizes) -> bool:
        try:
            span, judgement = await self._drafted(sizes, self._all(), Trigger.THRESHOLD)
        except AssertionError:
            # Not even the extract was fit.
            return False
        known = {entry.id for entry in self.ledger.entries}
        new = [entry for entry in judgement.ledger.entries if entry.id not in known]
        written = RULER.count(render(Ledger(entries=tuple(new))))
        asked = RULER.count(instructions()) + RULER.count(self.summary) + span.source_tokens
        self.bill.billed += asked + WRITTEN * written
        self._apply(span, judgement)
        # The cache is lost already, so nothing more is lost by a batch now.
        self._before = ()
        if self.masks:
            self._mask(self._all(), sizes, at_compression=True)
        return True

    def _mask(self, items: Sequence[Item], sizes: Sizes, *, at_compression: bool = False) -> None:
        batch = masking.batch(items, sizes, at_compression=at_compression)
        if batch is None:
            return
        chosen = {item.seq: item for item in items if item.seq in batch.seqs}
        behind = [one for one in self.messages if one.seq >= batch.seqs[0]]
        before = sum(one.token_count for one in behind)
        for seq, item in chosen.items():
            tokens = masking.tokens_masked(item, RULER.count)
            self.bill.freed += item.tokens - tokens
            self.messages[seq - 1] = replace(
                self.messages[seq - 1], masked=True, token_count=tokens
            )
        self.bill.batches += 1
        self.bill.masked += len(chosen)
        if not at_compression:
            freed = sum(item.tokens for item in chosen.values()) - sum(
                self.messages[seq - 1].token_count for seq in chosen
            )
            self.bill.lost += before - freed

    def _squeeze(self, sizes: Sizes, items: Sequence[Item]) -> None:
        """One turn that is larger than the window: its oldest texts are cut."""
        cut = shorten_giant(items, sizes)
        texts = {item.seq: item.text for item in items}
        changed = [item for item in cut or () if item.text != texts[item.seq]]
        if cut is None:
            self.bill.blocked += 1
            return
        built = build_request(self.snapshot(), sizes, replaced=changed)
        self._send(built)

    def _send(self, built: BuiltRequest) -> None:
        same = sum(
            1
            for _ in takewhile(
                lambda pair: pair[0] == pair[1], zip(self._before, built.messages, strict=False)
            )
        )
        sizes = [_tokens(one) for one in built.messages]
        self.bill.requests += 1
        self.bill.sent += sum(sizes)
        self.bill.billed += CACHED * sum(sizes[:same]) + sum(sizes[same:])
        self.bill.faults += faults(built.messages)
        self._before = built.messages


def _tokens(message: dict[str, Any]) -> int:
    calls = message.get("tool_calls")
    text = str(message.get("content") or "")
    return RULER.count(text) + (RULER.count(json.dumps(calls)) if calls else 0) + 4


async def run(said: Sequence[Message], window: int, *, masks: bool) -> Masked:
    """The whole conversation at this window."""
    host = Masked(window=window, masks=masks)
    for message in said:
        if message["role"] == "assistant":
            await host.ask()
        host.take(message)
    return host


def main() -> int:
    """0 when every request is valid, masks free something, and cost no more than they save."""
    said = list(chain.from_iterable(trajectories()))
    tokens = sum(message_tokens(RULER, one["text"], one.get("tool_calls", ())) for one in said)
    print(f"{len(said):,} messages, {tokens:,} tokens, one after another in one conversation")
    names = ("requests", "billed", "each", "compressed", "blocked", "batches", "masked", "freed")
    print(" window masks" + "".join(f"{name:>11}" for name in (*names, "read again", "faults")))
    bad = []
    for window in WINDOWS:
        bills = {}
        for masks in (False, True):
            host = asyncio.run(run(said, window, masks=masks))
            bill = bills[masks] = host.bill
            figures = (
                *(bill.requests, round(bill.billed), round(bill.each), host.compressions),
                *(bill.blocked, bill.batches, bill.masked, bill.freed, bill.lost),
                len(bill.faults),
            )
            cells = "".join(f"{figure:>11,}" for figure in figures)
            print(f"{window:>7,} {'yes' if masks else 'no':>5}{cells}")
            bad += [f"{window}: {fault}" for fault in bill.faults[:5]]
        if bills[True].each > bills[False].each:
            bad.append(f"{window}: masking costs more than it saves")
        if not bills[True].freed:
            bad.append(f"{window}: nothing was masked")
    print("\n".join(bad) or "Every request is valid, and masking costs less than it saves.")
    return 1 if bad else 0
