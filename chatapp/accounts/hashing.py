"""Password hashing, a few at a time.

A hash takes a core for tenths of a second on purpose. Forty at once, each in the thread of its
request, kept the event loop off both cores of a computer for seconds. So hashes wait for one
another, wherever a password is checked or set.
"""

from __future__ import annotations

import threading
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher

#: Hashes at once in one process; with two, the system still gives the event loop its share.
AT_ONCE = 2
_turn = threading.BoundedSemaphore(AT_ONCE)


class PatientPasswordHasher(PBKDF2PasswordHasher):
    """Django's first hasher, under the same name, so that stored hashes stay valid."""

    def encode(self, password: str, salt: str, iterations: Any = None) -> str:
        """The hash. Checking a password also calls this."""
        with _turn:
            return super().encode(password, salt, iterations)
