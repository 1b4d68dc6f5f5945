"""A second process beside the first, on PostgreSQL and Redis: what the same streams cost then.

The cores of one computer also run the model server, the viewers and the database, so that two
processes cannot show twice the tokens there. What shows it is the CPU of all processes of the chat
for the same tokens: if two together need no more than one, each with a core of its own carries as
much as one alone.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks._processes import Viewers, announced, cpu_seconds, keep_to, sessions
from tests.servers import RunningServer, start_server
from tests.services import postgres, redis

STREAMS, MODEL, ROUNDS = 100, "500-at-50", 3
LEAST = 1.8


def main() -> int:
    """Print what one process and two need, and how much two carry; 0 if that is enough."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(announced("tests.benchmarks._upstream"))
        environment = {
            "DATABASE_URL": stack.enter_context(postgres()),
            "REDIS_URL": stack.enter_context(redis()),
            "OPENAI_BASE_URL": f"{upstream}/v1",
            "CHAT_MODEL": MODEL,
        }
        servers = [_started(stack, folder, environment, prepare=one == 0) for one in range(2)]
        keys = sessions(servers[0])
        viewers = [stack.enter_context(Viewers()) for _ in servers]
        needed: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for number, figures in needed.items():
                figures.append(_cpu(viewers[:number], servers[:number], keys))
    alone, both = min(needed[1]), min(needed[2])
    carries = 2 * alone / both
    print(f"CPU for 1,000 tokens, {STREAMS} streams, PostgreSQL and Redis")
    print(f"  one process    {alone:.3f} s")
    print(f"  two processes  {both:.3f} s, × {both / alone:.2f}")
    mark = "reached" if carries >= LEAST else "MISSED"
    print(f"two, with a core each, carry × {carries:.2f} of what one does  ≥ {LEAST} {mark}")
    return 0 if carries >= LEAST else 1


def _started(
    stack: ExitStack, folder: Path, environment: dict[str, str], *, prepare: bool
) -> RunningServer:
    server = start_server(folder, prepare=prepare, **environment)  # type: ignore[arg-type]
    stack.callback(server.kill)
    keep_to(server.process.pid, server=True)
    return server


def _cpu(viewers: list[Viewers], servers: list[RunningServer], keys: list[str]) -> float:
    """CPU seconds of these servers for 1,000 tokens, the streams spread evenly over them."""
    share = len(keys) // len(servers)
    for number, (viewer, server) in enumerate(zip(viewers, servers, strict=True)):
        own = keys[number * share : (number + 1) * share]
        address: dict[str, Any] = {"base": server.base_url, "sessions": own}
        viewer.begin(kind="streams", model=MODEL, count=STREAMS // len(servers), target=address)
    for viewer in viewers:
        assert viewer.line() == "ready"
    before = sum(cpu_seconds(one.process.pid) for one in servers)
    tokens = sum(json.loads(viewer.line())["tokens"] for viewer in viewers)
    spent = sum(cpu_seconds(one.process.pid) for one in servers) - before
    return float(spent / tokens * 1000)
