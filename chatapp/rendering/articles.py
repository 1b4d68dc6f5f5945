"""The article of a message: the same HTML on a page load and in a fragment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from chatapp.live.view_models import MessageView, TurnView
from chatapp.rendering import kept, markdown
from chatapp.rendering.own_words import has_markup, is_long
from chatapp.rendering.search_highlight import mark
from chatapp.rendering.words.labels import thought_for
from chatapp.text.safety import settled, visible, visible_part
from compression.recall.quoting import numbers as quoted_numbers
from compression.recall.terms import Terms
from compression.recall.tools import NAMES as RECALL_TOOLS
from compression.tools.calls import error as error_result

#: Terminal statuses without a notice below the reply.
_QUIET = frozenset({"complete"})
#: Characters of a tool's failure on the line of its result.
LONGEST_FAILURE = 120


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
        "stopped": f"Stopped{after or ' before the first word'}.",
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
    # Only text can be continued; reasoning alone, or nothing, is answered again.
    can_continue = bool(error.get("partial_kept", turn.ruler_tokens))
    return Outcome(
        status=turn.status,
        sentence=said,
        error=error or None,
        provider_message=str(fields.get("provider_message", "")),
        retry_after=error.get("retry_after"),
        since=turn.finished_at.isoformat() if turn.finished_at else "",
        can_continue=can_continue,
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
    thinking: str
    """The line that unfinished reasoning is at."""
    thought: str
    """What the reasoning is headed when it is over."""
    source: str
    """What a person wrote, where it is shown as Markdown."""
    failed: str
    """Why a tool gave no result, in the words that the model reads; empty if it gave one."""
    long: bool
    """It is folded at first."""
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
    late = None
    if turn is not None and turn.open and turn.seq == message.seq and not message.tool_calls:
        busy, late = True, turn.retry_notice
        # The turn's text may be newer than the stored one.
        text, thoughts = turn.text or text, turn.reasoning or thoughts
    if busy:
        closed, open_html = markdown.StreamRenderer.split(text)
    else:
        closed, open_html = _how(message)(text), ""
        if sought is not None and message.role != "tool":
            closed = mark(closed, sought)
    so_far = _so_far(thoughts) if busy else ""
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
        thoughts=escape(so_far) if busy else mark_safe(kept.verbatim(thoughts)),
        thinking=markdown.last_line(so_far) if busy and not text else "",
        thought=thought_for(message.seconds),
        source=visible(text) if message.role == "user" and has_markup(text) else "",
        failed=_failure(message),
        long=message.role == "user" and is_long(text),
        summarised=message.seq <= boundary,
        late=late,
        outcome=outcome_of(turn),
        keep_outcome=keep_outcome,
    )


def _failure(message: MessageView) -> str:
    if message.role != "tool" or not message.text.startswith(error_result("")):
        return ""
    said = message.text.removeprefix(error_result("")).partition("\n")[0]
    return visible(said if len(said) <= LONGEST_FAILURE else f"{said[:LONGEST_FAILURE]}…")


def _numbers(message: MessageView) -> tuple[int, ...]:
    """The messages quoted by what was looked up for a message, or by a tool of recall."""
    if message.role == "tool" and message.tool_name in RECALL_TOOLS:
        return quoted_numbers(message.text)
    return quoted_numbers(message.added_context)


def _so_far(thoughts: str) -> str:
    """Unfinished reasoning, as the updates of its stream have shown it, not yet escaped."""
    return visible_part(thoughts, 0, settled(thoughts))


def _how(message: MessageView) -> kept.Kept:
    """The way in which a finished message's text is shown."""
    is_markdown = message.role == "assistant" or (
        message.role == "user" and has_markup(message.text)
    )
    return kept.markdown if is_markdown else kept.verbatim


def bodies_of(messages: Iterable[MessageView], turn: TurnView | None) -> list[kept.Body]:
    """The texts in the articles of ``messages`` that are worth rendering ahead.

    ``turn`` is the open one, whose reply is still being written.
    """
    found = []
    for message in messages:
        written = turn is not None and turn.seq == message.seq and not message.tool_calls
        if message.status == "streaming" or written:
            continue
        verbatim = (message.reasoning, message.added_context)
        found += [
            kept.Body(_how(message), message.text),
            *(kept.Body(kept.verbatim, one) for one in verbatim),
        ]
    return [body for body in found if len(body.text) >= kept.SHORT]


def render_article(article: Article, *, oob: str = "") -> SafeString:
    """The article as HTML; ``oob`` holds the attributes of an out-of-band swap, escaped."""
    html = render_to_string("partials/article.html", {"article": article, "oob": mark_safe(oob)})
    # The file's last newline would be a text node between two articles on a page load only.
    return mark_safe(html.strip())
