"""The tags of the pages of shared links."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString, mark_safe

from chatapp.live.share_views import SharedMessage
from chatapp.rendering.own_words import has_markup
from chatapp.rendering.shared import body_of

register = template.Library()


@register.simple_tag
def shared_text(message: SharedMessage) -> SafeString:
    """The text of a message as HTML."""
    return mark_safe(body_of(message).html)


@register.filter
def is_verbatim(message: SharedMessage) -> bool:
    """Whether the text is shown as it was written, line ends and all."""
    return message.role == "user" and not has_markup(message.text)
