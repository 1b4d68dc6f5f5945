"""Accounts: Django's own pages, with some differences.

Rights are the superusers' to give: whoever may change accounts could make their own one a
superuser's, or sign in as one by a new password. To delete a person must not load their whole
chat. And a name shows the characters that would hide in it: Django allows some, with which two
names look the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from chatapp.admin.acts import Recorded
from chatapp.conversations import people
from chatapp.conversations.turns import spending
from chatapp.models import Conversation, DailyUse, Message, Summary
from chatapp.text.safety import visible

if TYPE_CHECKING:
    DjangoUserAdmin = UserAdmin[User]
else:
    DjangoUserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)

#: What a person may do is decided by these.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


def _named(account: User | Group) -> str:
    """The name as Django's pages write it: in titles, lists, questions, messages and the log."""
    return visible(account.get_username() if isinstance(account, User) else account.name)


for _model in (User, Group):
    setattr(_model, "__str__", _named)  # noqa: B010 - a method, which mypy guards


def _marked(field: str) -> Callable[[User], str]:
    """A column of the list: a field that a person wrote."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def column(person: User) -> str:
        return visible(getattr(person, field))

    # Django names the cells of a column after it.
    column.__name__ = field
    return column


def _superuser(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_superuser


def _has_rights(person: User) -> bool:
    """Whether this account opens more than its own conversations."""
    return person.is_superuser or person.is_staff


@admin.register(Group)
class RightsAdmin(Recorded, GroupAdmin):
    """Groups: their permissions are their members'. Others look only."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return _superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return _superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return _superuser(request)


@admin.register(User)
class PersonAdmin(Recorded, DjangoUserAdmin):
    """Deleting a person deletes their conversations; the page says how much that is."""

    list_display = (*map(_marked, ("username", "email", "first_name", "last_name")), "is_staff")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """With Django's permission, of accounts without rights; the others are the superusers'.

        The page for a new password asks here too.
        """
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or _superuser(request) or not _has_rights(obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """As to change."""
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and (obj is None or _superuser(request) or not _has_rights(obj))

    def get_readonly_fields(
        self, request: HttpRequest, obj: User | None = None
    ) -> list[str] | tuple[str, ...]:
        """What gives rights, for who is no superuser; and what was counted."""
        fields = (*super().get_readonly_fields(request, obj), "used_today")
        return fields if _superuser(request) else (*fields, *RIGHTS)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """With today's use, where it is counted."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or not spending.limited():
            return sets
        return (*sets, ("Daily limit", {"fields": ("used_today",)}))

    def get_list_display(self, request: HttpRequest) -> Any:
        """With today's use, where it is counted."""
        columns = super().get_list_display(request)
        return (*columns, "used_today") if spending.limited() else columns

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With today's use, in the same query."""
        today = DailyUse.objects.filter(person=OuterRef("pk"), day=timezone.localdate())
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.annotate(
            tokens_today=Subquery(today.values("tokens")),
            cost_today=Subquery(today.values("cost")),
        )

    @admin.display(description="used today")
    def used_today(self, person: Any) -> str:
        """What was used today, of how much."""
        parts = []
        tokens, cost = settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER
        if tokens:
            parts.append(f"{person.tokens_today or 0:,} of {tokens:,} tokens")
        if cost:
            parts.append(f"${person.cost_today or 0:,.2f} of ${cost:,.2f}")
        return ", ".join(parts)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """With all that is theirs, also while something of theirs is being stored."""
        with transaction.atomic():
            people.hold([obj])
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """The same of several."""
        with transaction.atomic():
            people.hold(queryset)
            super().delete_queryset(request, queryset)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """The page for a new password, whose title has the name as it is stored."""
        response = super().user_change_password(request, id, form_url)
        shown = getattr(response, "context_data", None)
        if shown is not None:
            shown["title"] = visible(shown["title"])
        return response

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Names of the people and counts of what goes with them, instead of every row of it."""
        chosen = list(objs)
        owned = Conversation.objects.filter(owner__in=chosen)
        counts = {
            "people": len(chosen),
            "conversations": owned.count(),
            "messages": Message.objects.filter(conversation__in=owned).count(),
            "summaries": Summary.objects.filter(conversation__in=owned).count(),
        }
        missing: set[str] = set()
        if counts["conversations"] and not request.user.has_perm("chatapp.delete_conversation"):
            missing.add("conversations")
        # Several at once are asked for here only.
        if any(not self.has_delete_permission(request, person) for person in chosen):
            missing.add("people with rights")
        names: list[Any] = [str(person) for person in chosen]
        return names, counts, missing, []
