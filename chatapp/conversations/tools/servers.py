"""The tool servers of a conversation: which there are, and which are switched on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects

from chatapp.conversations.ownership import owned
from chatapp.conversations.tools.definitions import NOT_APPROVED
from chatapp.errors import InvalidInput, NotFound
from chatapp.models import (
    Conversation,
    PersonalKey,
    ToolDefinition,
    ToolPermission,
    ToolServer,
    ToolSwitch,
)
from compression.database import in_database_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTool:
    """A tool as an administrator approved it."""

    name: str
    """The server's own name for it."""
    raw: str
    """The approved object: :func:`compression.tools.approval.exact`."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """A server as one person may use it."""

    server_id: int
    name: str
    address: str
    command: tuple[str, ...]
    private_addresses: bool
    credential_name: str
    sealed_key: str
    """The key to use, encrypted; empty for none."""
    tools: tuple[PinnedTool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChoice:
    """A server in the list of those that a conversation can use."""

    name: str
    on: bool
    personal_keys: bool
    has_key: bool
    access: ServerAccess
    quarantined: int
    """Tools that an administrator has to approve first."""

    @property
    def usable(self) -> bool:
        """Whether nothing is missing to use it."""
        return self.has_key or not self.personal_keys


def allowed(person_id: int) -> QuerySet[ToolServer]:
    """The servers that a person may use."""
    may = Q(everyone=True) | Q(people=person_id)
    return ToolServer.objects.filter(may, enabled=True).distinct()


def access_to(server: ToolServer, sealed_key: str = "") -> ServerAccess:
    """What is needed to connect to a server, with the tools that are offered of it."""
    return ServerAccess(
        server_id=server.pk,
        name=server.name,
        address=server.address,
        command=tuple(str(part) for part in server.command),
        private_addresses=server.private_addresses,
        credential_name=server.credential_name,
        sealed_key=sealed_key if server.personal_keys else server.sealed_key,
        tools=tuple(
            PinnedTool(name=one.name, raw=one.approved, sha256=one.approved_sha256)
            for one in server.definitions.all()
            if one.offered
        ),
    )


def _choices(
    conversation: Conversation, servers: QuerySet[ToolServer], *, only_on: bool = False
) -> list[ServerChoice]:
    """Those of the servers that the conversation's owner may use, or only those switched on."""
    if not servers:
        return []
    switches = dict(
        ToolSwitch.objects.filter(conversation=conversation).values_list("server_id", "on")
    )
    found = [
        (server, on)
        for server in servers
        if (on := switches.get(server.pk, server.on_by_default)) or not only_on
    ]
    # Definitions may have megabytes: only those of these servers, and not what was reported last.
    definitions = ToolDefinition.objects.defer("reported")
    prefetch_related_objects(
        [server for server, _ in found], Prefetch("definitions", queryset=definitions)
    )
    keys = dict(
        PersonalKey.objects.filter(person_id=conversation.owner_id).values_list(
            "server_id", "sealed_key"
        )
    )
    return [
        ServerChoice(
            name=server.name,
            on=on,
            personal_keys=server.personal_keys,
            has_key=server.pk in keys,
            access=access_to(server, keys.get(server.pk, "")),
            quarantined=sum(
                not one.offered and not one.missing for one in server.definitions.all()
            ),
        )
        for server, on in found
    ]


def switched_on(conversation_id: int, server_id: int | None = None) -> tuple[ServerAccess, ...]:
    """The servers whose tools the next request of a conversation offers, or one of them."""
    row = Conversation.objects.filter(pk=conversation_id, deleted_at=None).first()
    if row is None:
        return ()
    servers = allowed(row.owner_id)
    if server_id is not None:
        servers = servers.filter(pk=server_id)
    return tuple(one.access for one in _choices(row, servers, only_on=True) if one.usable)


def still_offered(conversation_id: int, server: ServerAccess, tool: PinnedTool) -> bool:
    """Whether a tool that a request offered may be called, at the same place with the same key."""
    setup = replace(server, tools=())
    return any(
        replace(one, tools=()) == setup and tool in one.tools
        for one in switched_on(conversation_id, server.server_id)
    )


def choices(user_id: int, code: str) -> tuple[list[ServerChoice], list[str]]:
    """The servers that a person's conversation can use, and the tools always allowed in it.

    Raises NotFound.
    """
    row = owned(user_id, code)
    permitted = ToolPermission.objects.filter(conversation=row).order_by("tool")
    servers = allowed(row.owner_id)
    return _choices(row, servers), list(dict.fromkeys(permitted.values_list("tool", flat=True)))


@transaction.atomic
def switch(user_id: int, code: str, name: str, *, on: bool) -> int:
    """Switch a server on or off in a conversation. Returns its id. Raises NotFound."""
    row = owned(user_id, code)
    ToolSwitch.objects.update_or_create(
        conversation=row, server=_server(user_id, name), defaults={"on": on}
    )
    return row.pk


def ask_again(user_id: int, code: str, tool: str) -> int:
    """Have calls of a tool approved one by one again. Returns the conversation's id.

    Raises NotFound.
    """
    row = owned(user_id, code)
    ToolPermission.objects.filter(conversation=row, tool=tool).delete()
    return row.pk


@transaction.atomic
def keep_key(user_id: int, name: str, sealed_key: str) -> None:
    """Store a person's key for a server; an empty one is removed. Raises NotFound, InvalidInput."""
    server = _server(user_id, name)
    if not server.personal_keys:
        raise InvalidInput.of("key", "This server takes no key of yours.")
    mine = PersonalKey.objects.filter(server=server, person_id=user_id)
    mine.delete()
    if sealed_key:
        PersonalKey.objects.create(server=server, person_id=user_id, sealed_key=sealed_key)


def _server(user_id: int, name: str) -> ToolServer:
    found = allowed(user_id).filter(name=name).first()
    if found is None:
        raise NotFound
    return found


@transaction.atomic
def distrust(server_id: int) -> None:
    """Take back what was entrusted to a server that is now at another place.

    These are the keys that people entered for it, and the approvals of its tools.
    """
    PersonalKey.objects.filter(server_id=server_id).delete()
    ToolDefinition.objects.filter(server_id=server_id).update(**NOT_APPROVED)


def forget_permissions(server: str) -> None:
    """Have calls of tools of a server of this name asked about again, in every conversation."""
    # Models are told ``server__tool``, and no server has ``_`` in its name.
    ToolPermission.objects.filter(tool__startswith=f"{server}__").delete()


def copy_choices(source: Conversation, target: Conversation) -> None:
    """Give a conversation made from another the same switches; permissions are asked anew."""
    switches: Sequence[ToolSwitch] = [
        ToolSwitch(conversation=target, server_id=one.server_id, on=one.on)
        for one in source.tool_switches.all()
    ]
    ToolSwitch.objects.bulk_create(switches)


aswitched_on = in_database_thread(switched_on)
astill_offered = in_database_thread(still_offered)
achoices = in_database_thread(choices)
aswitch = in_database_thread(switch)
aask_again = in_database_thread(ask_again)
akeep_key = in_database_thread(keep_key)
