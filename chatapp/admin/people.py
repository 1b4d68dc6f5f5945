"""Accounts: Django's own pages, with two differences.

Rights are the superusers' to give: whoever may change accounts could make their own one a
superuser's, or sign in as one by a new password. And to delete a person must not load their whole
chat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from chatapp.models import Conversation, Message, Summary

if TYPE_CHECKING:
    DjangoUserAdmin = UserAdmin[User]
else:
    DjangoUserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)

#: What a person may do is decided by these.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


def _superuser(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_superuser


def _has_rights(person: User) -> bool:
    """Whether this account opens more than its own conversations."""
    return person.is_superuser or person.is_staff


@admin.register(Group)
class RightsAdmin(GroupAdmin):
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
class PersonAdmin(DjangoUserAdmin):
    """Deleting a person deletes their conversations; the page says how much that is."""

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
        """What gives rights, for who is no superuser."""
        fields = super().get_readonly_fields(request, obj)
        return fields if _superuser(request) else (*fields, *RIGHTS)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Names of the people and counts of what goes with them, instead of every row of it."""
        people = list(objs)
        owned = Conversation.objects.filter(owner__in=people)
        counts = {
            "people": len(people),
            "conversations": owned.count(),
            "messages": Message.objects.filter(conversation__in=owned).count(),
            "summaries": Summary.objects.filter(conversation__in=owned).count(),
        }
        missing: set[str] = set()
        if counts["conversations"] and not request.user.has_perm("chatapp.delete_conversation"):
            missing.add("conversations")
        # Several at once are asked for here only.
        if any(not self.has_delete_permission(request, person) for person in people):
            missing.add("people with rights")
        names: list[Any] = [str(person) for person in people]
        return names, counts, missing, []
