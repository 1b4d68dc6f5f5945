"""Typed readings of environment variables; invalid values raise errors."""

from __future__ import annotations

import os
from math import isfinite, nan
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """The variable's text without surrounding white space; ``default`` when unset or empty."""
    return os.environ.get(name, "").strip() or default


def text_or_off(name: str, default: str) -> str:
    """As :func:`text`, but a variable that is set to nothing stays empty, to turn something off."""
    return os.environ.get(name, default).strip()


def listing(name: str, default: str = "") -> list[str]:
    """Comma-separated values, without empty ones."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def boolean(name: str, default: bool = False) -> bool:
    """1, true, yes, on or 0, false, no, off. Raises ImproperlyConfigured for anything else."""
    value = text(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def integer(name: str, default: int, *, least: int = 0) -> int:
    """A whole number of at least ``least``. Raises ImproperlyConfigured for anything else."""
    value = text(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise ImproperlyConfigured(f"{name} must be at least {least}, not {number}.")
    return number


def share(name: str, default: float, *, low: float, high: float) -> float:
    """A number, clamped to ``low`` and ``high``.

    Raises ImproperlyConfigured for anything but a number.
    """
    value = text(name)
    if not value:
        return default
    found = _number(value)
    if not isfinite(found):
        raise ImproperlyConfigured(
            f"{name} must be a number from {low:g} to {high:g}, not {value!r}."
        )
    return min(high, max(low, found))


def amount(name: str) -> float:
    """A number of at least 0; 0 when unset. Raises ImproperlyConfigured otherwise."""
    value = text(name, "0")
    found = _number(value)
    if not isfinite(found) or found < 0:
        raise ImproperlyConfigured(f"{name} must be a number of at least 0, not {value!r}.")
    return found


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return nan


def folder(name: str, path: Path) -> Path:
    """``path``, given by the variable: a folder that can be written.

    A missing folder is created, for this user only. Raises ImproperlyConfigured when it cannot be
    created or written.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}: {path} cannot be created or entered: {error.strerror}."
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"{name}: {path} cannot be written.")
    return path


def database(name: str, default: str) -> dict[str, object]:
    """A Django database from ``sqlite:///relative``, ``sqlite:////absolute`` or ``postgres://…``.

    Raises ImproperlyConfigured for any other scheme, without quoting the URL, which may hold a
    password.
    """
    url = urlsplit(text(name, default))
    if url.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.path[1:],
            # IMMEDIATE: with deferred transactions, concurrent read-then-write units fail at once.
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if url.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url.path[1:]),
            "USER": unquote(url.username or ""),
            "PASSWORD": unquote(url.password or ""),
            "HOST": unquote(url.hostname or ""),
            "PORT": str(url.port or ""),
            "CONN_HEALTH_CHECKS": True,
            "OPTIONS": {
                **dict(parse_qsl(url.query)),
                "pool": {"min_size": 1, "max_size": 16, "timeout": 10},
            },
        }
    raise ImproperlyConfigured(f"{name} must begin with sqlite:/// or postgres://.")
