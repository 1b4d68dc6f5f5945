"""What is shown to who follows a conversation, by JSON or by fragments, applied as they are meant.

Whatever happens, no word that was shown is taken back: applying what would do so fails (I4, I7).
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

Json = dict[str, Any]


class Mirror:
    """A screen without pixels. ``apply`` every event, then compare with a freshly loaded page."""

    def __init__(self) -> None:
        self.seen = 0
        self.state_no = 0
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
                self.state_no = event["event_no"]
                self._apply_state(event)
            case "message-added" | "message-changed":
                self._show(event["message"])
            case "turn-started":
                self.turn = {"turn": event["turn"], "seq": event["reply_seq"]}
            case "delta":
                message = self.messages[event["seq"]]
                assert len(message["text"]) == event["offset"], "text was lost or doubled"
                message["text"] += event["text"]
            case "turn-finished":
                self.turn = None
                self._show(event["message"])
            case "title-changed":
                self.title = event["title"]
            case "context":
                self.context = event["context"]
            case "summary-changed" | "compression-completed":
                self.compression, self.context = event["compression"], event["context"]

    def _show(self, message: Json) -> None:
        shown = self.messages.get(message["seq"], {}).get("text", "")
        assert message["text"].startswith(shown), ("words were taken back", shown, message["text"])
        self.messages[message["seq"]] = message

    def _apply_state(self, event: Json) -> None:
        self.turn = event["turn"]
        open_seq = self.turn["seq"] if self.turn else None
        for message in event["messages"]:
            self._show(message)
        assert open_seq is None or open_seq in {one["seq"] for one in event["messages"]}
        if self.turn is not None:
            self._show({**self.messages[self.turn["seq"]], "text": self.turn["text"]})
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


_ARTICLE = re.compile(r'<article id="m-(\d+)"(.*?)</article>', re.DOTALL)
_BODY = re.compile(r'<div class="body[^>]*>(.*?)(?=<div id="m-\d+-(?:tools|outcome)")', re.DOTALL)
_PART = re.compile(r'<div id="m-(\d+)-(closed|open)"[^>]*>(.*?)</div>', re.DOTALL)


class Pages:
    """A screen that is fed by fragments: the words of each message. No reply may hold a ``div``."""

    def __init__(self, page: str) -> None:
        self._parts: dict[int, dict[str, str]] = {}
        self.apply(page)

    def apply(self, html: str) -> None:
        """Show a page, or what a fragment changes."""
        before = {seq: self.words(seq) for seq in self._parts}
        if 'data-event="delta"' in html:
            for seq, part, inner in _PART.findall(html):
                shown = self._parts[int(seq)]
                shown[part] = shown[part] + inner if part == "closed" else inner
        else:
            for seq, rest in _ARTICLE.findall(html):
                if " data-superseded" in rest.partition(">")[0]:
                    self._parts.pop(int(seq), None)
                    continue
                self._parts[int(seq)] = self._read(rest)
        for seq, words in before.items():
            shown_now = self.words(seq) if seq in self._parts else words
            assert shown_now[: len(words)] == words, ("words were taken back", words, shown_now)

    @staticmethod
    def _read(rest: str) -> dict[str, str]:
        parts = {part: inner for _, part, inner in _PART.findall(rest)}
        if parts:
            return {"closed": "", "open": "", **parts}
        body = _BODY.search(rest)
        return {"closed": body[1] if body else "", "open": ""}

    def words(self, seq: int) -> list[str]:
        """What is to be read in a message."""
        shown = self._parts[seq]
        return unescape(re.sub(r"<[^>]+>", " ", f"{shown['closed']} {shown['open']}")).split()

    @property
    def text(self) -> dict[int, list[str]]:
        """The words of all messages."""
        return {seq: self.words(seq) for seq in sorted(self._parts)}
