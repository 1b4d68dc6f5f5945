"""Streaming against controls in the same run: delay to the first token, many streams, many
beginnings, CPU, memory.

The controls are the model server asked directly, and a bare relay on Channels and Daphne with the
openai SDK's objects (``relay sdk``) and without (``relay raw``). Absolute figures depend on the
machine and on what else it does; ratios of one run less so.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.benchmarks._processes import (
    Viewers,
    announced,
    cpu_seconds,
    keep_to,
    resident_bytes,
    seconds_to_serve,
    sessions,
)
from tests.servers import ROOT, start_server

RELAYS = ("relay sdk", "relay raw")
# streams, model (tokens-at-rate): 20 for the CPU, 100 and 200 for the throughput.
LOADS = ((20, "300-at-50"), (100, "500-at-50"), (200, "900-at-50"))
PAGES = 200
# Sends within one second, and what is sent: their beginnings are measured, and the replies go on.
BEGINNINGS, BEGUN_MODEL = (100, 200), "300-at-50"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: what was reached, what is to be reached, and the controls."""

    what: str
    unit: str
    ours: float
    most: float | None = None
    least: float | None = None
    controls: dict[str, float]
    most_times: tuple[float, str] | None = None
    """So many times what this control reached, at most."""

    @property
    def reached(self) -> bool:
        """Whether the figure is good enough."""
        high = self.most is None or self.ours <= self.most
        if self.most_times is not None:
            times, control = self.most_times
            high = high and self.ours <= times * self.controls[control]
        return high and (self.least is None or self.ours >= self.least)

    @property
    def goal(self) -> str:
        """What is to be reached."""
        goals = [f"≤ {self.most:g}"] if self.most is not None else []
        goals += [f"≥ {self.least:g}"] if self.least is not None else []
        goals += [f"≤ {self.most_times[0]:g} × {self.most_times[1]}"] if self.most_times else []
        return ", ".join(goals)

    def __str__(self) -> str:
        controls = ", ".join(
            f"{name} {value:.3g} (× {self.ours / value:.2f})" if value else f"{name} {value:.3g}"
            for name, value in self.controls.items()
        )
        mark = "reached" if self.reached else "MISSED"
        return f"{self.what:46} {self.ours:9.4g} {self.unit:9} {self.goal:23} {mark:8} {controls}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server under load."""

    name: str
    pid: int
    address: dict[str, Any]


def main() -> int:
    """On SQLite, with the bus in the process."""
    return measure()


def measure(**environment: str) -> int:
    """Print one row a figure; 0 when all are reached. Takes about five minutes.

    ``environment`` is added to the server's.
    """
    print("Absolute figures are noisy: compare them with the controls of the same run (×).")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(announced("tests.benchmarks._upstream"))
        model_server = f"{upstream}/v1"
        targets = []
        for name in RELAYS:
            base, pid = stack.enter_context(
                announced(
                    "tests.benchmarks._relay",
                    name.split()[1],
                    env={"OPENAI_BASE_URL": model_server},
                    server=True,
                )
            )
            targets.append(Target(name=name, pid=pid, address={"base": base}))
        served = {"OPENAI_BASE_URL": model_server, "CHAT_MODEL": "20-at-0", **environment}
        server = start_server(folder, **served)  # type: ignore[arg-type]
        stack.callback(server.kill)
        address = {"base": server.base_url, "sessions": sessions(server)}
        keep_to(server.process.pid, server=True)
        ours = Target(name="ours", pid=server.process.pid, address=address)
        viewers = stack.enter_context(Viewers())
        reached = True
        starts = [seconds_to_serve(server) for _ in range(3)]
        for row in _rows(viewers, ours, targets, upstream, min(starts)):
            print(row, flush=True)
            reached = reached and row.reached
    return 0 if reached else 1


def _rows(
    viewers: Viewers, ours: Target, relays: list[Target], upstream: str, start: float
) -> Iterator[Row]:
    yield from _memory(viewers, ours, relays)
    yield Row(what="start", unit="s", ours=start, most=1.5, controls={})
    yield from _installed()
    targets = [*relays, ours]
    first = viewers.do(
        kind="first",
        model="20-at-0",
        turns=30,
        upstream=upstream,
        targets={one.name: one.address for one in targets},
    )
    added = first["added"]
    yield Row(
        what="added time to first token",
        unit="ms",
        ours=added.pop("ours"),
        most_times=(1.2, "relay sdk"),
        controls={"upstream alone": first["direct"], **added},
    )
    for count, model in LOADS:
        measured = {one.name: _stream(viewers, one, count, model) for one in targets}
        yield from _load_rows(count, model, measured)
    for count in BEGINNINGS:
        begun = {
            one.name: viewers.do(
                kind="beginnings", model=BEGUN_MODEL, count=count, target=one.address
            )
            for one in targets
        }
        for key in ("p50", "p99"):
            yield Row(
                what=f"{count} sends within a second: first token, {key}",
                unit="ms",
                ours=begun["ours"][key],
                most_times=(1.0, "relay sdk"),
                controls={name: begun[name][key] for name in RELAYS},
            )


def _load_rows(count: int, model: str, measured: dict[str, dict[str, float]]) -> Iterator[Row]:
    def row(key: str, what: str, unit: str, **goal: Any) -> Row:
        controls = {name: measured[name][key] for name in RELAYS}
        return Row(
            what=f"{count} streams: {what}",
            unit=unit,
            ours=measured["ours"][key],
            controls=controls,
            **goal,
        )

    if count == LOADS[0][0]:
        yield row("cpu", "CPU a 1,000 tokens", "s", most_times=(0.5, "relay sdk"))
        return
    rate = count * int(model.rpartition("-")[2])
    # Half a percent: the window's ends cut a token off here and there.
    yield row("rate", f"of {rate} tokens a second", "tokens/s", least=rate * 0.995)
    if count == 100:
        yield row("p99", "p99 delay of a token", "ms", most=120)
        yield row("cpu", "CPU a 1,000 tokens", "s", most_times=(0.6, "relay sdk"))
    else:
        yield row("p99", "p99 delay of a token", "ms", most=200, most_times=(1.5, "relay raw"))
        yield row("cpu", "CPU a 1,000 tokens", "s", most=0.12)


def _stream(viewers: Viewers, target: Target, count: int, model: str) -> dict[str, float]:
    viewers.begin(kind="streams", model=model, count=count, target=target.address)
    assert viewers.line() == "ready"
    before = cpu_seconds(target.pid)
    result: dict[str, float] = json.loads(viewers.line())
    result["cpu"] = (cpu_seconds(target.pid) - before) / result["tokens"] * 1000
    return result


def _memory(viewers: Viewers, ours: Target, relays: list[Target]) -> Iterator[Row]:
    bare = relays[-1]
    # The list of models is asked for at the start; what that needs is part of being idle.
    time.sleep(2)
    idle = {one.pid: resident_bytes(one.pid) for one in (bare, ours)}
    yield Row(
        what="memory, idle",
        unit="MB",
        ours=idle[ours.pid] / 1e6,
        most=120,
        most_times=(1.2, bare.name),
        controls={bare.name: idle[bare.pid] / 1e6},
    )
    grown = {}
    for one in (bare, ours):
        # The first pages load templates and open connections.
        viewers.do(kind="pages", model="20-at-0", count=20, target=one.address)
        before = resident_bytes(one.pid)
        viewers.do(kind="pages", model="20-at-0", count=PAGES, target=one.address)
        grown[one.name] = (resident_bytes(one.pid) - before) / (PAGES - 20) / 1000
    yield Row(
        what="memory, each open page",
        unit="kB",
        ours=grown["ours"],
        most=45,
        controls={bare.name: grown[bare.name]},
    )


def _installed() -> Iterator[Row]:
    """Packages of the lock file that are for this platform, and the size of their files."""
    names = re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    size, present = 0, 0
    for name in names:
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            # For another platform.
            continue
        present += 1
        paths = (Path(str(one.locate())) for one in files)
        size += sum(path.stat().st_size for path in paths if path.is_file())
    yield Row(what="installed packages", unit="", ours=present, most=85, controls={})
    yield Row(what="installed size", unit="MB", ours=size / 1e6, most=230, controls={})
