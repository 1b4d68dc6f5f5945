"""What a program shows that follows a conversation by JSON: events applied as the contract says."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Mirror:
    """A screen without pixels. ``apply`` every event, then compare with a freshly loaded page."""

    def __init__(self) -> None:
        self.seen = 0
        self.messages: dict[int, Json] = {}
        self.turn: Json | None = None
        self.context: Json = {}
        self.compression: Json = {}
        self.title = ""
        self.states = 0

    def apply(self, event: Json) -> None:
        """Show one event. Fails when a delta does not continue the text."""
        self.seen = max(self.seen, event["event_no"])
        match event["type"]:
            case "state":
                self.states += 1
                self._apply_state(event)
            case "message-added" | "message-changed":
                self.messages[event["message"]["seq"]] = event["message"]
            case "turn-started":
                self.turn = {"turn": event["turn"], "seq": event["reply_seq"]}
            case "delta":
                message = self.messages[event["seq"]]
                assert len(message["text"]) == event["offset"], "text was lost or doubled"
                message["text"] += event["text"]
            case "turn-finished":
                self.turn = None
                self.messages[event["message"]["seq"]] = event["message"]
            case "title-changed":
                self.title = event["title"]
            case "context":
                self.context = event["context"]
            case "summary-changed" | "compression-completed":
                self.compression, self.context = event["compression"], event["context"]

    def _apply_state(self, event: Json) -> None:
        self.messages |= {message["seq"]: message for message in event["messages"]}
        self.turn = event["turn"]
        if self.turn is not None:
            self.messages[self.turn["seq"]] = {
                **self.messages[self.turn["seq"]],
                "text": self.turn["text"],
            }
        self.context, self.compression = event["context"], event["compression"]
        self.title = event["conversation"]["title"]

    def equals(self, page: Json) -> None:
        """Fails unless this is what a fresh page shows (I4)."""
        assert self.difference(page) is None

    def difference(self, page: Json) -> tuple[str, object, object] | None:
        """The first part that differs from a fresh page: its name, what is here, what is there."""
        shown = {
            "messages": [self.messages[seq] for seq in sorted(self.messages)],
            "turn": self.turn,
            "title": self.title,
            "compression": self.compression,
            "context": self.context,
        }
        there = {**page, "title": page["conversation"]["title"]}
        for name, here in shown.items():
            if here != there[name]:
                return name, here, there[name]
        return None
