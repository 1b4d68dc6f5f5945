"""The admin's pages of conversations, messages, and the record of who looked at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import BooleanField, Case, Exists, OuterRef, QuerySet, Value, When
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from chatapp.admin.act_words import act_in_words
from chatapp.admin.filters import DegradedFilter, DeletedFilter, LooksFilter, WhenFilter
from chatapp.admin.links import conversation_page, may_read_messages, messages_page, summary_page
from chatapp.conversations.access_log import record_access
from chatapp.conversations.summaries.versions import instead_of
from chatapp.models import AccessRecord, Conversation, Message, Summary
from chatapp.rendering.words import labels
from chatapp.text.safety import visible
from compression.admin import (
    Fact,
    ReviewAdmin,
    RunningFilter,
    ShownValuesFilter,
    moment,
    moments,
    told,
)
from compression.store.rows import free

# Characters of a message that the list of messages shows.
EXCERPT = 200
# Versions and attempts that the page of a conversation lists.
VERSIONS = 100
CONVERSATION_PARAMETER = "conversation__id__exact"


class Shown(ReviewAdmin):
    """The chat's review pages, which make deceptive characters visible."""

    def shown(self, text: str) -> str:
        """The text with deceptive characters made visible."""
        return visible(text)


@admin.register(Conversation)
class ConversationAdmin(Shown):
    """Conversations: their owners, their summaries, and running compressions."""

    list_display = (
        "name",
        "owner_name",
        "model_name",
        "messages_ever",
        "summarised",
        "state",
        moments("updated_at"),
    )
    list_filter = (
        RunningFilter,
        DegradedFilter,
        ("model", ShownValuesFilter),
        DeletedFilter,
    )
    list_select_related = ("owner",)
    search_fields = ("title", "code", "owner__username")
    ordering = ("-updated_at", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """The rows with running and degraded annotated, in the same query."""
        active = Summary.objects.filter(conversation=OuterRef("pk"), status="active")
        rows: QuerySet[Conversation] = super().get_queryset(request)
        return (
            rows.select_related("owner")
            # Unfinished imports are not shown.
            .filter(importing=False)
            .defer("draft", "compressed_context")
            .annotate(
                is_running=Case(
                    When(free(), then=Value(False)),
                    default=Value(True),
                    output_field=BooleanField(),
                ),
                active_degraded=Exists(active.filter(degraded=True)),
            )
        )

    @admin.display(description="conversation", ordering="title")
    def name(self, conversation: Conversation) -> str:
        """The title, or the code of an untitled one."""
        return visible(str(conversation))

    @admin.display(description="owner", ordering="owner__username")
    def owner_name(self, conversation: Conversation) -> str:
        """The owner's name."""
        return visible(conversation.owner.get_username())

    @admin.display(description="model", ordering="model")
    def model_name(self, conversation: Conversation) -> str:
        """The model that its owner chose."""
        return visible(conversation.model)

    @admin.display(description="messages", ordering="next_seq")
    def messages_ever(self, conversation: Conversation) -> int:
        """All messages, superseded ones included."""
        return conversation.next_seq - 1

    @admin.display(description="summary", ordering="compressed_through")
    def summarised(self, conversation: Conversation) -> str:
        """The version in force, and the last message that it stands for; nothing without one."""
        if not conversation.compressed_through:
            return ""
        through = f"{conversation.compressed_through:,}"
        return f"version {conversation.compression_version}, to message {through}"

    @admin.display(description="state", ordering="is_running")
    def state(self, conversation: Any) -> str:
        """What is unusual about it: a compression under way, an extract, or its deletion."""
        unusual = {
            "compressing": conversation.is_running,
            "summary by extract": conversation.active_degraded,
            "deleted": conversation.deleted_at is not None,
        }
        return ", ".join(words for words, holds in unusual.items() if holds)

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Record the look."""
        _record(request, obj, "conversation")

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The facts, the links to messages, and the newest versions."""
        rows = (
            obj.summaries.exclude(status="partial")
            .order_by("-pk")
            .only("version", "status", "trigger", "restored_from", "created_at", "conversation_id")
        )
        versions = [
            Fact(
                label="Summary",
                value=format_html(
                    "{} · {} · {} · {}",
                    row,
                    labels.status_label(row.status),
                    labels.cause(row.trigger, row.restored_from, instead_of(row)),
                    moment(row.created_at),
                ),
                url=summary_page(request, row.pk),
            )
            for row in rows[:VERSIONS]
        ]
        facts = [
            Fact(label="Code", value=obj.code),
            Fact(label="Owner", value=visible(obj.owner.get_username())),
            Fact(label="Model", value=visible(obj.model) or "the default"),
            Fact(
                label="Messages",
                value=f"{obj.next_seq - 1:,}",
                url=messages_page(request, obj.pk),
            ),
            Fact(label="Summarised through message", value=obj.compressed_through or "none"),
            Fact(label="Left out through message", value=obj.truncated_through or "none"),
            Fact(label="Compressing now", value="yes" if obj.is_running else "no"),
            Fact(label="Created", value=moment(obj.created_at)),
            Fact(label="Changed", value=moment(obj.updated_at)),
            Fact(label="Deleted", value=moment(obj.deleted_at, "no")),
        ]
        if may_read_messages(request):
            facts.append(
                Fact(label="System prompt", value=visible(obj.system_prompt) or "the default")
            )
        return {"facts": facts + versions}


@admin.register(Message)
class MessageAdmin(Shown):
    """Messages, of one conversation at a time."""

    list_display = (
        "number",
        "role",
        "excerpt",
        "status",
        "tokens",
        "superseded",
        moments("created_at"),
    )
    list_filter = ("role", "status")
    search_fields = ("text",)
    ordering = ("seq",)
    review_template = "admin/chatapp/message/review.html"
    linked_lookups = frozenset({CONVERSATION_PARAMETER, "seq__gte", "seq__lte"})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        """The rows with the beginning of each text; whole texts may be long."""
        rows: QuerySet[Message] = super().get_queryset(request)
        return rows.annotate(beginning=Left("text", EXCERPT + 1)).only(
            "seq",
            "role",
            "status",
            "token_count",
            "superseded_at",
            "created_at",
            "conversation_id",
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Message | None:
        """One whole message with its conversation; None for an invalid id."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            return None
        return Message.objects.select_related("conversation__owner").filter(pk=found.pk).first()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The messages of one conversation; without one, a redirect to the list of these."""
        wanted = request.GET.get(CONVERSATION_PARAMETER, "")
        conversation = None
        if self.has_view_permission(request) and wanted.isdecimal() and len(wanted) < 19:
            conversation = Conversation.objects.filter(pk=int(wanted), importing=False).first()
        if conversation is None and self.has_view_permission(request):
            return HttpResponseRedirect(reverse("admin:chatapp_conversation_changelist"))
        if conversation is not None:
            extra_context = {
                **(extra_context or {}),
                "title": f"Messages of {visible(str(conversation))}",
            }
        return super().changelist_view(request, extra_context)

    def on_list(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Record a look at each conversation with a message on the page, and at the requested one.

        That nothing was found in a conversation says something about it too.
        """
        shown = {row.conversation_id for row in rows} | {int(request.GET[CONVERSATION_PARAMETER])}
        for conversation in Conversation.objects.select_related("owner").filter(pk__in=shown):
            _record(request, conversation, "messages")

    @admin.display(description="no.", ordering="seq")
    def number(self, message: Message) -> int:
        """Its number in the conversation."""
        return message.seq

    @admin.display(ordering="token_count")
    def tokens(self, message: Message) -> int:
        """Its size."""
        return message.token_count

    @admin.display(description="text")
    def excerpt(self, message: Any) -> str:
        """The beginning of the text, with a sign where it is cut."""
        cut = "…" if len(message.beginning) > EXCERPT else ""
        return f"{visible(message.beginning[:EXCERPT])}{cut}" if message.beginning else "(no text)"

    @admin.display
    def superseded(self, message: Message) -> str:
        """Whether an edit or a regeneration has replaced it."""
        return told(message.superseded_at is not None)

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Record the look."""
        _record(request, obj.conversation, "messages")

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """All data of one message."""
        calls = "\n".join(
            f"{call.get('function', {}).get('name')}({call.get('function', {}).get('arguments')})"
            for call in obj.tool_calls
        )
        texts = {
            "Text": obj.text,
            "Reasoning": obj.reasoning,
            "Added by the program": obj.added_context,
            "Tool calls": calls,
        }
        return {
            "facts": [
                Fact(
                    label="Conversation",
                    value=visible(str(obj.conversation)),
                    url=conversation_page(request, obj.conversation_id),
                ),
                Fact(label="Number", value=obj.seq),
                Fact(label="Role", value=obj.role),
                Fact(label="Tool", value=visible(obj.tool_name) or "none"),
                Fact(label="Status", value=obj.status),
                Fact(label="Tokens", value=f"{obj.token_count:,}"),
                Fact(label="Created", value=moment(obj.created_at)),
                Fact(label="Superseded", value=moment(obj.superseded_at, "no")),
            ],
            "texts": [(label, visible(text)) for label, text in texts.items() if text],
        }


@admin.register(AccessRecord)
class AccessRecordAdmin(Shown):
    """Looks at other people's conversations, and changes made in the admin. Nobody edits these."""

    list_display = (moments("at", "when"), "looked", "did", "owned", "name")
    list_filter = (LooksFilter, WhenFilter)
    search_fields = ("viewer_name", "owner_name")
    ordering = ("-at", "-pk")

    @admin.display(description="who", ordering="viewer_name")
    def looked(self, record: AccessRecord) -> str:
        """Name, at that time, of the person who looked or changed something."""
        return visible(record.viewer_name) or "(gone)"

    @admin.display(description="whose, or of what", ordering="owner_name")
    def owned(self, record: AccessRecord) -> str:
        """The owner of the conversation, or the changed object."""
        return visible(record.owner_name) or "(gone)"

    @admin.display(description="conversation", ordering="conversation_code")
    def name(self, record: AccessRecord) -> str:
        """The conversation's code; its title is the owner's own words."""
        return str(record.conversation_code or "–")

    @admin.display(description="did what", ordering="what")
    def did(self, record: AccessRecord) -> str:
        """The look or the change, in words."""
        return visible(act_in_words(record.what))

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The record on a page of its own."""
        key = obj.conversation_id
        return {
            "facts": [
                Fact(label="When", value=moment(obj.at)),
                Fact(label="Who", value=self.looked(obj)),
                Fact(label="Did what", value=self.did(obj)),
                Fact(label="Whose, or of what", value=self.owned(obj)),
                Fact(
                    label="Conversation",
                    value=self.name(obj),
                    url=conversation_page(request, key) if key else "",
                ),
            ]
        }


def _record(request: HttpRequest, conversation: Conversation, what: str) -> None:
    assert isinstance(request.user, User)
    record_access(viewer=request.user, conversation=conversation, what=what)
