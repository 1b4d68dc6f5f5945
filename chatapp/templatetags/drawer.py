"""The tags and filters of what the drawer "What the model sees" shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from chatapp.live.view_models import ContextView
from chatapp.rendering import number_format, window_bar
from chatapp.rendering.words import findings, labels

register = template.Library()


@register.simple_tag
def context_bar(context: ContextView) -> window_bar.WindowBar:
    """See :func:`chatapp.rendering.window_bar.of_context`."""
    return window_bar.of_context(context)


@register.simple_tag
def manifest_bar(manifest: Mapping[str, Any]) -> window_bar.WindowBar | None:
    """See :func:`chatapp.rendering.window_bar.of_manifest`."""
    return window_bar.of_manifest(manifest)


@register.simple_tag
def left_out_of_summary(versions: Sequence[Mapping[str, Any]]) -> findings.Findings | None:
    """See :func:`chatapp.rendering.words.findings.of_active`."""
    return findings.of_active(versions)


@register.simple_tag
def left_out_of_version(version: Mapping[str, Any]) -> findings.Findings:
    """See :func:`chatapp.rendering.words.findings.of_version`."""
    return findings.of_version(version)


@register.filter
def signed(count: int) -> str:
    """See :func:`chatapp.rendering.number_format.signed`."""
    return number_format.signed(count)


@register.filter
def of_window(share: float, context: ContextView) -> float:
    """A share of the room for a request as one of the window, the base of all percentages."""
    return share * context.budget / max(1, context.window)


@register.filter
def part_label(name: str) -> str:
    """See :func:`chatapp.rendering.words.labels.part`."""
    return labels.part(name)


@register.filter
def finding_label(kind: str) -> str:
    """See :func:`chatapp.rendering.words.labels.finding`."""
    return labels.finding(kind)
