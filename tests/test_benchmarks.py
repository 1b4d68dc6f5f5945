"""A benchmark that takes minutes, in small: that it runs, and what it demands holds."""

from __future__ import annotations

import subprocess
import sys

from tests.test_architecture import ROOT


def test_a_long_compression_is_planned_and_told() -> None:
    """Breaks when: calls are not filled, a part begins untold, or a call is above its window."""
    command = [sys.executable, "-m", "tests.benchmarks.long_compression"]
    ran = subprocess.run(
        [*command, "--tokens", "12000", "--window", "4096"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "part 2 of " in ran.stdout
    assert " left" in ran.stdout
