"""Checks of what people type about a connection; each returns a clean value or InvalidInput."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from chatapp.errors import InvalidInput
from chatapp.forms import KEY_LENGTH, storable
from chatapp.llm.servers.names import SERVER_NAME_LENGTH

ADDRESS_LENGTH = 500


def name(fields: Mapping[str, str]) -> str:
    """The name of a new connection, on one line."""
    found = " ".join(fields.get("name", "").split())
    if not found:
        raise InvalidInput.of("name", "Give the connection a name.")
    return storable("name", found, longest=SERVER_NAME_LENGTH)


def address(fields: Mapping[str, str]) -> str:
    """An address with a scheme and a host, and without a password, query or fragment in it."""
    found = storable("address", fields.get("address", "").strip(), longest=ADDRESS_LENGTH)
    try:
        parts = urlsplit(found)
        plain = not (parts.query or parts.fragment or "@" in parts.netloc)
        # Raises for a port that is none.
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = plain = False
    if not usable or not plain or not found.isprintable() or " " in found:
        raise InvalidInput.of(
            "address",
            "Enter an address like https://api.openai.com/v1 or http://localhost:11434/v1, "
            "without a name and a password.",
        )
    return found


def key(fields: Mapping[str, str]) -> str:
    """A key that a header can carry; empty for none."""
    found = fields.get("key", "").strip()
    if found and (not found.isascii() or not found.isprintable() or len(found) > KEY_LENGTH):
        raise InvalidInput.of("key", "A key has letters, digits and signs on one line.")
    return found


def ticked(fields: Mapping[str, str], field: str) -> bool:
    """Whether a box was ticked, or a program said true."""
    return fields.get(field, "").lower() in {"true", "on", "1"}
