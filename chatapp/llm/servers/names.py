"""The names of models of several servers. Pure.

A model of the chat's own server is called as its server calls it. A model of another server has the
server's name after it, as in ``qwen3:8b @ study``: so everything that is stored by a model's name
(windows, prices, lessons, the models of conversations) is stored for this server alone.
"""

from __future__ import annotations

from chatapp.text.lengths import NAME_LENGTH

SEPARATOR = " @ "
#: The server of ``SUMMARY_BASE_URL``; no connection may have this name.
SUMMARIES = "summaries"
#: Characters of a connection's name.
SERVER_NAME_LENGTH = 40
#: Characters of a model's name that leave room for its server's.
MODEL_NAME_LENGTH = NAME_LENGTH - SERVER_NAME_LENGTH - len(SEPARATOR)


def qualified(model: str, server: str) -> str:
    """The name of a model of ``server``; of the chat's own server if that is empty."""
    return f"{model}{SEPARATOR}{server}" if server else model


def parted(name: str) -> tuple[str, str]:
    """The model and its server. A server decides what its models are called, but not their end."""
    model, separator, server = name.rpartition(SEPARATOR)
    return (model, server) if separator else (name, "")


def server_of(name: str) -> str:
    """The server of a model; empty for the chat's own."""
    return parted(name)[1]
