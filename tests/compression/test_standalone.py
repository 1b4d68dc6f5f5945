"""Compression in another project: taken in by its README, and keeping its contract there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ROOT

README = ROOT / "compression" / "README.md"
HOST = ROOT / "tests" / "standalone"
PLACES = {
    "settings.py": HOST / "settings.py",
    "models.py": HOST / "letters" / "models.py",
    "compressing.py": HOST / "letters" / "compressing.py",
    "admin.py": HOST / "letters" / "admin.py",
}
MOST_LINES = 40


def blocks() -> dict[str, list[str]]:
    """The README's pieces of code by the file that they belong to, blank lines left out."""
    found = re.findall(r"```python\n# (\S+)\n(.*?)```", README.read_text(), re.DOTALL)
    return {name: [line for line in text.splitlines() if line.strip()] for name, text in found}


def django(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.standalone.settings",
        "STANDALONE_FOLDER": str(tmp_path),
    }
    environment.pop("DATABASE_URL", None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "django", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("name", list(PLACES))
def test_the_second_host_does_what_the_readme_says(name: str) -> None:
    lines = [line for line in PLACES[name].read_text().splitlines() if line.strip()]
    wanted = blocks()[name]
    rest = iter(lines)
    # Each line of the README's is in the host's file, in this order.
    assert [line for line in wanted if line not in rest] == []


def test_that_is_less_than_40_lines() -> None:
    assert set(blocks()) == set(PLACES)
    assert sum(len(lines) for lines in blocks().values()) < MOST_LINES


def test_the_contract_holds_in_the_second_host(tmp_path: Path) -> None:
    """Breaks when: compression names anything of the chat's models, or of its settings."""
    done = django(tmp_path, "test", "tests.standalone", "-p", "contract.py")
    assert done.returncode == 0, done.stderr[-4000:]
    ran = re.search(r"Ran (\d+) tests", done.stderr)
    assert ran is not None
    assert int(ran[1]) >= 13


def test_its_migrations_are_its_own_and_complete(tmp_path: Path) -> None:
    done = django(tmp_path, "makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (ROOT / "compression" / "migrations").exists()


def test_no_module_of_the_chat_is_loaded_there(tmp_path: Path) -> None:
    code = (
        "import django, sys; django.setup();"
        "import compression.contract, tests.standalone.letters.admin;"
        "print([m for m in sys.modules"
        " if m.split('.')[0] in {'chatapp', 'channels', 'openai', 'httpx', 'httpx2'}])"
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.standalone.settings",
        "STANDALONE_FOLDER": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
