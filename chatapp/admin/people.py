"""Accounts: Django's own page, which must not load a person's whole chat to delete it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp.models import Conversation, Message, Summary

if TYPE_CHECKING:
    DjangoUserAdmin = UserAdmin[User]
else:
    DjangoUserAdmin = UserAdmin

admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(DjangoUserAdmin):
    """Deleting a person deletes their conversations; the page says how much that is."""

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
        names: list[Any] = [str(person) for person in people]
        return names, counts, missing, []
