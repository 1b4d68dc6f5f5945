"""The connection that a request goes to, if whoever it is for may use it."""

from __future__ import annotations

from collections import OrderedDict

from chatapp.conversations.connections.offering import GONE, WITHDRAWN, aaccess
from chatapp.llm import activity_log
from chatapp.llm.errors import ModelUnknown
from chatapp.llm.servers.pool import Server

#: Turns under way, and some that have ended, whose connections are remembered.
MOST_TURNS = 1000


class Finder:
    """A :data:`chatapp.llm.servers.routing.Find` that reads the connection before each request.

    A turn keeps what it began with: if the connection is changed or deleted meanwhile, the requests
    that follow its calls of tools go where its first one went.
    """

    def __init__(self) -> None:
        self._begun: OrderedDict[tuple[int, str, str], Server] = OrderedDict()

    async def __call__(self, name: str, model: str) -> Server:
        """Raises ModelUnknown."""
        turn, conversation_id = activity_log.turn(), activity_log.conversation()
        key = (turn or 0, name, model)
        if key in self._begun:
            return self._begun[key]
        found = conversation_id and await aaccess(conversation_id, name, model)
        if not found:
            raise ModelUnknown(GONE.format(name))
        if not found.offers:
            raise ModelUnknown(WITHDRAWN.format(name))
        server = Server(
            name=found.name,
            address=found.address,
            sealed_key=found.sealed_key,
            private=found.private_addresses,
        )
        if turn:
            self._begun[key] = server
            while len(self._begun) > MOST_TURNS:
                self._begun.popitem(last=False)
        return server
