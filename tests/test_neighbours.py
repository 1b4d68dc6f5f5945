"""The benchmark of neighbours measures what it says, tried in small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks import neighbours


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_every_culprit_is_at_work_beside_its_neighbours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when: the import's contract changes, a culprit is refused, or nobody is measured."""
    await neighbours.measure(tmp_path, neighbours.Size(megabytes=0.5, seconds=1.0))
    printed = capsys.readouterr().out
    for what in ("import", "search", "forms", "streams", "render"):
        for name in ("page", "send"):
            row = re.search(rf"^{what} +{name} n +(\d+) .*p99 ≤ 300 \w+$", printed, re.MULTILINE)
            assert row is not None, printed
            assert int(row[1]) >= neighbours.NEIGHBOURS
    assert re.search(r"finished in \d+ s: \{'imported': 13, .*'messages': 520\}", printed)
    assert re.search(r"answers: \d+ × 413; peak", printed), "a form was taken"
    assert "s from SIGTERM" in printed
