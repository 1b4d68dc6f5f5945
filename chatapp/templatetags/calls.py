"""The filters of the activity log's pages."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from chatapp.conversations.model_calls.listing import CallView
from chatapp.rendering.markdown.highlight import highlighted, is_highlighted
from chatapp.rendering.words import labels
from chatapp.text.safety import visible

register = template.Library()
_NOUNS = {
    "tokens": ("token", "tokens"),
    "calls": ("call", "calls"),
    "failures": ("failure", "failures"),
    "made": ("summary", "summaries"),
}


@register.filter
def kind_label(kind: str) -> str:
    """See :func:`chatapp.rendering.words.labels.kind_label`."""
    return labels.kind_label(kind)


@register.filter
def call_error(code: str) -> str:
    """The code of an error in words; empty for none."""
    return visible(code.removeprefix("llm_").replace("_", " "))


@register.filter
def dollars(cost: float | None) -> str:
    """0.01234 as $0.0123; small sums keep two digits that say something. Empty for None."""
    if cost is None:
        return ""
    return f"${cost:,.2f}" if cost == 0 or cost >= 1 else f"${cost:.2g}"


@register.filter
def has_costs(calls: Iterable[CallView]) -> bool:
    """Whether the price of any of these calls is known."""
    return any(one.cost is not None for one in calls)


@register.filter
def measured_label(value: float, measure: str) -> str:
    """A value of a plot with its unit."""
    if measure == "cost":
        return dollars(value)
    if measure == "kept":
        return f"{100 * value:.0f} %"
    if measure == "waited":
        return f"{value:,.1f} s"
    one, several = _NOUNS[measure]
    return f"{round(value):,} {one if value == 1 else several}"


@register.filter
def json_code(text: str) -> SafeString:
    """JSON with its parts marked for colours, if it is not too long; always escaped."""
    shown = visible(text)
    if is_highlighted(shown, "json"):
        return mark_safe(highlighted(shown, "json"))
    return mark_safe(escape(shown))
