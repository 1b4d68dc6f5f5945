"""The rows of connections, and the people who may add, change and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from chatapp.conversations.access_log import record_act
from chatapp.errors import InvalidInput, NotFound
from chatapp.llm.servers.names import qualified
from chatapp.models import Connection, ModelProfile
from compression.database import in_database_thread

KIND = "connection"
#: Listed models of one connection that are stored: a form may have 1,000 fields.
MOST_LISTED = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """A person's rights on the page of connections."""

    add: bool = False
    change: bool = False
    delete: bool = False
    private: bool = False
    """May name addresses on this computer and inside its network."""

    @property
    def any(self) -> bool:
        """Whether the page is theirs at all."""
        return self.add or self.change or self.delete


def rights(person_id: int) -> Rights:
    """Staff have what their permissions give; private addresses are named by superusers alone.

    Whoever names such an address has this computer ask inside its own network.
    """
    person = User.objects.filter(pk=person_id, is_active=True, is_staff=True).first()
    if person is None:
        return Rights()
    return Rights(
        add=person.has_perm("chatapp.add_connection"),
        change=person.has_perm("chatapp.change_connection"),
        delete=person.has_perm("chatapp.delete_connection"),
        private=person.is_superuser,
    )


def place(address: str) -> tuple[object, ...]:
    """What a key is sent to: another path of the same host is no other place."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def connections() -> list[Connection]:
    """All connections, with the people whom they are offered to."""
    return list(Connection.objects.prefetch_related("people"))


def one(number: int) -> Connection:
    """A connection by its number. Raises NotFound."""
    found = Connection.objects.filter(pk=number).first()
    if found is None:
        raise NotFound
    return found


@transaction.atomic
def add(person_id: int, row: Connection, listed: Sequence[dict[str, Any]]) -> int:
    """Store a new connection that has answered, offered to the person. Raises InvalidInput."""
    row.listed, row.looked_at = list(listed)[:MOST_LISTED], timezone.now()
    check(row)
    try:
        row.save()
    except IntegrityError:
        raise InvalidInput.of("name", "There is a connection of this name already.") from None
    row.people.add(person_id)
    _record(person_id, row, "Added.")
    return row.pk


def check(row: Connection) -> None:
    """Raise InvalidInput for a name that cannot be given to a new connection."""
    try:
        row.full_clean(exclude=["listed", "offered"])
    except ValidationError as error:
        fields = error.message_dict
        name = next(iter(fields))
        said = fields[name][0]
        raise InvalidInput.of("name" if name == "__all__" else name, said) from None


@transaction.atomic
def change(
    person_id: int, number: int, *, offered: Iterable[str], everyone: bool, enabled: bool
) -> None:
    """Say which models are offered, and to whom. Raises NotFound."""
    row = _held(number)
    names = {model["name"] for model in row.models_listed}
    row.offered = sorted(names & set(offered))
    row.everyone, row.enabled = everyone, enabled
    row.save(update_fields=["offered", "everyone", "enabled"])
    shared = "everyone" if everyone else "some people"
    state = "" if enabled else " Switched off."
    _record(person_id, row, f"Offers {len(row.offered)} models to {shared}.{state}")


@transaction.atomic
def rekey(person_id: int, number: int, sealed_key: str) -> None:
    """Store another key, or none. Raises NotFound."""
    row = _held(number)
    row.sealed_key = sealed_key
    row.save(update_fields=["sealed_key"])
    _record(person_id, row, "Changed the key." if sealed_key else "Deleted the key.")


@transaction.atomic
def looked(number: int, listed: Sequence[dict[str, Any]] | None, problem: str = "") -> None:
    """Store what a look at the server found: its models, or why there are none."""
    row = Connection.objects.select_for_update().filter(pk=number).first()
    if row is None:
        return
    row.problem, row.looked_at = problem, timezone.now()
    if listed is not None:
        row.listed = list(listed)[:MOST_LISTED]
    row.save(update_fields=["problem", "looked_at", "listed"])


@transaction.atomic
def remove(person_id: int, number: int) -> None:
    """Delete a connection with its key and its models' figures. Raises NotFound."""
    row = _held(number)
    forget_figures(row)
    row.delete()
    _record(person_id, row, "Deleted.")


def forget_figures(row: Connection) -> None:
    """Delete what is known of a connection's models: another server may get its name."""
    ModelProfile.objects.filter(name__endswith=qualified("", row.name)).delete()


def _held(number: int) -> Connection:
    found = Connection.objects.select_for_update().filter(pk=number).first()
    if found is None:
        raise NotFound
    return found


def _record(person_id: int, row: Connection, act: str) -> None:
    actor = User.objects.get(pk=person_id)
    record_act(actor=actor, name=row.name, kind=KIND, act=act)


arights = in_database_thread(rights)
aconnections = in_database_thread(connections)
aone = in_database_thread(one)
aadd = in_database_thread(add)
acheck = in_database_thread(check)
achange = in_database_thread(change)
arekey = in_database_thread(rekey)
alooked = in_database_thread(looked)
aremove = in_database_thread(remove)
