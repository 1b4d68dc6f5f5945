"""Where things are in the admin, for those who may see them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse


def may_read_messages(request: HttpRequest) -> bool:
    """Whether this person may see what was said, not only what was summarised."""
    return request.user.has_perm("chatapp.view_message")


def conversation_page(request: HttpRequest, conversation_id: int) -> str:
    """The page of a conversation; empty for who may not see it."""
    if not request.user.has_perm("chatapp.view_conversation"):
        return ""
    return reverse("admin:chatapp_conversation_change", args=[conversation_id])


def summary_page(request: HttpRequest, summary_id: int) -> str:
    """The page of a summary; empty for who may not see it."""
    if not request.user.has_perm("chatapp.view_summary"):
        return ""
    return reverse("admin:chatapp_summary_change", args=[summary_id])


def messages_page(
    request: HttpRequest,
    conversation_id: int,
    first_seq: int | None = None,
    through_seq: int | None = None,
) -> str:
    """The list of a conversation's messages, or some; empty for who may not see them."""
    if not may_read_messages(request):
        return ""
    query: dict[str, int] = {"conversation__id__exact": conversation_id}
    if first_seq is not None and through_seq is not None:
        query |= {"seq__gte": first_seq, "seq__lte": through_seq}
    return f"{reverse('admin:chatapp_message_changelist')}?{urlencode(query)}"
