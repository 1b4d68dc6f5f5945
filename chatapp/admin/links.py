"""Links within the admin, for people who may see the pages."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse


def may_read_messages(request: HttpRequest) -> bool:
    """Whether this person may read messages, not only summaries."""
    return request.user.has_perm("chatapp.view_message")


def conversation_page(request: HttpRequest, conversation_id: int) -> str:
    """The address of a conversation's page; empty for people who may not see it."""
    if not request.user.has_perm("chatapp.view_conversation"):
        return ""
    return reverse("admin:chatapp_conversation_change", args=[conversation_id])


def summary_page(request: HttpRequest, summary_id: int) -> str:
    """The address of a summary's page; empty for people who may not see it."""
    if not request.user.has_perm("chatapp.view_summary"):
        return ""
    return reverse("admin:chatapp_summary_change", args=[summary_id])


def messages_page(
    request: HttpRequest,
    conversation_id: int,
    first_seq: int | None = None,
    through_seq: int | None = None,
) -> str:
    """The address of a conversation's messages, or some of them; empty without the permission."""
    if not may_read_messages(request):
        return ""
    query: dict[str, int] = {"conversation__id__exact": conversation_id}
    if first_seq is not None and through_seq is not None:
        query |= {"seq__gte": first_seq, "seq__lte": through_seq}
    return f"{reverse('admin:chatapp_message_changelist')}?{urlencode(query)}"
