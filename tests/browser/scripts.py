"""What the model server is told to say, as ``tests.fake_scripts.from_json`` reads it."""

from __future__ import annotations

import json
from typing import Any

# Longer than any test waits: who uses it stops the reply.
FOR_EVER = 120
_END: list[dict[str, Any]] = [{"finish": "stop"}, {"usage": {}}, {"done": None}]

MARKDOWN = """A list:

- one
- **two**

| name | count |
| --- | ---: |
| a | 1 |

```python
print("hello")
```

And a last line."""


def pausing(*texts: str, seconds: float) -> dict[str, Any]:
    """A reply with a pause after each of its parts but the last."""
    steps: list[dict[str, Any]] = []
    for text in texts:
        steps += [{"text": text}, {"delay": seconds}]
    return {"steps": [*steps[:-1], *_END]}


def unending(text: str) -> dict[str, Any]:
    """A reply that begins and does not go on."""
    return {"steps": [{"text": text}, {"delay": FOR_EVER}]}


def summary(rule: str, *, seconds: float) -> dict[str, Any]:
    """A summary with one rule of message 1, written in two parts with a pause between them."""
    first, second = _halves(rule)
    return pausing(first, second, seconds=seconds)


def summing_up(*, seconds: float) -> dict[str, Any]:
    """A summary of whatever messages are asked about, with a pause in its middle."""
    return {"steps": [{"summary": 1}, {"delay": seconds}, {"summary": 2}, *_END]}


def held(first: str, second: str) -> dict[str, Any]:
    """A reply whose second part waits for ``release()``."""
    return {"steps": [{"text": first}, {"wait": None}, {"text": second}, *_END]}


def held_summary(rule: str) -> dict[str, Any]:
    """The next summary that is asked for, whose second part waits for ``release()``."""
    return {"for": "summaries", **held(*_halves(rule))}


def _halves(rule: str) -> tuple[str, str]:
    delta = {
        "narrative": "The user named prices and the assistant answered.",
        "add": [{"section": "constraints", "text": rule, "sources": [1]}],
        "resolve": [],
        "supersede": [],
        "lift": [],
    }
    text = json.dumps(delta)
    half = len(text) // 2
    return text[:half], text[half:]


#: A model that calls the tool of a server, and what sets that server up and takes it away.
WRITES = {
    "steps": [
        {"tool": {"name": "tests__write", "arguments": '{"text": "Buy milk"}'}},
        {"finish": "tool_calls"},
        {"done": True},
    ]
}
SET_UP = """
from asgiref.sync import async_to_sync
from chatapp import wiring
from chatapp.conversations.tools import definitions
from chatapp.conversations.tools.servers import access_to
from chatapp.models import ToolServer
row = ToolServer.objects.create(name="tests", address="{address}", private_addresses=True,
    everyone=True, on_by_default=True)
assert async_to_sync(wiring.mcp_tools().read)(access_to(row)) == ""
definitions.approve(row.pk, dict(row.definitions.values_list("name", "reported_sha256")), "root")
"""
TAKE_AWAY = "from chatapp.models import ToolServer; ToolServer.objects.all().delete()"
