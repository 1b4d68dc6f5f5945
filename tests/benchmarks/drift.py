"""What is left of 40 facts and 10 rules after 20 compressions, by the quality of the summariser.

Then what is left of the paths, commands, names, figures and decisions of conversations with tools:
the project's own, or those under the folder that ``DATA`` names, one after another.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from tests.benchmarks import _survival
from tests.benchmarks._host import Host
from tests.benchmarks._models import EMPTY, FORGED, QUALITIES, fact, prose, rule, summarizer
from tests.benchmarks._plot import Panel, write
from tests.benchmarks._trajectories import trajectories

WINDOW = 16_384
COMPRESSIONS = 20
FACTS, RULES = 40, 10
PLOT = Path("var/benchmarks/drift.png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One summariser's state after one compression."""

    facts: int
    """Planted below the boundary and found in the summary."""
    facts_planted: int
    rules: int
    rules_planted: int
    forged: int
    """Things in the summary that nobody said."""
    tokens: int
    """Calibrated tokens of the summary as it is sent."""
    usage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One summariser's whole way ("extract": none)."""

    points: list[Point]
    refused: int
    """Drafts of the model that were not applied."""
    filled: int
    """Lines that code filled into thin drafts."""


async def run(quality: str) -> Run:
    """The conversation as this summariser compresses it."""
    chance = random.Random(11)
    host = Host(
        window=WINDOW, summarizer=None if quality == "extract" else summarizer(quality, WINDOW)
    )
    facts = [fact(number) for number in range(FACTS)]
    rules = [rule(number) for number in range(RULES)]
    planted: dict[str, int] = {}
    # Code or rule: the seq at which it was said.
    points: list[Point] = []
    while len(points) < COMPRESSIONS:
        said = [prose(60, chance)]
        due = len(points) + 1
        # Two facts a compression, and a rule every other one, at the first chance.
        for sentence, code in facts[: 2 * due]:
            if code not in planted and len(said) < 3:
                said.append(sentence)
                planted[code] = len(host.messages) + 1
        for one in rules[: (due + 1) // 2]:
            if one not in planted and len(said) < 3:
                said.append(one)
                planted[one] = len(host.messages) + 1
        chance.shuffle(said)
        host.say("user", " ".join(said))
        before = host.version
        await host.fitted()
        host.say("assistant", prose(420, chance))
        if host.version > before:
            points.append(_point(host, planted, [code for _, code in facts], rules))
    return Run(points=points, refused=host.refused, filled=host.filled)


def _point(host: Host, planted: dict[str, int], codes: list[str], rules: list[str]) -> Point:
    old = {what for what, seq in planted.items() if seq <= host.boundary}
    built, _, _ = host.request()
    system = str(built.messages[0]["content"])
    return Point(
        facts=sum(code in system for code in codes if code in old),
        facts_planted=sum(code in old for code in codes),
        rules=sum(one in system for one in rules if one in old),
        rules_planted=sum(one in old for one in rules),
        forged=system.count(FORGED),
        tokens=built.usage.summary,
        usage=built.usage.share,
    )


def _table(results: dict[str, Run]) -> None:
    names = list(results)
    print("facts and rules in the summary of those said, then its tokens, after each compression")
    print("   " + "".join(f"{name:>20}" for name in names))
    for number in range(COMPRESSIONS):
        cells = []
        for name in names:
            one = results[name].points[number]
            shares = f"{one.facts}/{one.facts_planted} {one.rules}/{one.rules_planted}"
            cells.append(f"{shares} {one.tokens:>5}")
        print(f"{number + 1:>2} " + "".join(f"{cell:>20}" for cell in cells))
    print(
        "refused drafts: "
        + ", ".join(f"{name} {results[name].refused} of {COMPRESSIONS}" for name in names)
    )
    print("lines filled by code: " + ", ".join(f"{name} {results[name].filled}" for name in names))
    forged = {name: sum(one.forged for one in results[name].points) for name in names}
    print("things nobody said: " + ", ".join(f"{name} {forged[name]}" for name in names))


def _plot(results: dict[str, Run]) -> None:
    def panel(title: str, value: Callable[[Point], float], top: float) -> Panel:
        lines = {name: [value(one) for one in run.points] for name, run in results.items()}
        return Panel(title=title, lines=lines, top=top)

    panels = [
        panel(f"facts in the summary, of {FACTS}", lambda one: one.facts, FACTS),
        panel(f"rules in force, of {RULES}", lambda one: one.rules, RULES),
        panel("tokens of the summary", lambda one: one.tokens, 2000),
    ]
    write(PLOT, panels)
    print(f"plot: {PLOT}")


def main() -> int:
    """0 when nothing invented or empty came in and no rule was lost, by a model of any quality."""
    results = {name: asyncio.run(run(name)) for name in ("extract", *QUALITIES, *EMPTY)}
    _table(results)
    _plot(results)
    _survival.table(_survival.measured(list(chain.from_iterable(trajectories()))))
    bad = []
    for name, one in results.items():
        points, last = one.points, one.points[-1]
        if any(point.forged for point in points):
            bad.append(f"{name}: something that nobody said is in the summary")
        if last.rules < last.rules_planted:
            bad.append(f"{name}: {last.rules_planted - last.rules} rules were lost")
        if any(b.rules < a.rules for a, b in pairwise(points)):
            bad.append(f"{name}: a rule that stood was dropped")
    if results["perfect"].points[-1].facts < FACTS - 2:
        bad.append("perfect: facts were lost")
    kept = results["extract"].points
    for name in EMPTY:
        if results[name].refused < COMPRESSIONS:
            bad.append(f"{name}: a summary that says nothing was applied")
        pairs = zip(results[name].points, kept, strict=True)
        if any(one.facts < plain.facts for one, plain in pairs):
            bad.append(f"{name}: fewer facts are kept than by the extract")
    print(
        "\n".join(bad)
        or "No rule was lost, nothing was invented, and no empty summary was applied."
    )
    return 1 if bad else 0
