"""The lines of a log's files, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Every line of every file, in the order of time; each must be valid by itself."""
    lines: list[dict[str, Any]] = [
        json.loads(line)
        for path in sorted(folder.glob("*/*.jsonl"))
        for line in path.read_bytes().split(b"\n")
        if line
    ]
    return sorted(lines, key=lambda line: str(line.get("timestamp")))
