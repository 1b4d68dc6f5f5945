"""A bound on guessing passwords: few attempts a name and address, counted in Django's cache.

The count is one number in the cache that every process shares when ``REDIS_URL`` is set; without
it there is one process. The address is that of the connection: a header that says otherwise can be
forged by who guesses.
"""

from __future__ import annotations

import hashlib
import math
import time
import unicodedata

from django.core.cache import cache

# Attempts that one name may have from one address in one window. A person who mistypes needs two
# or three; a guesser gets 1,440 a day, against at least 8 characters that no list of common
# passwords holds.
ATTEMPTS = 5
WINDOW_SECONDS = 300


def _key(name: str, address: str) -> str:
    who = f"{unicodedata.normalize('NFKC', name).casefold()}\n{address}"
    return "signin:" + hashlib.sha256(who.encode("utf-8", "replace")).hexdigest()


def count_attempt(name: str, address: str) -> int:
    """Count one attempt before its password is looked at.

    Returns 0 when it may go on, else the seconds to wait. Counting first bounds attempts that are
    made at the same moment too.
    """
    key, now = _key(name, address), time.time()
    cache.add(f"{key}:until", now + WINDOW_SECONDS, WINDOW_SECONDS)
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        attempts = cache.incr(key)
    except ValueError:
        # The window ended between the two calls: this is the first attempt of the next one.
        cache.set(key, 1, WINDOW_SECONDS)
        return 0
    if attempts <= ATTEMPTS:
        return 0
    until = float(cache.get(f"{key}:until", now + WINDOW_SECONDS))
    return max(1, math.ceil(until - now))


def forget_attempts(name: str, address: str) -> None:
    """The person signed in: the next mistake is a first one again."""
    key = _key(name, address)
    cache.delete_many([key, f"{key}:until"])
