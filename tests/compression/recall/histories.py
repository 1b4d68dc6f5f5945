"""Histories to search in."""

from __future__ import annotations

from compression.recall.in_memory import ItemsHistory
from compression.types import Item, Role

TALK = (
    "I planted tulips behind the old shed today.",
    "Lovely! Which colours did you choose?",
    "Red ones mostly, and a few white.",
    "They will look good in spring.",
    "My sister Ada moved to Oslo for her new job.",
    "What does she do there?",
    "She repairs lighthouses on the coast.",
    "That sounds like hard work.",
)


def items(*texts: str, role: Role | None = None) -> list[Item]:
    """Messages of user and assistant in turn, or all of one role."""
    roles: tuple[Role, Role] = (role, role) if role else ("user", "assistant")
    return [
        Item(seq=seq, role=roles[1 - seq % 2], text=text, tokens=len(text) // 4 + 4)
        for seq, text in enumerate(texts, start=1)
    ]


def history(*texts: str, through: int | None = None) -> ItemsHistory:
    """A history of messages of user and assistant in turn; all out of sight unless ``through``."""
    return ItemsHistory(items(*texts), through=len(texts) if through is None else through)


def count(text: str) -> int:
    """A ruler that needs no table: a token for each four characters begun."""
    return (len(text) + 3) // 4
