"""A summariser of changing quality, for conversations whose messages carry markers and rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from compression.exceptions import SummarizerError
from compression.ledger.ledger import Addition, Delta, Lift
from compression.testing import CountingSummarizer, merged
from compression.types import Draft, Item, Ledger, Section
from tests.chatapp.conversation_oracle import LIFT, RULE

MOOD_NAMES = ("good", "empty", "crash", "down", "huge", "forgets")


@dataclass(slots=True)
class Moody:
    """A summariser in one of several moods; when good it counts markers and keeps the rules."""

    mood: str = "good"
    gate: asyncio.Event | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    label: str = "moody"

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        self.started.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.mood == "crash":
            raise ValueError("a bug")
        if self.mood == "down":
            raise SummarizerError("The server is down.")
        if self.mood == "empty":
            return Draft(ledger=Ledger(), model=self.label, prompt_version="test")
        if self.mood == "huge":
            entry = Addition(section=Section.PENDING, text="w " * 9000, sources=(items[0].seq,))
            return merged(items, ledger, Delta(add=(entry,)), model=self.label)
        counted = await CountingSummarizer().draft(items, ledger, focus=focus, on_tokens=on_tokens)
        draft = merged(items, counted.ledger, _rules(items, counted.ledger), model=self.label)
        if self.mood == "forgets":
            rules = Section.CONSTRAINTS
            kept = tuple(one for one in draft.ledger.entries if one.section is not rules)
            return replace(draft, ledger=replace(draft.ledger, entries=kept))
        return draft


def _rules(items: Sequence[Item], ledger: Ledger) -> Delta:
    """The rules that users stated in these items, and those that they took back."""
    spoken = [item for item in items if item.role == "user"]
    by_name = {
        entry.text.split()[1]: entry.id
        for entry in ledger.entries
        if entry.section is Section.CONSTRAINTS and RULE.fullmatch(entry.text)
    }
    return Delta(
        narrative="They went on.",
        add=tuple(
            Addition(section=Section.CONSTRAINTS, text=text, sources=(item.seq,))
            for item in spoken
            for text in RULE.findall(item.text)
        ),
        lift=tuple(
            Lift(id=by_name[name], source=item.seq)
            for item in spoken
            for name in LIFT.findall(item.text)
            if name in by_name
        ),
    )
