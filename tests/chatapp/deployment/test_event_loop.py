"""What a serving process runs on, and what it does not load before anything needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ROOT, server_environment

# As ``manage.py serve`` begins, then what a process with a model server imports.
_BEGUN = """
import json, sys
from chatapp.deployment import event_loop
event_loop.install()
import django
django.setup()
import chatapp.asgi, chatapp.llm.openai_compatible.client, chatapp.management.commands.serve
import chatapp.urls
from twisted.internet import reactor
loop = type(reactor._asyncioEventloop).__module__.partition(".")[0]
print(json.dumps({"loop": loop, "loaded": sorted(sys.modules)}))
"""
#: Megabytes each: TLS, encryption, schemas of tools, mathematics, the ruler, prices, tool servers,
#: a terminal's colours, another protocol over websockets.
RARE = (
    "OpenSSL",
    "cryptography",
    "jsonschema",
    "docutils",
    "tiktoken",
    "genai_prices",
    "mcp",
    "click",
    "autobahn.wamp.message",
)


@pytest.mark.skipif(sys.platform == "win32", reason="There is no uvloop for Windows.")
def test_it_serves_on_uvloop_without_what_few_need(tmp_path: Path) -> None:
    """Breaks when: a module that everybody needs imports one of these as it is loaded itself, or
    Twisted's reactor is made before ours.
    """
    begun = subprocess.run(
        [sys.executable, "-c", _BEGUN],
        cwd=ROOT,
        env=server_environment(tmp_path, 8000),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(begun.stdout)
    assert told["loop"] == "uvloop"
    assert set(RARE).isdisjoint(told["loaded"])
