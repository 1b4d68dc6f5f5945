"""The admin's pages of accounts: Django's own, with some differences.

Only superusers grant rights: others who may change accounts could make themselves superusers, or
sign in as one by setting a new password. Deleting a person must not load their whole chat. And
names show hidden characters, some of which Django allows, so that no two names look the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.apps import apps
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

# Django calls this part of its pages after its own two jobs.
apps.get_app_config("auth").verbose_name = "People"
admin.site.unregister(User)
admin.site.unregister(Group)

#: The fields that grant rights.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


def _named(account: User | Group) -> str:
    """The name as Django's pages show it: in titles, lists, questions, messages and the log."""
    return visible(account.get_username() if isinstance(account, User) else account.name)


for _model in (User, Group):
    setattr(_model, "__str__", _named)  # noqa: B010 - a method, which mypy guards


def _marked(field: str) -> Callable[[User], str]:
    """A column of the list for a text that a person wrote."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def column(person: User) -> str:
        return visible(getattr(person, field))

    # Django names the column's cells after the function.
    column.__name__ = field
    return column


def _superuser(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_superuser


def _has_rights(person: User) -> bool:
    """Whether this account may see more than its own conversations."""
    return person.is_superuser or person.is_staff


@admin.register(Group)
class RightsAdmin(Recorded, GroupAdmin):
    """Groups, whose permissions their members have. Only superusers change them."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return _superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return _superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return _superuser(request)


@admin.register(User)
class PersonAdmin(Recorded, DjangoUserAdmin):
    """Deleting a person deletes their conversations; the page says how much that is."""

    list_display = (*map(_marked, ("username", "email", "first_name", "last_name")), "is_staff")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Allow Django's permission for accounts without rights; superusers for the others.

        The page for a new password checks this too.
        """
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or _superuser(request) or not _has_rights(obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """As for a change."""
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and (obj is None or _superuser(request) or not _has_rights(obj))

    def get_readonly_fields(
        self, request: HttpRequest, obj: User | None = None
    ) -> list[str] | tuple[str, ...]:
        """The fields that grant rights, except for superusers; and what was counted."""
        fields = (*super().get_readonly_fields(request, obj), "used_today")
        return fields if _superuser(request) else (*fields, *RIGHTS)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Django's fields, with today's use if there is a limit."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or not spending.limited():
            return sets
        return (*sets, ("Daily limit", {"fields": ("used_today",)}))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Django's columns, with today's use if there is a limit."""
        columns = super().get_list_display(request)
        return (*columns, "used_today") if spending.limited() else columns

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """The accounts, with today's use in the same query."""
        today = DailyUse.objects.filter(person=OuterRef("pk"), day=timezone.localdate())
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.annotate(
            tokens_today=Subquery(today.values("tokens")),
            cost_today=Subquery(today.values("cost")),
        )

    @admin.display(description="used today")
    def used_today(self, person: Any) -> str:
        """Today's use, and the limit."""
        parts = []
        tokens, cost = settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER
        if tokens:
            parts.append(f"{person.tokens_today or 0:,} of {tokens:,} tokens")
        if cost:
            parts.append(f"${person.cost_today or 0:,.2f} of ${cost:,.2f}")
        return ", ".join(parts)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete a person with all their data, even while some of it is being stored."""
        with transaction.atomic():
            people.hold([obj])
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """The same for several people."""
        with transaction.atomic():
            people.hold(queryset)
            super().delete_queryset(request, queryset)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """The page for a new password, with the stored name in its title."""
        response = super().user_change_password(request, id, form_url)
        shown = getattr(response, "context_data", None)
        if shown is not None:
            shown["title"] = visible(shown["title"])
        return response

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """The people's names, and counts of their data instead of every row."""
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
        # For several people, only this place checks the permission.
        if any(not self.has_delete_permission(request, person) for person in chosen):
            missing.add("people with rights")
        names: list[Any] = [str(person) for person in chosen]
        return names, counts, missing, []
