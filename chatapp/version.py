"""The program's version, which is defined only in pyproject.toml.

The program runs from its folder and is not installed as a package, so ``importlib.metadata`` does
not know it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

#: Three numbers, by the rules of Semantic Versioning.
VERSION: str = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["version"]
