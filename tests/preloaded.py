"""What every server imports before it reads its settings, imported once for all of them.

A program that starts spends most of its time on this; :mod:`tests.forks` makes servers as forks of
a process that has done it. Nothing of it may read settings or begin an event loop.
"""

from __future__ import annotations

import gc
import importlib

MODULES = (
    "aiohttp",
    "autobahn.websocket.protocol",
    # Of ours, what six modules import that know no settings: half of all.
    "chatapp.context.possible_steps",
    "chatapp.live.viewer",
    "chatapp.llm.catalogue",
    "chatapp.llm.servers.making",
    "chatapp.tools.mcp.stdio",
    "channels.generic.websocket",
    "compression.judging.judge",
    "compression.summarizer",
    "compression.summarizers.folding",
    "csp.middleware",
    "cryptography.fernet",
    "django.contrib.admin.utils",
    "django.contrib.admin.widgets",
    "django.core.asgi",
    "django.core.management",
    "django.core.serializers.json",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.forms.models",
    "django.template.loader",
    "django.views.generic",
    "django_htmx.middleware",
    "docutils.utils.math.latex2mathml",
    "httpx2",
    "jsonschema",
    "markdown_it",
    "nh3",
    "openai",
    "psycopg",
    "pygments.lexers",
    "regex",
    "tiktoken",
    "twisted.web.http",
    "uvloop",
    "whitenoise.middleware",
)


def preload() -> None:
    """Import all of them, and keep them out of the forks' garbage collection."""
    gc.disable()
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    gc.enable()


preload()
