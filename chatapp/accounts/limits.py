"""A bound on guessing passwords: attempts are counted a name and address, and an address.

The counts are in Django's cache, which every process shares when ``REDIS_URL`` is set; without it
there is one process. The address is that of the connection, or what a trusted proxy says, see
:mod:`chatapp.deployment.proxies`: any other header can be forged by who guesses.
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

# Attempts that one name may have from one address in one window. A person who mistypes needs two
# or three; a guesser gets 1,440 a day, against at least 8 characters that no list of common
# passwords holds.
ATTEMPTS = 5
# Failed attempts of one address, whatever the names: an office behind one address mistypes now and
# then, and who tries one password for every name is soon through.
ATTEMPTS_OF_ADDRESS = 20
WINDOW_SECONDS = 300
# Attempts that one process looks at at once; past two they wait for their turn to be hashed, so
# that the last one waits for some ten hashes, a few seconds.
AT_ONCE = 20
BUSY_SECONDS = 3

_places = threading.BoundedSemaphore(AT_ONCE)


def _keys(name: str, address: str) -> tuple[str, str]:
    """Where the attempts of a name and address are counted, and those of the address."""
    place, known_as = _place(address), unicodedata.normalize("NFKC", name).casefold()
    return _hashed(f"name\n{place}\n{known_as}"), _hashed(f"address\n{place}")


def _hashed(text: str) -> str:
    return "signin:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _place(address: str) -> str:
    """The address, or the network of an IPv6 one: a single host has all of a /64 to choose from."""
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
    """Whether this process takes one more attempt now; it holds its place until the end."""
    taken = _places.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            _places.release()


def count_attempt(name: str, address: str) -> int:
    """Count one attempt before its password is looked at.

    Returns 0 when it may go on, else the seconds to wait. Counting first bounds attempts that are
    made at the same moment too. An address that has none left adds no names to the cache, which
    drops the oldest counts when it is full.
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
        # The window ended between the two calls: this is the first attempt of the next one.
        cache.set(key, 1, WINDOW_SECONDS)
        return 0
    if attempts <= most:
        return 0
    until = float(cache.get(f"{key}:until", now + WINDOW_SECONDS))
    return max(1, math.ceil(until - now))


def forget_attempts(name: str, address: str) -> None:
    """The person signed in: the next mistake is a first one again.

    Of the address only this attempt is forgotten, or a guesser with an account of their own could
    begin anew with each sign-in.
    """
    own, shared = _keys(name, address)
    cache.delete_many([own, f"{own}:until"])
    try:
        cache.decr(shared)
    except ValueError:
        # Its window has ended.
        return
