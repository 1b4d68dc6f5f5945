"""The admin's page of shared links: who shares what with anybody, and the end of it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import BooleanField, Case, QuerySet, Value, When
from django.http import HttpRequest

from chatapp.admin.conversations import Shown
from chatapp.admin.links import conversation_page
from chatapp.conversations.access_log import record_access
from chatapp.conversations.sharing import links
from chatapp.models import Share
from chatapp.text.safety import visible
from compression.admin import Fact, moment, moments, told


@admin.register(Share)
class ShareAdmin(Shown):
    """Shared links. Nobody can open one from here: what is stored does not tell its address."""

    list_display = (
        "conversation_code",
        "owner_name",
        moments("created_at"),
        moments("expires_at"),
        moments("revoked_at"),
        "opens",
    )
    search_fields = ("conversation__code", "conversation__owner__username")
    ordering = ("-pk",)
    actions = ("revoke",)  # type: ignore[assignment]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Share]:
        """The rows with their conversations and owners, and whether each works."""
        rows: QuerySet[Share] = super().get_queryset(request)
        works = Case(
            When(Share.working(), then=Value(True)),
            default=Value(False),
            output_field=BooleanField(),
        )
        return rows.select_related("conversation__owner").annotate(works=works)

    @admin.display(description="conversation")
    def conversation_code(self, share: Share) -> str:
        """Its code; the title is a part of what it says."""
        return str(share.conversation.code)

    @admin.display(description="owner", ordering="conversation__owner__username")
    def owner_name(self, share: Share) -> str:
        """The owner's name."""
        return visible(share.conversation.owner.get_username())

    @admin.display(description="works", ordering="works")
    def opens(self, share: Any) -> str:
        """Whether it still shows something."""
        return told(share.works)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whoever may change shared links; there is nothing else to change about one."""
        return request.user.has_perm("chatapp.change_share")

    @admin.action(description="Revoke the selected links", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Share]) -> None:
        """End the chosen links, each recorded under the conversation that it showed."""
        assert isinstance(request.user, User)
        chosen = list(queryset.filter(revoked_at__isnull=True))
        ended = links.end(Share.objects.filter(pk__in=[one.pk for one in chosen]))
        for one in chosen:
            record_access(
                viewer=request.user, conversation=one.conversation, what="revoked a shared link"
            )
        self.message_user(request, f"{ended} link{'' if ended == 1 else 's'} revoked.")

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The facts of one link."""
        return {
            "facts": [
                Fact(
                    label="Conversation",
                    value=obj.conversation.code,
                    url=conversation_page(request, obj.conversation_id),
                ),
                Fact(label="Owner", value=visible(obj.conversation.owner.get_username())),
                Fact(label="Shows messages up to", value=obj.through_seq),
                Fact(label="Shows the summary", value=told(bool(obj.summary_version))),
                Fact(label="Shows calls of tools", value=told(obj.with_tools)),
                Fact(label="Made", value=moment(obj.created_at)),
                Fact(label="Expires", value=moment(obj.expires_at, "never")),
                Fact(label="Revoked", value=moment(obj.revoked_at, "no")),
                Fact(label="Works", value=told(obj.works)),
            ]
        }
