"""The article of a message: the same HTML on a page load and in a fragment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from chatapp.live.view_models import MessageView, TurnView
from chatapp.rendering import kept, markdown
from chatapp.rendering.search_highlight import mark
from chatapp.text.safety import settled, visible_part
from compression.recall.quoting import numbers as quoted_numbers
from compression.recall.terms import Terms
from compression.recall.tools import NAMES as RECALL_TOOLS

#: Terminal statuses without a notice below the reply.
_QUIET = frozenset({"complete"})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a turn, for the notice below its reply."""

    status: str
    sentence: str
    error: dict[str, object] | None
    provider_message: str
    retry_after: float | None
    since: str
    can_continue: bool


def outcome_of(turn: TurnView | None) -> Outcome | None:
    """The notice below the last message of ``turn``; None while it is open or ended well."""
    if turn is None or turn.open or turn.status in _QUIET:
        return None
    error = turn.error or {}
    tokens = turn.usage.get("completion_tokens")
    # A reply that was cut off comes without the provider's count; then our own is shown.
    count = f"{tokens:,}" if tokens else f"~{turn.ruler_tokens:,}" if turn.ruler_tokens else ""
    after = f" after {count} token{'' if count in {'1', '~1'} else 's'}" if count else ""
    sentences = {
        "stopped": f"Stopped{after}.",
        "interrupted": f"Interrupted{after}: the server stopped while this was being written.",
        "truncated": f"Cut off{after}: the reply reached the model's length limit.",
        "filtered": "The model server's content filter ended this reply.",
        "blocked": "Nothing was sent: the conversation no longer fits into the model's window.",
        "failed": "The model did not answer.",
    }
    fields = error.get("fields") or {}
    said = str(error.get("message") or sentences.get(turn.status, turn.status))
    if turn.status == "truncated" and error:
        # Both happened: the length ended the reply, and the server reported an error.
        said = f"{sentences['truncated']} {said}"
    return Outcome(
        status=turn.status,
        sentence=said,
        error=error or None,
        provider_message=str(fields.get("provider_message", "")),
        retry_after=error.get("retry_after"),
        since=turn.finished_at.isoformat() if turn.finished_at else "",
        # Only text can be continued; reasoning alone, or nothing, is answered again.
        can_continue=bool(error.get("partial_kept", turn.ruler_tokens)),
    )


@dataclass(frozen=True, kw_only=True)
class Article:
    """The content of ``partials/article.html``."""

    message: MessageView
    heading: str
    kind: str
    busy: bool
    closed: SafeString
    looked_up: SafeString
    """Excerpts of older messages that came along with the message, and were sent with it."""
    looked_up_seqs: tuple[int, ...]
    """The numbers of these messages."""
    open: SafeString
    thoughts: SafeString
    summarised: bool
    late: dict[str, object] | None
    """The error because of which the reply is late."""
    outcome: Outcome | None
    keep_outcome: bool
    """The fragment does not know the turn's end, so the notice on the screen stays."""


def article_of(
    message: MessageView,
    *,
    turn: TurnView | None = None,
    boundary: int = 0,
    keep_outcome: bool = False,
    sought: Terms | None = None,
) -> Article:
    """The article of ``message``.

    ``turn`` is the open turn that writes it, or the ended turn whose last message it is. Messages
    up to ``boundary``, that of the active summary, are shown as summarised. ``sought`` are the
    terms of a search, which are marked.
    """
    text, thoughts = message.text, message.reasoning
    busy = message.role == "assistant" and message.status == "streaming"
    closed, open_html, late = "", "", None
    if turn is not None and turn.open and turn.seq == message.seq and not message.tool_calls:
        busy, late = True, turn.retry_notice
        # The turn's text may be newer than the stored one.
        text, thoughts = turn.text or text, turn.reasoning or thoughts
    if message.role == "assistant":
        if busy:
            closed, open_html = markdown.StreamRenderer.split(text)
        else:
            closed = kept.markdown(text)
    else:
        closed = kept.verbatim(text)
    if sought is not None and not busy and message.role != "tool":
        closed = mark(closed, sought)
    headings = {"user": "You", "tool": f"Tool: {message.tool_name or 'result'}"}
    return Article(
        message=message,
        heading=headings.get(message.role, message.model or "Assistant"),
        kind=message.role,
        busy=busy,
        closed=mark_safe(closed),
        looked_up=mark_safe(kept.verbatim(message.added_context)),
        looked_up_seqs=_numbers(message),
        open=mark_safe(open_html),
        thoughts=mark_safe(_so_far(thoughts) if busy else kept.verbatim(thoughts)),
        summarised=message.seq <= boundary,
        late=late,
        outcome=outcome_of(turn),
        keep_outcome=keep_outcome,
    )


def _numbers(message: MessageView) -> tuple[int, ...]:
    """The messages quoted by what was looked up for a message, or by a tool of recall."""
    if message.role == "tool" and message.tool_name in RECALL_TOOLS:
        return quoted_numbers(message.text)
    return quoted_numbers(message.added_context)


def _so_far(thoughts: str) -> str:
    """Unfinished reasoning, as the updates of its stream have shown it."""
    return str(escape(visible_part(thoughts, 0, settled(thoughts))))


def bodies_of(messages: Iterable[MessageView], turn: TurnView | None) -> list[kept.Body]:
    """The texts in the articles of ``messages`` that are worth rendering ahead.

    ``turn`` is the open one, whose reply is still being written.
    """
    found = []
    for message in messages:
        written = turn is not None and turn.seq == message.seq and not message.tool_calls
        if message.status == "streaming" or written:
            continue
        how = kept.markdown if message.role == "assistant" else kept.verbatim
        verbatim = (message.reasoning, message.added_context)
        found += [
            kept.Body(how, message.text),
            *(kept.Body(kept.verbatim, one) for one in verbatim),
        ]
    return [body for body in found if len(body.text) >= kept.SHORT]


def render_article(article: Article, *, oob: str = "") -> SafeString:
    """The article as HTML; ``oob`` holds the attributes of an out-of-band swap, escaped."""
    html = render_to_string("partials/article.html", {"article": article, "oob": mark_safe(oob)})
    # The file's last newline would be a text node between two articles on a page load only.
    return mark_safe(html.strip())
