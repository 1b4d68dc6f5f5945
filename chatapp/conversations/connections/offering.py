"""The models of connections that a person may use."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from chatapp.llm.servers.names import parted, qualified
from chatapp.models import Connection, Conversation
from compression.database import in_database_thread

GONE = "The connection “{}” is not there any more, or is not offered to you. Choose another model."
WITHDRAWN = "The connection “{}” does not offer this model any more. Choose another one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A connection as the owner of one conversation may use it."""

    name: str
    address: str
    sealed_key: str
    private_addresses: bool
    offers: bool
    """Whether the model asked for is among those that the person is offered."""


def _allowed(person_id: int) -> QuerySet[Connection]:
    may = Q(everyone=True) | Q(people=person_id)
    return Connection.objects.filter(may, enabled=True).distinct()


def offered(person_id: int) -> list[str]:
    """The models of all connections that a person may choose, by connection."""
    return [
        qualified(model, one.name) for one in _allowed(person_id) for model in one.models_offered
    ]


def access(conversation_id: int, name: str, model: str) -> Access | None:
    """The connection of this name for a request of a conversation.

    None when there is no such connection, or the conversation's owner may not use it.
    """
    owner = Conversation.objects.filter(pk=conversation_id, deleted_at=None)
    owner_id = owner.values_list("owner_id", flat=True).first()
    found = None if owner_id is None else _allowed(owner_id).filter(name=name).first()
    if found is None:
        return None
    return Access(
        name=found.name,
        address=found.address,
        sealed_key=found.sealed_key,
        private_addresses=found.private_addresses,
        offers=model in found.offered,
    )


def why_not(person_id: int, chosen: str) -> str:
    """The reason why a person's model cannot be asked, as a sentence; empty if it can.

    Only models of connections are looked up: the chat's own server says itself what it has.
    """
    model, name = parted(chosen)
    if not name:
        return ""
    found = _allowed(person_id).filter(name=name).first()
    if found is None:
        return GONE.format(name)
    return "" if model in found.offered else WITHDRAWN.format(name)


aoffered = in_database_thread(offered)
aaccess = in_database_thread(access)
