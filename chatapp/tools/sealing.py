"""Encryption of the keys that are stored for servers, with a key derived from ``SECRET_KEY``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.encoding import force_bytes

# Imported where a key is read or stored: it takes 8 MB, and few deployments have any.
if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

# Sets this use of the secret key apart from all others.
_PURPOSE = b"palimpsest: keys of tool servers"


class Unreadable(Exception):
    """A stored key was encrypted with another ``SECRET_KEY``, or is damaged."""


def seal(secret: str) -> str:
    """A secret, encrypted and authenticated, as text; empty for an empty one."""
    return _fernet().encrypt(secret.encode()).decode() if secret else ""


def unseal(sealed: str) -> str:
    """The secret that :func:`seal` was given. Raises Unreadable."""
    if not sealed:
        return ""
    from cryptography.fernet import InvalidToken

    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def _fernet() -> MultiFernet:
    """The present key first; what an earlier one sealed stays readable while it is a fallback."""
    from cryptography.fernet import Fernet, MultiFernet

    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(secret_key: str | bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE)
    return base64.urlsafe_b64encode(derivation.derive(force_bytes(secret_key)))
