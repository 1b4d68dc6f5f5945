"""System checks of the chat's settings, run before anything is served.

========  ==================================================================================
E001      SECRET_KEY is short, has few different characters, or is Django's generated one
E002      an entry of ALLOWED_ORIGINS is not scheme, host and port alone
E003      the host of an allowed origin is not in ALLOWED_HOSTS
E004      OPENAI_BASE_URL or SUMMARY_BASE_URL is not an http or https address, or holds a
          password
E005      ACTIVITY_LOG_DIR cannot be written
E006      REDIS_URL is not a Redis address
E007      SUMMARY_API_KEY is set and SUMMARY_BASE_URL is not
E008      SUMMARY_BASE_URL is set, and neither SUMMARY_MODEL nor CHAT_MODEL
W001      several processes' channel layer (REDIS_URL) with a SQLite file
W002      DEBUG is on while an origin is not this computer
W003      OPENAI_BASE_URL is set and OPENAI_API_KEY is not, on another computer; or
          SUMMARY_BASE_URL and SUMMARY_API_KEY
W004      COMPRESSION_THRESHOLD is outside of what is possible; the nearest is used
W005      others on this computer can read a file of ours that is not ours to close
========  ==================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from chatapp import environment
from chatapp.deployment.private_files import open_to_others
from compression.planning import defaults

SECRET_KEY_LENGTH = 50
SECRET_KEY_CHARACTERS = 5
LOOPBACK = {"127.0.0.1", "localhost", "::1"}

Apps = Sequence[AppConfig] | None
Found = list[checks.CheckMessage]


def _split(address: str) -> SplitResult | None:
    """The parts of an address; None if it, or its port, cannot be read."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


@checks.register(checks.Tags.security)
def secret_key(app_configs: Apps, **_: Any) -> Found:
    """E001: a person who guesses the key can sign in as anybody."""
    key = settings.SECRET_KEY
    if (
        len(key) >= SECRET_KEY_LENGTH
        and len(set(key)) >= SECRET_KEY_CHARACTERS
        and not key.startswith("django-insecure-")
    ):
        return []
    return [
        checks.Error(
            f"SECRET_KEY can be guessed: use {SECRET_KEY_LENGTH} or more random characters.",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(50))' prints some.",
            id="chatapp.E001",
        )
    ]


@checks.register(checks.Tags.security)
def origins(app_configs: Apps, **_: Any) -> Found:
    """E002, E003: the exact origins that a websocket's Origin must equal."""
    found: Found = []
    for origin in settings.ALLOWED_ORIGINS:
        parts = _split(origin)
        host = parts.hostname if parts else None
        if parts is None or parts.scheme not in {"http", "https"} or not host or _has_more(parts):
            found.append(
                checks.Error(
                    f"ALLOWED_ORIGINS: {origin!r} is not scheme, host and port alone.",
                    hint="As in https://chat.example.org or http://127.0.0.1:8000.",
                    id="chatapp.E002",
                )
            )
        elif not validate_host(host, settings.ALLOWED_HOSTS):
            found.append(
                checks.Error(
                    f"ALLOWED_ORIGINS has {origin!r}, but ALLOWED_HOSTS lacks its host.",
                    hint=f"Add {host} to ALLOWED_HOSTS.",
                    id="chatapp.E003",
                )
            )
    return found


def _has_more(parts: SplitResult) -> bool:
    return bool(parts.path or parts.query or parts.fragment or parts.username is not None)


@checks.register()
def model_server(app_configs: Apps, **_: Any) -> Found:
    """E004, W003: the address and key of the model server."""
    return _server("OPENAI", settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY)


@checks.register()
def summary_server(app_configs: Apps, **_: Any) -> Found:
    """E004, E007, E008, W003: the address, key and model of a server of its own for summaries."""
    address, key = settings.SUMMARY_BASE_URL, settings.SUMMARY_API_KEY
    if key and not address:
        return [
            checks.Error(
                "SUMMARY_API_KEY is set and SUMMARY_BASE_URL is not.",
                hint="The key would be used for nothing. Summaries by the chat's server are made "
                "with OPENAI_API_KEY.",
                id="chatapp.E007",
            )
        ]
    found = _server("SUMMARY", address, key)
    if address and not (settings.SUMMARY_MODEL or settings.CHAT_MODEL):
        found.append(
            checks.Error(
                "SUMMARY_BASE_URL is set, and neither SUMMARY_MODEL nor CHAT_MODEL.",
                hint="Name the model of that server which writes the summaries.",
                id="chatapp.E008",
            )
        )
    return found


def _server(name: str, address: str, key: str) -> Found:
    if not address:
        return []
    parts = _split(address)
    if (
        parts is None
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.username is not None
    ):
        # The address is not quoted, since it may hold a password.
        return [
            checks.Error(
                f"{name}_BASE_URL must be an http or https address, without name and password.",
                hint=f"As in https://api.openai.com/v1; the key goes into {name}_API_KEY.",
                id="chatapp.E004",
            )
        ]
    if not key and parts.scheme == "https" and parts.hostname not in LOOPBACK:
        return [
            checks.Warning(
                f"{name}_BASE_URL is another computer and {name}_API_KEY is not set.",
                hint="Set a key; if the server needs none, any word will do.",
                id="chatapp.W003",
            )
        ]
    return []


@checks.register()
def activity_log(app_configs: Apps, **_: Any) -> Found:
    """E005: a log that cannot be written is reported now, not at the first reply."""
    if not settings.ACTIVITY_LOG_DIR:
        return []
    folder = Path(settings.ACTIVITY_LOG_DIR)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return []
    return [
        checks.Error(
            "ACTIVITY_LOG_DIR cannot be written.",
            hint="Choose another folder, or leave it empty to keep no log.",
            id="chatapp.E005",
        )
    ]


@checks.register()
def processes(app_configs: Apps, **_: Any) -> Found:
    """E006, W001: the requirements of several processes."""
    address = settings.REDIS_URL
    if not address:
        return []
    parts = _split(address)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        return [
            checks.Error(
                "REDIS_URL does not begin with redis://, rediss:// or unix://.",
                id="chatapp.E006",
            )
        ]
    if settings.DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
        return [
            checks.Warning(
                "REDIS_URL is for several processes, but one SQLite file serves these badly.",
                hint="Set DATABASE_URL to a PostgreSQL, or leave REDIS_URL empty.",
                id="chatapp.W001",
            )
        ]
    return []


@checks.register(checks.Tags.security)
def debug(app_configs: Apps, **_: Any) -> Found:
    """W002: the error pages of DEBUG show settings and code to everybody."""
    hosts = {(parts.hostname if (parts := _split(o)) else "") for o in settings.ALLOWED_ORIGINS}
    if not settings.DEBUG or hosts <= LOOPBACK:
        return []
    return [
        checks.Warning("DEBUG is on and others can reach this chat.", id="chatapp.W002"),
    ]


@checks.register()
def threshold(app_configs: Apps, **_: Any) -> Found:
    """W004: a threshold is not clamped silently."""
    given = environment.share("COMPRESSION_THRESHOLD", defaults.THRESHOLD, low=-inf, high=inf)
    used = defaults.clamped(given)
    if given == used:
        return []
    return [
        checks.Warning(
            f"COMPRESSION_THRESHOLD is {given:g}, which is too {'low' if given < used else 'high'}"
            f": {used:g} is used.",
            hint="It is a share from "
            f"{defaults.LOWEST_THRESHOLD:g} to {defaults.HIGHEST_THRESHOLD:g}.",
            id="chatapp.W004",
        )
    ]


@checks.register(checks.Tags.security)
def private_files(app_configs: Apps, **_: Any) -> Found:
    """W005: each start makes our files private, except those of other users."""
    paths = [str(path) for path in open_to_others(settings.VAR_DIR, settings.DATABASE_FILE)]
    if not paths:
        return []
    return [
        checks.Warning(
            f"Others on this computer can read {', '.join(paths[:3])}"
            f"{' and more' if len(paths) > 3 else ''}.",
            hint="These files belong to another user, who must run chmod go= on them.",
            id="chatapp.W005",
        )
    ]
