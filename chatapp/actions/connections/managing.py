"""Connecting a model server, looking at it again, and saying which of its models are offered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from chatapp import wiring
from chatapp.conversations.connections import stored
from chatapp.conversations.connections.stored import Rights
from chatapp.errors import InvalidInput, NotFound
from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import LLMError, MalformedReply
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.llm.servers.names import MODEL_NAME_LENGTH
from chatapp.llm.servers.pool import Server
from chatapp.llm.servers.routing import about
from chatapp.models import Connection
from chatapp.text.safety import problems
from chatapp.tools import sealing

#: Seconds; a person waits for the answer.
PATIENCE = Limits(connect=5, first_token=10, total=20, attempts=1, retry_budget=0)
#: A server with no more models than this offers them all when it is connected; of a longer list a
#: person picks.
OFFERED_AT_ONCE = 20
#: What most servers have below their host.
USUAL_PATH = "/v1"


async def rights_of(user_id: int) -> Rights:
    """The person's rights on connections. Raises NotFound if they have none at all."""
    found = await stored.arights(user_id)
    if not found.any:
        raise NotFound
    return found


async def connect(user_id: int, row: Connection, key: str) -> int:
    """Add a server that answers with its models. Returns its number.

    Raises NotFound, InvalidInput, and LLMError with what is wrong with the server.
    """
    allowed = await rights_of(user_id)
    if not allowed.add:
        raise NotFound
    if row.private_addresses and not allowed.private:
        raise InvalidInput.of(
            "private_addresses", "Only an owner may name an address inside this network."
        )
    await stored.acheck(row)
    row.sealed_key = sealing.seal(key)
    row.address, found = await _answered(server_of_row(row))
    models = await _heard(row, found)
    if len(models) <= OFFERED_AT_ONCE:
        row.offered = [one["name"] for one in models]
    return await stored.aadd(user_id, row, models)


async def look_again(user_id: int, number: int) -> str:
    """Ask a connected server for its models anew. Returns what is wrong, or nothing.

    Raises NotFound.
    """
    await _require_change(user_id)
    return await look(await stored.aone(number))


async def look(row: Connection) -> str:
    """The same for a connection, whoever asks."""
    try:
        models = await _heard(row, await _listed(server_of_row(row)))
    except LLMError as error:
        await stored.alooked(row.pk, None, error.message)
        return error.message
    await stored.alooked(row.pk, models)
    return ""


async def offer(
    user_id: int, number: int, *, offered: Iterable[str], everyone: bool, enabled: bool
) -> None:
    """Say which models are offered, and whether to everyone. Raises NotFound."""
    await _require_change(user_id)
    await stored.achange(user_id, number, offered=offered, everyone=everyone, enabled=enabled)


async def keep_key(user_id: int, number: int, key: str) -> str:
    """Store another key, or none, and look whether it is right. As :func:`look_again`."""
    await _require_change(user_id)
    await stored.arekey(user_id, number, sealing.seal(key))
    return await look(await stored.aone(number))


async def disconnect(user_id: int, number: int) -> None:
    """Delete a connection. Replies that are under way end as they began. Raises NotFound."""
    if not (await rights_of(user_id)).delete:
        raise NotFound
    await stored.aremove(user_id, number)


async def _require_change(user_id: int) -> None:
    if not (await rights_of(user_id)).change:
        raise NotFound


def server_of_row(row: Connection) -> Server:
    """A stored connection as requests use it."""
    return Server(
        name=row.name,
        address=row.address,
        sealed_key=row.sealed_key,
        private=row.private_addresses,
    )


async def _answered(server: Server) -> tuple[str, tuple[ModelInfo, ...]]:
    """The address at which the server lists models, and these. Raises LLMError.

    An address of a host alone is first tried with the path that most servers have.
    """
    if urlsplit(server.address).path.strip("/"):
        return server.address, await _listed(server)
    usual = replace(server, address=server.address.rstrip("/") + USUAL_PATH)
    try:
        return usual.address, await _listed(usual)
    except LLMError as error:
        if not error.http_status and not isinstance(error, MalformedReply):
            raise
        try:
            return server.address, await _listed(server)
        except LLMError:
            raise error from None


async def _listed(server: Server) -> tuple[ModelInfo, ...]:
    """The server's models, at least one. Raises LLMError with a sentence about this server."""
    client = await wiring.connection_client(server, PATIENCE)
    try:
        found = await client.models()
    except LLMError as error:
        raise about(error, server.name) from None
    finally:
        await client.aclose()
    usable = tuple(
        one for one in found if len(one.name) <= MODEL_NAME_LENGTH and not problems(one.name)
    )
    if not usable:
        raise MalformedReply("The server answered, but it lists no model that could be used.")
    return usable


async def _heard(row: Connection, found: Sequence[ModelInfo]) -> list[dict[str, Any]]:
    """Store the figures of these models. Returns them as they are kept with the connection."""
    kept = found[: stored.MOST_LISTED]
    others = wiring.services().catalogue.others
    windows = await others.hear(row.name, kept, wiring.prices(row.address))
    return [{"name": one.name, "window": windows.get(one.name)} for one in kept]
