"""Compression in another project: added as docs/compression.md says, keeping its contract there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from compression import services
from tests.documents import COMPRESSION, blocks
from tests.servers import ROOT

HOST = ROOT / "tests" / "standalone"
PLACES = {
    "settings.py": HOST / "settings.py",
    "models.py": HOST / "letters" / "models.py",
    "asking.py": HOST / "letters" / "asking.py",
    "masks.py": HOST / "letters" / "masks.py",
    "compressing.py": HOST / "letters" / "compressing.py",
    "answering.py": HOST / "letters" / "answering.py",
    "recalling.py": HOST / "letters" / "recalling.py",
    "admin.py": HOST / "letters" / "admin.py",
}
FIRST_LINES = {f"# {name}" for name in PLACES}


def pieces() -> dict[str, str]:
    """The document's pieces of code by the file that they belong to."""
    found = [block.text.partition("\n") for block in blocks(COMPRESSION, "python")]
    return {first.removeprefix("# "): text for first, _, text in found if first in FIRST_LINES}


def steps() -> list[list[str]]:
    """The document's commands, without ``python``."""
    lines = [line for block in blocks(COMPRESSION, "sh") for line in block.text.splitlines()]
    assert all(line.startswith("python manage.py ") for line in lines)
    return [line.split()[1:] for line in lines]


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
def test_the_second_host_does_what_the_document_says(name: str) -> None:
    # The type checker is told more here than a host must tell it.
    text = PLACES[name].read_text().replace(": models.CharField[Role, Role]", "")
    lines = [line for line in text.splitlines() if line.strip()]
    wanted = [line for line in pieces()[name].splitlines() if line.strip()]
    rest = iter(lines)
    # Each line of the document's is in the host's file, in this order.
    assert [line for line in wanted if line not in rest] == []


def test_what_there_is_to_call_is_there() -> None:
    """Breaks when: a function of the services is renamed and the document has its old name."""
    table = (
        COMPRESSION.read_text("utf-8").partition("| call | what it does |")[2].partition("\n\n")[0]
    )
    first_cells = "".join(line.split(" | ")[0] for line in table.splitlines())
    names = re.findall(r"`(\w+)`", first_cells)
    assert len(names) > 8
    assert [name for name in names if not iscoroutinefunction(getattr(services, name, None))] == []


def test_copied_into_an_empty_project_it_works(tmp_path: Path) -> None:
    """The pieces as they stand there, and nothing else of the second host.

    Breaks when: an import or a field is left out, or what is called compresses at the wrong usage.
    """
    files = pieces()
    assert set(files) == set(PLACES)
    settings = (HOST / "settings.py").read_text().partition("INSTALLED_APPS += ")[0]
    settings = settings.replace("tests.standalone.letters", "letters")
    settings = settings.replace("tests.standalone.urls", "urls") + files.pop("settings.py")
    (tmp_path / "settings.py").write_text(settings)
    (tmp_path / "urls.py").write_text((HOST / "urls.py").read_text())
    (tmp_path / "trying.py").write_text((HOST / "trying.py").read_text())
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "__init__.py").write_text("")
    for name, text in files.items():
        (tmp_path / "letters" / name).write_text(text)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings",
        "STANDALONE_FOLDER": str(tmp_path),
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
    }
    shutil.copy(ROOT / "manage.py", tmp_path)
    for arguments in (*steps(), ["trying.py"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_contract_holds_in_the_second_host(tmp_path: Path) -> None:
    """Breaks when: compression names anything of the chat's models, or of its settings."""
    done = django(tmp_path, "test", "tests.standalone", "-p", "contract.py")
    assert done.returncode == 0, done.stderr[-4000:]
    ran = re.search(r"Ran (\d+) tests", done.stderr)
    assert ran is not None
    assert int(ran[1]) >= 15


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
