"""Who else may read what the program writes: nobody."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from chatapp.deployment.private_files import COMPANIONS, keep_private, open_to_others
from tests.servers import ROOT, RunningServer

OPEN_UMASK = 0o022


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """As most systems have it."""
    before = os.umask(OPEN_UMASK)
    yield
    os.umask(before)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """`var/` as an older version left it."""
    var = tmp_path / "var"
    (var / "activity").mkdir(parents=True)
    (var / "static" / "css").mkdir(parents=True)
    for companion in COMPANIONS:
        (var / f"chat.sqlite3{companion}").write_text("")
    (var / "activity" / "activity-2026-01-01.jsonl").write_text("{}")
    (var / "static" / "css" / "app.css").write_text("")
    (var / "secret_key").write_text("x")
    return var


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_n10_what_an_older_version_left_open_is_closed(older: Path) -> None:
    """N10: folders 0700, files 0600; the static files are everybody's anyway.

    Breaks when: a folder or a kind of file is left out.
    """
    keep_private(older, older / "chat.sqlite3")
    kept = [path for path in older.rglob("*") if "static" not in path.parts]
    assert len(kept) == len(COMPANIONS) + 3
    assert {mode(path) for path in kept if path.is_file()} == {0o600}
    assert {mode(path) for path in (older, *kept) if path.is_dir()} == {0o700}
    assert mode(older / "static" / "css" / "app.css") == 0o644


def test_what_is_written_from_then_on_is_closed(tmp_path: Path) -> None:
    """Breaks when: the umask is left as it was."""
    keep_private(tmp_path / "var", None)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_text("")
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "file")) == (0o700, 0o600)


def test_a_database_elsewhere_is_closed_and_its_folder_is_not(older: Path, tmp_path: Path) -> None:
    """Breaks when: only `var/` is looked at, or a shared folder is taken from the others."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "link").symlink_to(shared / "chat.sqlite3")
    for companion in COMPANIONS:
        (shared / f"chat.sqlite3{companion}").write_text("")
    (shared / "of somebody else").write_text("")
    keep_private(older, tmp_path / "link")
    assert {mode(shared / f"chat.sqlite3{companion}") for companion in COMPANIONS} == {0o600}
    assert (mode(shared), mode(shared / "of somebody else")) == (0o755, 0o644)


def test_where_a_link_leads_is_left_alone(older: Path, tmp_path: Path) -> None:
    """Breaks when: links in `var/` are followed."""
    (tmp_path / "elsewhere").write_text("")
    (older / "link").symlink_to(tmp_path / "elsewhere")
    keep_private(older, None)
    assert mode(tmp_path / "elsewhere") == 0o644


def test_what_stays_open_is_said(older: Path, settings: Settings) -> None:
    """Breaks when: the check does not look, or does not name the file."""
    settings.VAR_DIR, settings.DATABASE_FILE = older, older / "chat.sqlite3"
    found = [one for one in run_checks() if one.id == "chatapp.W005"]
    assert len(found) == 1
    assert str(older) in found[0].msg
    keep_private(older, older / "chat.sqlite3")
    assert not list(open_to_others(older, older / "chat.sqlite3"))
    assert [one for one in run_checks() if one.id == "chatapp.W005"] == []


def test_n10_a_server_writes_nothing_that_others_can_read(
    serve: Callable[..., RunningServer], tmp_path: Path
) -> None:
    """N10: the database, its log and its lock, whatever the umask that it was started with."""
    serve(fresh=True)
    written = {path.name: mode(path) for path in tmp_path.glob("server.sqlite3*")}
    assert {"server.sqlite3", "server.sqlite3-wal", "server.sqlite3-serving"} <= set(written)
    assert set(written.values()) == {0o600}


def test_the_unit_has_a_umask() -> None:
    unit = (ROOT / "chatapp" / "deployment" / "palimpsest@.service").read_text("utf-8")
    assert re.search(r"^UMask=0077$", unit, re.MULTILINE)


def test_the_key_is_on_no_command_line(tmp_path: Path) -> None:
    """`make run` hands it on in the environment, which no other user can read.

    Breaks when: a recipe gives it to `env`, or to any program, as an argument.
    """
    make = shutil.which("make")
    assert make is not None
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text("utf-8"))
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    for folder in ("static", "var"):
        (tmp_path / folder).mkdir()
    # Up to date, each newer than what it is made from.
    for name in ("requirements.txt", "requirements-bootstrap.txt", ".venv/uv", ".venv/run"):
        (tmp_path / name).write_text("")
    (tmp_path / "var" / "secret_key").write_text("the-key\n")
    note = f'echo "$0 $*" >> {tmp_path}/seen\n'
    (commands / "env").write_text(f'#!/bin/sh\n{note}exec /usr/bin/env "$@"\n')
    (commands / "python").write_text(f'#!/bin/sh\n{note}echo "$SECRET_KEY" >> {tmp_path}/given\n')
    for command in commands.iterdir():
        command.chmod(0o700)
    environment = {"PATH": f"{commands}:{os.environ['PATH']}"}
    subprocess.run([make, "run"], cwd=tmp_path, env=environment, check=True, timeout=30)
    assert set((tmp_path / "given").read_text().split()) == {"the-key"}
    assert "serve --port" in (tmp_path / "seen").read_text()
    assert "the-key" not in (tmp_path / "seen").read_text()
