"""The files of the log: names, sizes, several processes, and what a crash leaves."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chatapp.activity.files import LogFiles, Position
from chatapp.activity.lines import decoded, encoded
from tests.chatapp.activity.log_lines import lines_of

# A process that writes without end, so that it can be killed in the middle of a line.
WRITER = """
import sys
from chatapp.activity.files import LogFiles
files = LogFiles(sys.argv[1], 10**9)
line = b'{"call": "' + b"x" * 300_000 + b'"}\\n'
print("begun", flush=True)
while True:
    files.append("default", line)
"""
# A process that writes so many lines and ends.
COUNTED = """
import sys
from chatapp.activity.files import LogFiles
files = LogFiles(sys.argv[1], 20_000)
for number in range(200):
    files.append("default", b'{"call": "%s-%d"}\\n' % (sys.argv[2].encode(), number))
"""


def line(name: str, filling: int = 0) -> bytes:
    return encoded({"call": name, "filling": "x" * filling})


def test_a_file_is_named_by_its_time_and_a_full_one_is_followed_by_another(tmp_path: Path) -> None:
    """Breaks when: a line is put into a file that it makes larger than the limit."""
    files = LogFiles(str(tmp_path), 1_000)
    places = [files.append("Naïve / Project", line(str(n), 300)) for n in range(7)]
    assert len({at.file for at in places}) > 2
    for at in places:
        assert re.fullmatch(r"na_ve___project/\d{8}_\d{6}\.jsonl", at.file)
        assert (tmp_path / at.file).stat().st_size <= 1_000
        assert stat.S_IMODE((tmp_path / at.file).stat().st_mode) == 0o600
    assert [decoded(files.read(at) or b"") for at in places] == [
        {"call": str(n), "filling": "x" * 300} for n in range(7)
    ]
    # A line longer than the limit is written nevertheless.
    assert files.read(files.append("default", line("long", 5_000))) == line("long", 5_000)


def test_each_day_has_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that thirty days are kept and not thirty days more."""
    files = LogFiles(str(tmp_path), 10**6)
    first = files.append("default", line("a"))
    monkeypatch.setattr(LogFiles, "_is_of_before", staticmethod(lambda name: True))
    assert files.append("default", line("b")).file != first.file


def test_j03_two_processes_write_two_files_and_no_line_is_broken(tmp_path: Path) -> None:
    """Breaks when: a file is opened that another process has made (no ``O_EXCL``)."""
    running = [
        subprocess.Popen([sys.executable, "-c", COUNTED, str(tmp_path), name]) for name in "ab"
    ]
    assert [one.wait(60) for one in running] == [0, 0]
    found = lines_of(tmp_path)
    expected = {f"{name}-{number}" for name in "ab" for number in range(200)}
    assert {one["call"] for one in found} == expected
    assert len(found) == len(expected)
    for path in tmp_path.glob("*/*.jsonl"):
        assert len({one.split(b"-")[0] for one in path.read_bytes().splitlines()}) == 1


def test_j03_a_kill_in_mid_write_spoils_no_other_line(tmp_path: Path) -> None:
    """What the killed process left is half a line at the end of its file, or none.

    Breaks when: another process appends to that file.
    """
    running = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("*/*.jsonl")) and time.monotonic() < deadline:
        os.sched_yield()
    with running:
        running.kill()
    (left,) = tmp_path.glob("*/*.jsonl")
    # The kill may have come between two lines; then it is as if it had come a moment later.
    with left.open("ab") as file:
        file.write(b'{"call": "half')
    files = LogFiles(str(tmp_path), 10**9)
    at = files.append("default", line("after"))
    assert at.file != left.relative_to(tmp_path).as_posix()
    assert decoded(files.read(at) or b"") == {"call": "after", "filling": ""}
    name = left.relative_to(tmp_path).as_posix()
    assert all(decoded(raw) is not None for _, raw in files.lines(name, 0))
    assert decoded(b'{"call": "half') is None


def test_j03_a_file_that_is_moved_away_is_made_anew(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path), 10**6)
    first = files.append("default", line("a"))
    (tmp_path / first.file).rename(tmp_path / "elsewhere")
    second = files.append("default", line("b"))
    assert [one["call"] for one in lines_of(tmp_path)] == ["b"]
    assert second.offset == 0


def test_a_removed_line_leaves_those_around_it_where_they_are(tmp_path: Path) -> None:
    """Breaks when: the line is cut out, or a newline of another is overwritten."""
    files = LogFiles(str(tmp_path), 10**6)
    places = [files.append("default", line(name, 50)) for name in ("a", "secret", "c")]
    path = tmp_path / places[0].file
    os.utime(path, (1_700_000_000, 1_700_000_000))
    files.remove_line(places[1])
    assert path.stat().st_mtime == 1_700_000_000
    assert b"secret" not in path.read_bytes()
    assert {one.get("call") for one in lines_of(tmp_path)} == {None, "a", "c"}
    assert decoded(files.read(places[1]) or b"") is None
    assert decoded(files.read(places[2]) or b"") == {"call": "c", "filling": "x" * 50}


@pytest.mark.parametrize(
    "name",
    ["../secret", "default/../../etc/passwd", "/etc/passwd", "default/20260101_000000.jsonl/x", ""],
)
def test_j04_no_other_file_is_read_or_written(tmp_path: Path, name: str) -> None:
    """Breaks when: the name in the index is trusted."""
    files = LogFiles(str(tmp_path / "log"), 10**6)
    (tmp_path / "secret").write_text("secret " * 20)
    at = Position(file=name, offset=0, length=20)
    assert files.read(at) is None
    files.remove_line(at)
    assert (tmp_path / "secret").read_text() == "secret " * 20
    files.append("default", line("a"))
    (tmp_path / "log" / "default" / "20000101_000000.jsonl").symlink_to(tmp_path / "secret")
    linked = Position(file="default/20000101_000000.jsonl", offset=0, length=20)
    assert files.read(linked) is None


def test_the_folder_has_one_name_for_all_who_share_it(tmp_path: Path) -> None:
    """Breaks when: the name is the host's, or is written twice."""
    names = {LogFiles(str(tmp_path), 1_000).place() for _ in range(3)}
    assert len(names) == 1
    assert LogFiles(str(tmp_path / "other"), 1_000).place() not in names
    assert {path.name for path in tmp_path.iterdir()} == {".place", "other"}


def test_old_files_are_deleted_those_of_the_earlier_form_too(tmp_path: Path) -> None:
    files = LogFiles(str(tmp_path), 10**6)
    kept = files.append("default", line("new"))
    for name in ("default/20200101_000000.jsonl", "activity-2020-01-01.jsonl", "mine.jsonl"):
        (tmp_path / name).write_bytes(line("old"))
        os.utime(tmp_path / name, (1_600_000_000, 1_600_000_000))
    files.delete_older(datetime.now(UTC) - timedelta(days=30))
    assert files.names() == [kept.file]
    assert (tmp_path / "mine.jsonl").exists()
