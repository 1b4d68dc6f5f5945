"""The tags and filters of the chat's templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from chatapp.context import reply_options
from chatapp.live.outline import Entry, Outline, Stratum
from chatapp.live.summary_views import SourceView
from chatapp.live.view_models import (
    Carried,
    CompressionView,
    ContextView,
    ConversationLink,
    PageView,
)
from chatapp.rendering import (
    articles,
    first_lines,
    kept,
    number_format,
    outline_rail,
    source_links,
)
from chatapp.rendering.words import ago as distance
from chatapp.rendering.words import headings, imports, labels, presets
from chatapp.text.earlier import mark_earlier
from chatapp.text.safety import visible
from compression import conf
from compression.ledger import comparison
from compression.planning import defaults
from compression.recall.terms import in_pairs, terms_of

register = template.Library()


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
def grouped(count: int | None) -> str:
    """1793 as 1,793."""
    return f"{count or 0:,}"


@register.filter
def day(moment: str) -> str:
    """An ISO time as "3 May 2023"; empty for None."""
    return f"{datetime.fromisoformat(moment):%-d %B %Y}" if moment else ""


@register.filter
def ago(moment: datetime) -> str:
    """See :func:`chatapp.rendering.words.ago.ago`."""
    return distance.ago(moment, timezone.now())


@register.filter
def percent(share: float) -> str:
    """See :func:`chatapp.rendering.number_format.percent`."""
    return number_format.percent(share)


@register.filter
def unlocalised(share: float | None) -> str:
    """0.8 in the form that an input field needs; empty for None."""
    if isinstance(share, int):
        return str(share)
    return "" if share is None else f"{share:g}"


@register.filter
def lists(links: Sequence[ConversationLink], code: str) -> bool:
    """Whether the conversation is among the links; archived and old ones may not be."""
    return any(link.code == code for link in links)


@register.filter
def maker(model: str) -> str:
    """See :func:`chatapp.rendering.words.labels.maker`."""
    return labels.maker(model)


@register.filter
def cause(version: dict[str, Any]) -> str:
    """See :func:`chatapp.rendering.words.labels.cause`."""
    return labels.cause(version["trigger"], version["restored_from"], version["instead_of"])


@register.filter
def taken_back(trigger: str) -> str:
    """See :func:`chatapp.rendering.words.labels.taken_back`."""
    return labels.taken_back(trigger)


@register.filter
def status_label(status: str) -> str:
    """See :func:`chatapp.rendering.words.labels.status_label`."""
    return labels.status_label(status)


@register.filter
def extracted(parts: list[dict[str, Any]]) -> str:
    """See :func:`chatapp.rendering.words.labels.extracted`; empty for no parts."""
    return labels.extracted(parts or [])


@register.filter
def extracted_part(part: dict[str, Any]) -> str:
    """See :func:`chatapp.rendering.words.labels.extracted_part`."""
    return labels.extracted_part(part)


@register.filter
def time_left(seconds: int) -> str:
    """See :func:`chatapp.rendering.words.labels.time_left`."""
    return labels.time_left(seconds)


@register.filter
def done_first(decision: dict[str, str]) -> str:
    """See :func:`chatapp.rendering.words.labels.done_first`."""
    return labels.done_first(decision)


@register.filter
def instructions_of(origin: str) -> str:
    """See :func:`chatapp.rendering.words.labels.instructions_of`."""
    return labels.instructions_of(origin)


@register.filter
def sent_along(options: dict[str, Any]) -> str:
    """See :func:`chatapp.rendering.words.labels.sent_along`."""
    return labels.sent_along(options)


@register.filter
def not_taken(names: list[str]) -> str:
    """See :func:`chatapp.rendering.words.labels.not_taken`."""
    return labels.not_taken(names)


@register.filter
def masked_words(compression: CompressionView) -> str:
    """See :func:`chatapp.rendering.words.labels.masked_words`."""
    results = compression.masked_results
    return labels.masked_words(results, len(compression.masked_seqs) - results)


@register.filter
def kept_lines(summary: str) -> str:
    """See :func:`chatapp.rendering.words.labels.kept`."""
    return labels.kept(first_lines.counted(summary))


@register.filter
def compressed_aloud(compression: CompressionView) -> str:
    """See :func:`chatapp.rendering.words.labels.compressed_aloud`."""
    counts = first_lines.counted(compression.summary)
    return labels.compressed_aloud(compression.tokens_before, compression.tokens_after, counts)


@register.filter
def preview(summary: str) -> tuple[first_lines.Line, ...]:
    """See :func:`chatapp.rendering.first_lines.first_lines`."""
    return first_lines.first_lines(summary)


@register.filter
def section_label(section: str) -> str:
    """See :func:`chatapp.rendering.words.labels.section_label`."""
    return labels.section_label(section)


@register.filter
def screen_words(summary: str) -> str:
    """See :func:`chatapp.rendering.words.headings.in_screen_words`."""
    return headings.in_screen_words(summary or "")


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
    """A summary's Markdown as safe HTML, its source numbers linked to the messages.

    Its sections are named as everywhere on the screen.
    """
    earlier = reverse("conversation", args=[carried.code]) if carried.code else ""
    html = kept.markdown(headings.in_screen_words(mark_earlier(text or "", carried.lines)))
    return mark_safe(source_links.link_sources(html, earlier=earlier))


@register.simple_tag
def compression_figures(threshold: float | None, keep_turns: int | None) -> dict[str, str]:
    """A conversation's figures of compression, the server's where it has none, and their bounds.

    As form fields have them: shares in percent.
    """
    ours = conf.settings()
    return {
        "percent": f"{100 * (threshold or ours.threshold):.4g}",
        "lowest_percent": f"{100 * defaults.LOWEST_THRESHOLD:g}",
        "highest_percent": f"{100 * defaults.HIGHEST_THRESHOLD:g}",
        "turns": f"{keep_turns or ours.keep_turns}",
        "most_turns": f"{defaults.MOST_KEEP_TURNS}",
    }


@register.simple_tag
def compression_presets(chosen: str) -> list[presets.Preset]:
    """The presets of compression with what they do on this server."""
    ours = conf.settings()
    return presets.choices(chosen, threshold=ours.threshold, keep_turns=ours.keep_turns)


@register.simple_tag
def import_left_out(report: dict[str, Any]) -> list[imports.LeftOut]:
    """See :func:`chatapp.rendering.words.imports.left_out`."""
    return imports.left_out(report.get("left_out") or {})


@register.simple_tag
def reply_bounds() -> dict[str, Any]:
    """What a conversation's own settings of its replies may be."""
    return {
        "most_temperature": reply_options.MOST_TEMPERATURE,
        "efforts": reply_options.EFFORTS,
        "least_answer": reply_options.LEAST_ANSWER,
        "most_answer": reply_options.MOST_ANSWER,
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


@register.simple_tag(name="outline_rail")
def rail(outline: Outline) -> outline_rail.Rail:
    """See :func:`chatapp.rendering.outline_rail.rail`."""
    return outline_rail.rail(outline)


@register.simple_tag
def outline_items(outline: Outline) -> list[Entry | Stratum]:
    """See :func:`chatapp.rendering.outline_rail.in_order`."""
    return outline_rail.in_order(outline)


@register.simple_tag
def version_changes(
    versions: list[dict[str, Any]], version: dict[str, Any]
) -> comparison.Comparison | None:
    """``version`` compared with the one it came from; None without one, or if they are equal."""
    parent = next((one for one in versions if one["version"] == version["parent"]), None)
    if parent is None or parent["text"] == version["text"]:
        return None
    found = comparison.compare(parent["text"], version["text"])
    return found if found.differs else None


@register.filter
def counted_changes(compared: comparison.Comparison) -> str:
    """See :func:`chatapp.rendering.words.labels.counted_changes`."""
    return labels.counted_changes(compared.added, compared.changed, compared.gone)


@register.filter
def section_name(section: str | None) -> str:
    """See :func:`chatapp.rendering.words.labels.section`."""
    return labels.section(section)


@register.simple_tag
def summary_headings() -> list[tuple[str, str]]:
    """The sections of a summary, and their headings on the screen."""
    return labels.sections()


@register.filter
def source_range(source: SourceView) -> str:
    """The messages of a source: "12" or "12–15"."""
    return str(source.first) if source.first == source.last else f"{source.first}–{source.last}"
