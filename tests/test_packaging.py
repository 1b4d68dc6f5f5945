"""What is in the box: lock files, make's targets, and documents that tell the truth of both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from django.core.management import get_commands

from chatapp.management.commands.serve import Command as Serve
from compression.conf import CompressionSettings
from tests import documents
from tests.benchmarks.__main__ import cases
from tests.servers import ROOT

LOCKS = ("requirements-bootstrap.txt", "requirements.txt", "requirements-dev.txt")
README = documents.README.read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Package -> its version and its hashes. Fails at a line that is neither."""
    found: dict[str, tuple[str, list[str]]] = {}
    hashes: list[str] = []
    for line in (ROOT / name).read_text("utf-8").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pinned = re.match(r"([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==([^\s;\\]+)", line)
        if pinned:
            hashes = []
            # One package may be pinned several times, for several Pythons or systems.
            version, before = found.get(pinned[1], (pinned[2], []))
            found[pinned[1]] = (version, before + hashes)
            hashes = found[pinned[1]][1]
            continue
        digest = re.fullmatch(r"\s+--hash=sha256:([0-9a-f]{64})(?: \\)?", line)
        assert digest is not None, f"{name}: {line}"
        hashes.append(digest[1])
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_everything_is_pinned_and_hashed(name: str) -> None:
    packages = locked(name)
    assert packages
    assert [package for package, (_, hashes) in packages.items() if not hashes] == []


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_file_names_a_host(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


def _wanted(requirements: list[str]) -> set[str]:
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {name[0].lower() for name in names if name}


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    asked = _wanted(project["project"]["dependencies"])
    tools = _wanted(project["dependency-groups"]["dev"])
    assert asked <= set(locked("requirements.txt"))
    assert asked | tools <= set(locked("requirements-dev.txt"))
    assert not tools & set(locked("requirements.txt"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def test_s03_nothing_may_be_older_than_its_security_fixes() -> None:
    """S03: neither what the project asks for nor what the locks hold.

    Breaks when: a lower bound in pyproject.toml, or a version in a lock, is put below these.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = "\n".join(project["dependencies"])
    asked = dict(re.findall(r"^([a-z0-9-]+)[^>\n]*>=([\d.]+)", requirements, re.MULTILINE))
    assert len(asked) == len(project["dependencies"])
    fixed = {"django": "5.2.19", "channels": "4.3.2", "daphne": "4.2.3", "asgiref": "3.13"}
    assert [name for name in fixed if _numbers(asked[name]) < _numbers(fixed[name])] == []
    for lock in ("requirements.txt", "requirements-dev.txt"):
        held = {name: version for name, (version, _) in locked(lock).items()}
        assert [one for one in asked if _numbers(held[one]) < _numbers(asked[one])] == []


def test_testing_happens_with_what_is_served() -> None:
    tested = locked("requirements-dev.txt")
    different = {
        name: (version, tested.get(name))
        for name, (version, _) in locked("requirements.txt").items()
        if tested.get(name, ("", []))[0] != version
    }
    assert different == {}


def test_wheels_are_looked_for_on_every_python_that_is_named() -> None:
    """When the locks are made, since that needs the package index.

    Breaks when: `make lock` leaves out a Python of the classifiers, the oldest one or 3.14.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    oldest = project["requires-python"].removeprefix(">=")
    looked = re.search(r"^PYTHONS = (.*)$", MAKEFILE, re.MULTILINE)
    assert looked is not None
    assert {oldest, *named, "3.14"} <= set(looked[1].split())
    assert "for version in $(PYTHONS)" in MAKEFILE
    assert [version for version in looked[1].split() if version not in README] == []


def _targets() -> set[str]:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    return set(phony[1].split())


def test_every_target_says_what_it_does() -> None:
    make = shutil.which("make")
    assert make is not None
    done = subprocess.run(
        [make, "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    listed = dict(re.findall(r"^ +make ([a-z]+)\t(.+)$", done.stdout, re.MULTILINE))
    assert set(listed) == _targets()
    assert all(listed.values())


def test_what_is_quick_is_there_and_needs_nothing_else() -> None:
    """Breaks when: a folder that `make quick` names is moved, or a test in one needs a server."""
    made = re.search(r"^QUICK = (.*?)\n[A-Z]", MAKEFILE, re.MULTILINE | re.DOTALL)
    assert made is not None
    paths = [
        f"{folder}{name}"
        for prefixed in re.finditer(r"\$\(addprefix ([^,]+),([^)]*)\)|(tests/\S+)", made[1])
        for folder, names in [(prefixed[1] or "", prefixed[2] or prefixed[3])]
        for name in names.split()
    ]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    files = [one for path in paths for one in (ROOT / path, *(ROOT / path).rglob("test_*.py"))]
    sources = {one.name: one.read_text("utf-8") for one in files if one.suffix == ".py"}
    assert len(sources) > 50
    del sources[Path(__file__).name]
    needing = re.compile(r"from tests\.servers import .*\b(start_server|RunningServer)\b")
    assert [name for name, source in sources.items() if needing.search(source)] == []


def test_every_target_is_in_a_document() -> None:
    """Breaks when: a target is added and nobody is told what it is for."""
    told = documents.README.read_text("utf-8") + documents.CONTRIBUTING.read_text("utf-8")
    assert {target for target in _targets() if f"make {target}" not in told} == set()


def test_what_was_compiled_once_is_kept() -> None:
    """Where a container forbids it, the suite takes minutes longer.

    Breaks when: the Makefile hands PYTHONDONTWRITEBYTECODE on.
    """
    make = shutil.which("make")
    assert make is not None
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "ANOTHER": "1"}
    command = [make, "--no-print-directory", "--eval", "told: ; @env", "told"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert "ANOTHER" in names
    assert "PYTHONDONTWRITEBYTECODE" not in names


def test_every_management_command_is_in_the_operations() -> None:
    """Breaks when: a command is added without a row in the table of commands."""
    own = {name for name, app in get_commands().items() if app in {"chatapp", "compression"}}
    text = documents.OPERATIONS.read_text("utf-8")
    named = set(re.findall(r"^\| `\.venv/bin/python manage\.py ([a-z_]+)` \|", text, re.MULTILINE))
    assert own <= named


def test_every_setting_is_in_the_operations() -> None:
    """Breaks when: a setting is added or renamed without its row."""
    source = (ROOT / "chatapp" / "settings.py").read_text("utf-8")
    read = set(re.findall(r"environment\.\w+\(\s*\"([A-Z_]+)\"", source))
    assert set(documents.rows(documents.OPERATIONS)) == read


def test_the_settings_of_the_readme_are_those_of_the_operations() -> None:
    """With the same defaults, links aside.

    Breaks when: a default is changed in one of the two tables.
    """
    everything = documents.rows(documents.OPERATIONS)
    first = documents.rows(documents.README)
    assert len(first) > 5
    links = re.compile(r"\]\(.*?\)")
    different = {
        name: (cells[0], everything[name][0])
        for name, cells in first.items()
        if links.sub("]", cells[0]) != links.sub("]", everything[name][0])
    }
    assert different == {}


def test_the_settings_of_compression_are_as_they_are_written() -> None:
    """Breaks when: a key is added, or a default changed, without its row."""
    # What an empty one means is told after it.
    rows = {
        name: re.sub(r"^empty: .+", "empty", cells[0])
        for name, cells in documents.rows(documents.COMPRESSION).items()
    }
    defaults = {
        one.name.upper(): f"{one.default:g}" if one.type == "float" else str(one.default) or "empty"
        for one in fields(CompressionSettings)
        if one.default is not MISSING
    }
    assert rows == defaults


def test_the_readme_is_short() -> None:
    """Breaks when: what belongs into a document of its own is written there."""
    assert len(README.splitlines()) < 150


def test_every_error_is_listed_as_it_is() -> None:
    """Breaks when: an error is added or reworded without ``python -m tests.documents``."""
    assert documents.written_errors() == documents.errors_table()


def test_codes_of_errors_are_their_own() -> None:
    codes = re.findall(r"^\| `([a-z_]+)` \|", documents.errors_table(), re.MULTILINE)
    assert len(codes) == len(set(codes))


def test_a_benchmark_is_chosen_by_name() -> None:
    files = {path.stem for path in Path(ROOT / "tests" / "benchmarks").glob("*.py")}
    assert set(cases()) == {name for name in files if not name.startswith("_")}


def test_the_ci_runs_what_everybody_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o100
    text = script.read_text("utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert text.rstrip().endswith("make test")


def test_the_version_comes_from_one_place() -> None:
    """The program tells that of pyproject.toml, and the newest release of the changelog is it.

    Breaks when: a version is written anywhere else, or a release is noted without raising it.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert Serve().get_version() == f"Palimpsest {version}"
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = re.findall(r"^## \[(\d\S*)\]", changelog, re.MULTILINE)
    assert released[:1] in ([], [version])
    again = [
        path.relative_to(ROOT).as_posix()
        for folder in ("chatapp", "compression", "templates", "static", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".html", ".js", ".css", ".md"}
        and re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", path.read_text("utf-8"))
    ]
    assert again == []


def test_the_license_is_named() -> None:
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License")
