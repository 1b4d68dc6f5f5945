"""A person's settings and sessions: all stored data about them besides conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user, get_user_model
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from chatapp.models import Conversation, UserSettings
from compression.database import in_database_thread


def chosen(user_id: int) -> dict[str, Any]:
    """All settings of a person by name, with defaults for those never changed."""
    row = UserSettings.objects.filter(user_id=user_id).first() or UserSettings(user_id=user_id)
    return {
        "theme": row.theme,
        "send_key": row.send_key,
        "shortcuts": row.shortcuts,
        "default_model": row.default_model,
        "notify": row.notify,
        "instructions": row.instructions,
    }


def change(user_id: int, changes: Mapping[str, Any]) -> None:
    """Store the given settings of a person; the others stay."""
    if changes:
        UserSettings.objects.update_or_create(user_id=user_id, defaults=dict(changes))


def default_model(user_id: int) -> str:
    """The model that the person chose for new conversations; empty for the server's default."""
    found = UserSettings.objects.filter(user_id=user_id).values_list("default_model", flat=True)
    return found.first() or ""


def still_signed_in(session_key: str | None, user_id: int) -> bool:
    """Whether a session is valid: not ended by sign-out, a new password, or deactivation."""
    if not session_key:
        return False
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key).load()
    if str(session.get(SESSION_KEY)) != str(user_id):
        return False
    user = get_user_model()._default_manager.filter(pk=user_id, is_active=True).first()
    if user is None:
        return False
    return constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())


def id_of_session(session_key: str | None) -> int | None:
    """The person who may use the chat with this session; None if nobody may."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    found = person(request)
    return found.pk if found.is_active else None


def hold(people: Iterable[Any]) -> None:
    """Lock people and their conversations until the transaction ends, before deleting them.

    A message stored meanwhile, by an import or a reply, would make the transaction fail. SQLite
    needs no lock: it has one writer.
    """
    keys = [one.pk for one in people]
    users = get_user_model()._default_manager.filter(pk__in=keys)
    for rows in (users, Conversation.objects.filter(owner__in=keys)):
        # Evaluating the query locks its rows.
        list(rows.order_by("pk").select_for_update().values_list("pk", flat=True))


def person(request: HttpRequest) -> User | AnonymousUser:
    """The person who makes this request, read with their session in one unit of work."""
    user = get_user(request)
    assert isinstance(user, User | AnonymousUser)
    return user


aperson = in_database_thread(person)
aid_of_session = in_database_thread(id_of_session)
achosen = in_database_thread(chosen)
achange = in_database_thread(change)
adefault_model = in_database_thread(default_model)
astill_signed_in = in_database_thread(still_signed_in)
