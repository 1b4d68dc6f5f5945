"""The tags and filters of the chat's templates."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from chatapp.live.view_models import (
    Carried,
    CompressionView,
    ContextView,
    ConversationLink,
    PageView,
)
from chatapp.rendering import articles, kept, labels, number_format, source_links
from chatapp.text.earlier import mark_earlier
from chatapp.text.safety import visible
from compression.planning import defaults
from compression.recall.terms import in_pairs, terms_of

register = template.Library()

_DIFF_HEADER = 2  # lines that name the two files


@register.filter
def plain(text: str) -> str:
    """Text of anyone with deceptive characters made visible; the template still escapes it."""
    return visible(text or "")


@register.filter
def json_lines(text: str) -> str:
    """A JSON text on several lines, as characters and not as escapes; deceptive ones visible."""
    return visible(json.dumps(json.loads(text), indent=2, ensure_ascii=False))


@register.filter
def tokens(count: int | None) -> str:
    """41234 as 41k; empty for None, and for a field missing in a line of the log."""
    return number_format.short(count) if isinstance(count, int) else ""


@register.filter
def more_or_fewer(difference: int) -> str:
    """-350 as "350 fewer"."""
    return f"{number_format.short(abs(difference))} {'more' if difference > 0 else 'fewer'}"


@register.filter
def grouped(count: int | None) -> str:
    """1793 as 1,793."""
    return f"{count or 0:,}"


@register.filter
def percent(share: float) -> str:
    """0.424 as 42 %."""
    return f"{round(100 * share)} %"


@register.filter
def unlocalised(share: float | None) -> str:
    """0.8 in the form that an input field needs; empty for None."""
    return "" if share is None else f"{share:g}"


@register.filter
def lists(links: Sequence[ConversationLink], code: str) -> bool:
    """Whether the conversation is among the links; archived and old ones may not be."""
    return any(link.code == code for link in links)


@register.filter
def maker(model: str) -> str:
    """See :func:`chatapp.rendering.labels.maker`."""
    return labels.maker(model)


@register.filter
def cause(version: dict[str, Any]) -> str:
    """See :func:`chatapp.rendering.labels.cause`."""
    return labels.cause(version)


@register.filter
def taken_back(trigger: str) -> str:
    """See :func:`chatapp.rendering.labels.taken_back`."""
    return labels.taken_back(trigger)


@register.filter
def status_label(status: str) -> str:
    """See :func:`chatapp.rendering.labels.status_label`."""
    return labels.status_label(status)


@register.filter
def extracted(parts: list[dict[str, Any]]) -> str:
    """See :func:`chatapp.rendering.labels.extracted`; empty for no parts."""
    return labels.extracted(parts or [])


@register.filter
def extracted_part(part: dict[str, Any]) -> str:
    """See :func:`chatapp.rendering.labels.extracted_part`."""
    return labels.extracted_part(part)


@register.filter
def time_left(seconds: int) -> str:
    """See :func:`chatapp.rendering.labels.time_left`."""
    return labels.time_left(seconds)


@register.filter
def done_first(decision: dict[str, str]) -> str:
    """See :func:`chatapp.rendering.labels.done_first`."""
    return labels.done_first(decision)


@register.filter
def masked_words(compression: CompressionView) -> str:
    """See :func:`chatapp.rendering.labels.masked_words`."""
    results = compression.masked_results
    return labels.masked_words(results, len(compression.masked_seqs) - results)


@register.simple_tag
def reply_cost(usage: dict[str, Any]) -> number_format.ReplyCost | None:
    """The cost of a reply, short and in full; None if nothing was counted."""
    return number_format.reply_cost(usage)


@register.simple_tag
def markdown_html(text: str) -> SafeString:
    """Markdown of anyone as safe HTML."""
    return mark_safe(kept.markdown(text))


@register.simple_tag
def summary_html(text: str, carried: Carried) -> SafeString:
    """A summary's Markdown as safe HTML, its source numbers linked to the messages."""
    earlier = reverse("conversation", args=[carried.code]) if carried.code else ""
    html = kept.markdown(mark_earlier(text or "", carried.lines))
    return mark_safe(source_links.link_sources(html, earlier=earlier))


@register.simple_tag
def compression_bounds() -> dict[str, float]:
    """The least and the most that a conversation's own settings of compression may be."""
    return {
        "lowest_threshold": defaults.LOWEST_THRESHOLD,
        "highest_threshold": defaults.HIGHEST_THRESHOLD,
        "most_keep_turns": defaults.MOST_KEEP_TURNS,
    }


@register.simple_tag
def chip(context: ContextView) -> number_format.Chip:
    """The figures of the context chip."""
    return number_format.chip(context)


@dataclass(frozen=True, kw_only=True)
class Feed:
    """The articles of a page in order: those that the summary stands for, and the live ones."""

    summarised: SafeString
    live: SafeString


@register.simple_tag
def feed(page: PageView, sought: int | None = None, words: str = "") -> Feed:
    """The articles of a page, without superseded messages; ``words`` are marked in ``sought``."""
    summarised: list[SafeString] = []
    live: list[SafeString] = []
    boundary = page.compression.boundary
    for message in page.messages:
        if message.superseded:
            continue
        turn = page.turn_of(message.seq)
        if page.turn is not None and page.turn.seq == message.seq:
            turn = page.turn
        terms = in_pairs(terms_of(words)) if message.seq == sought else None
        article = articles.article_of(message, turn=turn, boundary=boundary, sought=terms)
        html = articles.render_article(article)
        (summarised if message.seq <= boundary else live).append(html)
    return Feed(summarised=mark_safe("".join(summarised)), live=mark_safe("".join(live)))


@register.simple_tag
def first_seq(page: PageView) -> int:
    """``seq`` of the oldest message of the page; 0 for none."""
    return page.messages[0].seq if page.messages else 0


@register.simple_tag
def last_seq(page: PageView) -> int:
    """``seq`` of the newest message of the page; 0 for none."""
    return page.messages[-1].seq if page.messages else 0


@dataclass(frozen=True, kw_only=True)
class Change:
    """One line of a comparison; ``kind`` is ``added``, ``removed`` or ``same``."""

    kind: str
    line: str


@register.simple_tag
def version_changes(versions: list[dict[str, Any]], version: dict[str, Any]) -> list[Change]:
    """The lines of ``version`` compared with the version it came from; empty without one."""
    parent = next((one for one in versions if one["version"] == version["parent"]), None)
    if parent is None or parent["text"] == version["text"]:
        return []
    # Not `ndiff`, which compares within lines and takes cubic time on long texts.
    lines = difflib.unified_diff(
        parent["text"].splitlines(), version["text"].splitlines(), lineterm="", n=1
    )
    kinds = {"+": "added", "-": "removed", " ": "same"}
    return [
        Change(kind=kinds[line[0]], line=f"{line[0]} {line[1:]}")
        for line in list(lines)[_DIFF_HEADER:]
        if line[0] in kinds
    ]
