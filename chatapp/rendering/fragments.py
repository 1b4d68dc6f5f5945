"""Events as HTML for htmx's websocket extension: out-of-band swaps, and nothing else.

Each top-level element carries ``data-event``, ``data-event-no``, an ``id`` and ``hx-swap-oob``. The
content of regions that are on every page is replaced (``innerHTML``), so that their attributes and
the reader's focus stay. Articles go through the ``message`` swap of ``static/js/feed.js``, which
orders them by ``data-seq``. After a ``state`` the feed equals that of a fresh page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from chatapp.live import events
from chatapp.live.view_models import MessageView, TurnView
from chatapp.rendering import articles, kept, markdown
from chatapp.rendering.articles import article_of, outcome_of, render_article
from chatapp.rendering.words.labels import thought_for

# The triggers of versions that are compressions; the others are changes by a person.
_COMPRESSIONS = frozenset({"threshold", "background", "manual", "overflow"})
_SPOKEN_ENDS = {
    "complete": "Answer complete",
    "stopped": "Answer stopped",
    "interrupted": "Answer interrupted",
    "truncated": "Answer cut off",
}


def render_event(event: events.Event, update: markdown.Update | None = None) -> str:
    """The fragment of ``event``; ``update`` is what the renderer made of a ``Delta``'s text.

    Raises ValueError for an event that has no fragment.
    """
    if isinstance(event, events.Delta):
        return _delta(event, update)
    context = _CONTEXTS.get(type(event))
    if context is None:
        raise ValueError(f"no fragment for {type(event).__name__}")
    values = {"event": event, "swap": SwapAttributes(event), **context(event)}
    return render_to_string(f"events/{event.type}.html", values)


def bodies_of(event: events.Event) -> list[kept.Body]:
    """The texts in the event's fragment that are worth rendering ahead."""
    if isinstance(event, events.State):
        return articles.bodies_of(event.messages, event.turn)
    if isinstance(event, events.TurnFinished | events.MessageAdded | events.MessageChanged):
        return articles.bodies_of([event.message] if event.message else [], None)
    return []


class SwapAttributes:
    """The attributes of an event's top-level elements, for its template."""

    def __init__(self, event: events.Event) -> None:
        self._marks = f'data-event="{event.type}" data-event-no="{event.event_no:d}"'

    def _with(self, style: str) -> SafeString:
        return mark_safe(f'hx-swap-oob="{style}" {self._marks}')

    @property
    def fill(self) -> SafeString:
        """Replace the content of the element with this id."""
        return self._with("innerHTML")

    @property
    def append(self) -> SafeString:
        """Append to the element with this id."""
        return self._with("beforeend")

    @property
    def message(self) -> SafeString:
        """Put the article into the feed by its seq."""
        return self._with("message:#feed")


def _delta(event: events.Delta, update: markdown.Update | None) -> str:
    """The fragment of a delta, built by hand: this runs twenty times a second for each stream.

    Numbers are formatted as integers and the HTML is the renderer's own, so nothing needs
    escaping.
    """
    seq = f"{event.seq:d}"
    marks = (
        f' data-event="delta" data-event-no="{event.event_no:d}" data-turn="{event.turn:d}"'
        f' data-seq="{seq}" data-offset="{event.offset:d}"'
    )
    parts = []
    if update is not None:
        if update.thoughts_html:
            parts.append(
                f'<div id="m-{seq}-thoughts" hx-swap-oob="beforeend"{marks}>'
                f"{update.thoughts_html}</div>"
            )
        head = _thinking(event, update)
        if head:
            parts.append(
                f'<span id="m-{seq}-thinking" hx-swap-oob="innerHTML"{marks}>{head}</span>'
            )
        if update.closed_html:
            parts.append(
                f'<div id="m-{seq}-closed" hx-swap-oob="beforeend"{marks}>'
                f"{update.closed_html}</div>"
            )
        parts.append(
            f'<div id="m-{seq}-open" hx-swap-oob="innerHTML"{marks}>{update.open_html}</div>'
        )
    return "".join(parts)


def _thinking(event: events.Delta, update: markdown.Update) -> str:
    """The new head of the reasoning: the line that it is at, or how long it took."""
    if event.offset:
        return ""
    if event.text:
        return "" if event.seconds is None else thought_for(event.seconds)
    return update.last_line_html


def _articles(
    event: events.Event,
    messages: list[MessageView],
    *,
    turns: dict[int | None, TurnView] | None = None,
    boundary: int = 0,
) -> SafeString:
    """The articles of ``messages``; if its turn is not in ``turns``, an article's notice stays."""
    known = turns or {}
    oob = SwapAttributes(event).message
    return mark_safe(
        "".join(
            render_article(
                article_of(
                    message,
                    turn=known.get(message.seq),
                    boundary=boundary,
                    keep_outcome=message.seq not in known,
                ),
                oob=oob,
            )
            for message in messages
        )
    )


def _state(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.State)
    turns: dict[int | None, TurnView] = {turn.seq: turn for turn in event.turns}
    if event.turn is not None:
        turns[event.turn.seq] = event.turn
    shown = {message.seq for message in event.messages}
    last = max(event.turns, key=lambda turn: turn.turn, default=None)
    return {
        "articles": _articles(
            event, event.messages, turns=turns, boundary=event.compression.boundary
        ),
        # Turns that changed although their last message did not.
        "outcomes": [
            {"seq": turn.seq, "outcome": outcome_of(turn)}
            for turn in event.turns
            if turn.seq is not None and turn.seq not in shown
        ],
        "compression": event.compression,
        "context": event.context,
        "compressed": event.compression.made_by in _COMPRESSIONS,
        "turn": event.turn,
        "ended": _ended(last.turn, last.status) if last else None,
        "title": event.conversation.title,
        "conversation": event.conversation,
        "locked": event.compression.running and event.compression.locks_input,
    }


def _turn_started(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.TurnStarted)
    return {"turn": event}


def _turn_finished(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.TurnFinished)
    articles: SafeString | str = ""
    if event.message is not None:
        articles = _articles(event, [event.message], turns={event.message.seq: event.ended})
    return {"articles": articles, "ended": _ended(event.turn, event.status)}


def _ended(turn: int, status: str) -> dict[str, Any]:
    return {"turn": turn, "spoken": _SPOKEN_ENDS.get(status, "No answer")}


def _message(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.MessageAdded | events.MessageChanged)
    return {"articles": _articles(event, [event.message])}


def _compression_started(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.CompressionStarted)
    return {
        "running": {
            "running": True,
            "locks_input": event.locks_input,
            "trigger": event.trigger,
            "messages_under_way": event.message_count,
            "tokens_written": 0,
            "part": 1,
            "parts": 1,
        },
        "locked": event.locks_input,
    }


def _with_compression(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.CompressionCompleted | events.SummaryChanged)
    return {
        "compression": event.compression,
        "context": event.context,
        "locked": event.compression.running and event.compression.locks_input,
    }


def _plain(event: events.Event) -> dict[str, Any]:
    """The context of a template that needs only the event itself."""
    return {}


def _context(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.Context)
    return {"context": event.context}


def _error(event: events.Event) -> dict[str, Any]:
    assert isinstance(event, events.Error)
    return {"error": event.error}


_CONTEXTS: dict[type[events.Event], Callable[[events.Event], dict[str, Any]]] = {
    events.State: _state,
    events.TurnStarted: _turn_started,
    events.ToolStarted: _plain,
    events.ToolFinished: _plain,
    events.TurnFinished: _turn_finished,
    events.CompressionStarted: _compression_started,
    events.CompressionProgress: _plain,
    events.CompressionCompleted: _with_compression,
    events.SummaryChanged: _with_compression,
    events.MessageAdded: _message,
    events.MessageChanged: _message,
    events.Masked: _plain,
    events.TitleChanged: _plain,
    events.Context: _context,
    events.Error: _error,
}
