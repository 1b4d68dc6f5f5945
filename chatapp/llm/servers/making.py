"""The client of one connection: its own key, its own addresses, and nothing of the chat's server.

Its address was typed on a page, so connections are guarded as those of tools: the address is
checked when the connection is made, no redirect is followed, and no proxy of the environment and no
header of its variables is used.
"""

from __future__ import annotations

from collections.abc import Callable

from chatapp.llm.errors import WrongKey
from chatapp.llm.openai_compatible.client import OnLearned, OpenAIClient
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.llm.servers.pool import Server
from chatapp.tools.addresses import ANY_HOST, Reach
from chatapp.tools.sealing import Unreadable, unseal


def client_of(
    server: Server,
    *,
    limits: Limits | None = None,
    on_learned: OnLearned | None = None,
    gather: Callable[[], float] = lambda: 0.0,
) -> OpenAIClient:
    """A client for a connection. Raises WrongKey if its stored key cannot be read."""
    try:
        key = unseal(server.sealed_key)
    except Unreadable:
        raise WrongKey(
            f"The key of “{server.name}” was stored with another SECRET_KEY. An administrator "
            "should enter it again."
        ) from None
    reach = Reach(hosts=frozenset({ANY_HOST}), private=server.private)
    return OpenAIClient(
        base_url=server.address,
        api_key=key,
        limits=limits,
        on_learned=on_learned,
        gather=gather,
        open_socket=reach.open_socket,
        of_the_chat=False,
    )
