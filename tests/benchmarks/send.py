"""One send, part by part: from the first byte of the POST to the first piece at the viewer.

Each part's time, CPU of the whole process, and SQL statements, as medians over many sends, one
after the other; the model server answers at once. A second server is sampled, and the stacks are
kept in ``var/benchmarks/send.folded``, as every tool for flame graphs reads them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks._processes import Viewers, announced, keep_to, sessions
from tests.servers import ROOT, RunningServer, start_server

FOLDED = ROOT / "var" / "benchmarks" / "send.folded"
SENDS, SAMPLED = 50, 100
#: First sends, which fill caches and open connections.
WARMING = 5
MODEL = "20-at-0"
#: Statements from the first byte of a send to its first piece. Counted, so that load is no matter.
MOST_STATEMENTS = 10


def main() -> int:
    """Print one row a part; 0 when there are no more statements than there may be."""
    print("Medians; CPU is the whole process's. The machine must be quiet for the times to count.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(announced("tests.benchmarks._upstream"))
        server = start_server(folder, OPENAI_BASE_URL=f"{upstream}/v1", CHAT_MODEL=MODEL)
        stack.callback(server.kill)
        keys = sessions(server)
        traced = folder / "sends"
        _send(server, upstream, keys, traced, "table", SENDS)
        _send(server, upstream, keys, folder / "stacks", "flame", SAMPLED)
        FOLDED.parent.mkdir(parents=True, exist_ok=True)
        FOLDED.write_text((folder / "stacks").read_text())
        sends = [json.loads(line) for line in traced.read_text().splitlines()]
    statements = _print(sends[WARMING:])
    print(f"{FOLDED.relative_to(ROOT)}: the stacks, for a flame graph.")
    return 0 if statements <= MOST_STATEMENTS else 1


def _send(
    server: RunningServer, upstream: str, keys: list[str], file: Path, kind: str, count: int
) -> None:
    """Send messages to a traced server on the same database."""
    command = ("serve", "--no-prepare", "--port", str(server.port))
    server.process.kill()
    server.process.wait()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks._traced", str(file), kind, *command],
        cwd=ROOT,
        env=server.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Serving on")
            keep_to(process.pid, server=True)
            target = {"base": server.base_url, "sessions": keys}
            with Viewers() as viewers:
                viewers.do(
                    kind="first",
                    model=MODEL,
                    turns=count,
                    pause=0.2,
                    upstream=upstream,
                    targets={"ours": target},
                )
        finally:
            process.kill()


def _print(sends: list[list[dict[str, Any]]]) -> int:
    """The table. Returns the statements of one send."""
    print(f"{'part':40} {'ms':>7} {'CPU ms':>7} {'statements':>10}")
    totals = {"ms": 0.0, "cpu": 0.0, "statements": 0.0}
    for parts in zip(*sends, strict=True):
        row = {key: statistics.median(part[key] for part in parts) for key in totals}
        totals = {key: total + row[key] for key, total in totals.items()}
        print(_row(parts[0]["part"], row))
    print(_row(f"together, median of {len(sends)} sends", totals))
    return int(totals["statements"])


def _row(name: str, row: dict[str, float]) -> str:
    return f"{name:40} {row['ms']:7.2f} {row['cpu']:7.2f} {row['statements']:10.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
