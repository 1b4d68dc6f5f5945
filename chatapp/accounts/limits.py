"""A limit on guessing passwords: attempts are counted per name and address, and per address.

The counts are in Django's cache, which all processes share if ``REDIS_URL`` is set; without it
there is only one process. The address is that of the connection, or the one given by a trusted
proxy, see :mod:`chatapp.deployment.proxies`. Any other header can be forged.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.cache import cache

# Attempts for one name from one address per window. A person who mistypes needs two or three; a
# guesser gets 1,440 a day, against passwords of at least 8 characters that are on no list of common
# ones.
ATTEMPTS = 5
# Failed attempts from one address per window, whatever the names. An office behind one address
# mistypes now and then; a guesser who tries one password for every name is soon stopped.
ATTEMPTS_OF_ADDRESS = 20
WINDOW_SECONDS = 300
# Attempts that one process handles at once. Two are hashed at a time, so the last one waits for
# about ten hashes, a few seconds.
AT_ONCE = 20
BUSY_SECONDS = 3

_places = threading.BoundedSemaphore(AT_ONCE)


def _keys(name: str, address: str) -> tuple[str, str]:
    """The keys of the counts: for name and address, and for the address alone."""
    place, known_as = place_of(address), unicodedata.normalize("NFKC", name).casefold()
    return _hashed(f"name\n{place}\n{known_as}"), _hashed(f"address\n{place}")


def _hashed(text: str) -> str:
    return "signin:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def place_of(address: str) -> str:
    """The address, or the network of an IPv6 one, since a single host has a whole /64."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


@contextmanager
def place_to_wait() -> Iterator[bool]:
    """Whether this process accepts one more attempt, which it then counts until the block ends."""
    taken = _places.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            _places.release()


def count_attempt(name: str, address: str) -> int:
    """Count one attempt, before its password is checked.

    Returns 0 if it may go on, else the seconds to wait. Counting first also limits simultaneous
    attempts. An address at its limit adds no names to the cache, which drops the oldest counts when
    it is full.
    """
    own, shared = _keys(name, address)
    return _count(shared, ATTEMPTS_OF_ADDRESS) or _count(own, ATTEMPTS)


def _count(key: str, most: int) -> int:
    now = time.time()
    cache.add(f"{key}:until", now + WINDOW_SECONDS, WINDOW_SECONDS)
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        attempts = cache.incr(key)
    except ValueError:
        # The window ended between the two calls: this is the first attempt of a new one.
        cache.set(key, 1, WINDOW_SECONDS)
        return 0
    if attempts <= most:
        return 0
    until = float(cache.get(f"{key}:until", now + WINDOW_SECONDS))
    return max(1, math.ceil(until - now))


def forget_attempts(name: str, address: str) -> None:
    """Forget the failed attempts of a person who has signed in.

    For the address only this attempt is forgotten; otherwise a guesser with an account could start
    again after each sign-in.
    """
    own, shared = _keys(name, address)
    cache.delete_many([own, f"{own}:until"])
    try:
        cache.decr(shared)
    except ValueError:
        # The window has ended.
        return
