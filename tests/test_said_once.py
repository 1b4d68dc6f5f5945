"""What the code says once: a second place that says it would one day say something else."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from compression.conf import CompressionSettings
from compression.planning import defaults
from tests.test_architecture import ROOT

SOURCES = sorted(
    path
    for folder, ending in (("chatapp", "py"), ("compression", "py"), ("templates", "html"))
    for path in (ROOT / folder).rglob(f"*.{ending}")
    if "migrations" not in path.parts
)
#: What it is: an expression that finds it, and the one file that has it.
SAID_ONCE = {
    "whether JSON is wanted": (
        r"""headers(\.get\(|\[)["']Accept["']""",
        "chatapp/views/answers.py",
    ),
    "the figures of the threshold": (
        r"""(?i)threshold\w*["']?(: float)?( = |, |\)?: \(float, )0\.[1-9]"""
        r"""|0\.\d+ <= (share|threshold)|(min|max)="0\.""",
        "compression/planning/defaults.py",
    ),
}


@pytest.mark.parametrize("what", SAID_ONCE)
def test_a_thing_is_said_once(what: str) -> None:
    """Breaks when: another module decides the same for itself, as five once did."""
    pattern, home = SAID_ONCE[what]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if re.search(pattern, path.read_text("utf-8"))
    ]
    assert found == [home], f"{what}: {found}"


def test_the_documents_name_the_defaults_that_there_are() -> None:
    """Breaks when: a default changes, and a table of the documents keeps the former one."""
    values = {
        field.name.upper(): getattr(defaults, field.name.upper())
        for field in fields(CompressionSettings)
        if field.name not in {"conversation", "summary", "prompts_dir"}
    }
    for name, tables in {
        "docs/compression.md": values,
        "docs/operations.md": {
            key if key == "TOOL_RESULT_MAX_LENGTH" else f"COMPRESSION_{key}": value
            for key, value in values.items()
            if not key.endswith("_SECONDS")
        },
        "README.md": {"COMPRESSION_THRESHOLD": defaults.THRESHOLD},
    }.items():
        rows = dict(re.findall(r"^\| `(\w+)` \| ([\w.]+)", (ROOT / name).read_text("utf-8"), re.M))
        said = {key: rows.get(key, "").lower() for key in tables}
        assert said == {
            key: f"{value:g}" if isinstance(value, float) else str(value).lower()
            for key, value in tables.items()
        }, name
