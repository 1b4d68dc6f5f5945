"""The models that a person may choose from, of all servers."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp import wiring
from chatapp.conversations.connections.offering import aoffered
from chatapp.llm.servers.names import server_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The models of a person's pickers."""

    names: list[str]
    default: str
    """For new conversations, if the person has chosen none; empty if it is not known yet."""

    def still(self, chosen: str) -> str:
        """A model chosen earlier, if it is there, or its server has not said what there is."""
        own = [name for name in self.names if not server_of(name)]
        unknown = not own and not server_of(chosen)
        return chosen if chosen in self.names or unknown else ""

    def first_there(self, *wished: str) -> str:
        """The first of the models wished for that is still there; empty if none is."""
        return next(filter(None, map(self.still, filter(None, wished))), "")


async def choice(user_id: int) -> Choice:
    """The models of the chat's own server, and those of connections that the person is offered.

    While only the demo model would answer, a connection's first model is the default.
    """
    services = wiring.services()
    own, connected = await services.catalogue.names(), await aoffered(user_id)
    if services.demo and connected:
        return Choice(names=[*connected, *own], default=connected[0])
    return Choice(names=[*own, *connected], default=services.catalogue.known_name())
