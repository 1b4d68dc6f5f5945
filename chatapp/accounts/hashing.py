"""Hashing passwords, a few at a time.

A hash is meant to take a core for tenths of a second. Forty at once, each in the thread of its
request, kept the event loop off both cores of a computer for seconds; so they wait for one another,
wherever a password is checked or set.
"""

from __future__ import annotations

import threading
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher

#: In one process. While these two run, the system gives the loop its turn as the third.
AT_ONCE = 2
_turn = threading.BoundedSemaphore(AT_ONCE)


class PatientPasswordHasher(PBKDF2PasswordHasher):
    """Django's first hasher, under its name: what is stored stays as it is."""

    def encode(self, password: str, salt: str, iterations: Any = None) -> str:
        """The hash. Checking a password comes here as well."""
        with _turn:
            return super().encode(password, salt, iterations)
