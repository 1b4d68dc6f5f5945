"""Values of a conversation as the screen gets them, made up for the tests of rendering."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from chatapp.live import events
from chatapp.live.view_models import (
    CompressionView,
    ContextView,
    ConversationView,
    MessageView,
    PageView,
    TurnView,
)

NOW = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
CODE = "00000000-0000-0000-0000-000000000005"
ENVELOPE: dict[str, Any] = {"conversation_id": 1, "event_no": 42, "at": NOW}


def message(seq: int, role: str = "user", text: str = "Good day.", **fields: Any) -> MessageView:
    """A stored message."""
    values: dict[str, Any] = {
        "status": "complete",
        "event_no": seq,
        "created_at": NOW,
        "model": "demo" if role == "assistant" else "",
    }
    return MessageView(seq=seq, role=role, text=text, **{**values, **fields})


def turn(seq: int, status: str = "complete", **fields: Any) -> TurnView:
    """An ended turn whose last message is ``seq``; open when ``finished_at`` is None."""
    values: dict[str, Any] = {
        "turn": 7,
        "event_no": 42,
        "model": "demo",
        "message_seq": seq - 1,
        "reply_seq": seq,
        "finished_at": NOW,
    }
    return TurnView(status=status, seq=seq, **{**values, **fields})


def context(**fields: Any) -> ContextView:
    """Usage of a window of 4,096 tokens."""
    values: dict[str, Any] = {
        "model": "demo",
        "window": 4096,
        "reserve": 1024,
        "budget": 3072,
        "system": 200,
        "summary": 400,
        "pinned": 0,
        "tail": 800,
        "total": 1400,
        "usage": 0.456,
        "threshold": 0.8,
    }
    return ContextView(**{**values, **fields})


def compressed(**fields: Any) -> CompressionView:
    """A conversation whose first six messages are summarised."""
    values: dict[str, Any] = {
        "version": 2,
        "boundary": 6,
        "summary": "## Summary\nDinners were planned. [1–6]",
        "compressed_at": NOW,
        "message_count": 6,
        "tokens_before": 2301,
        "tokens_after": 402,
        "model": "demo",
        "can_undo": True,
    }
    return CompressionView(**{**values, **fields})


def conversation(**fields: Any) -> ConversationView:
    """The conversation itself."""
    values: dict[str, Any] = {
        "code": CODE,
        "title": "Dinners",
        "model": "demo",
        "event_no": 42,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return ConversationView(**{**values, **fields})


def page(messages: list[MessageView], **fields: Any) -> PageView:
    """A page with these messages."""
    values: dict[str, Any] = {
        "conversation": conversation(),
        "turn": None,
        "turns": [],
        "compression": CompressionView(),
        "context": context(),
    }
    return PageView(messages=messages, **{**values, **fields})


def state(messages: list[MessageView], **fields: Any) -> events.State:
    """A catch-up with these messages."""
    values: dict[str, Any] = {
        "after": 0,
        "conversation": conversation(),
        "turn": None,
        "turns": [],
        "compression": CompressionView(),
        "context": context(),
    }
    return events.State(messages=messages, **{**ENVELOPE, **values, **fields})


class Elements(HTMLParser):
    """The elements of a fragment: ``top`` those without a parent, ``all`` every one, with text."""

    VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "rect", "path", "circle"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.top: list[tuple[str, dict[str, str | None]]] = []
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._depth = 0
        self.feed(html)
        self.close()
        assert self._depth == 0, f"unbalanced: {html}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._depth == 0:
            self.top.append((tag, dict(attrs)))
        self.all.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._depth += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._depth -= 1

    def handle_data(self, data: str) -> None:
        self.text += data

    def of_id(self, identifier: str) -> dict[str, str | None]:
        """The attributes of the one element of this id."""
        (found,) = [attrs for _, attrs in self.all if attrs.get("id") == identifier]
        return found
