"""The name `compression` beside the library's: from Python 3.14 on it has a package of that name.

A stand-in for it shows this on any Python: a `gzip` that needs its package `compression`, as that
of 3.14 does. Where it is imported before the project's folder can be found, as by an ASGI server
or a test runner, it is `sitecustomize` that does so: nothing is imported sooner.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import socket
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest

import compression
from tests.documents import COMPRESSION, blocks
from tests.ports import free_port
from tests.servers import ROOT, server_environment

# Of 3.14; ours must not take any of them away.
LIBRARYS = {"_common", "bz2", "gzip", "lzma", "zlib", "zstd"}
GZIP = """
from compression._common import _streams
import importlib.machinery, os, sys, sysconfig
_file = os.path.join(sysconfig.get_path("stdlib"), "gzip.py")
importlib.machinery.SourceFileLoader(__name__, _file).exec_module(sys.modules[__name__])
"""
ORDERS = ("ours first", "the library's first")
RESOURCES = """
import gzip, sys
import chatapp
from importlib.resources import files
import django
django.setup()
from django.apps import apps
from django.contrib.staticfiles import finders
from django.template.loader import get_template

import compression, compression._common._streams, compression.gzip, compression.zstd
import compression.models, compression.services
from compression.summarizers.prompt import instructions
from compression.tokens import default_counter
from pathlib import Path

ours = Path(chatapp.__file__).parent.parent / "compression"
assert Path(compression.__file__) == ours / "__init__.py", compression.__file__
assert Path(apps.get_app_config("compression").path) == ours
assert Path(str(files("compression"))) == ours, files("compression")
assert sorted(map(Path, compression.__path__)) == sorted({ours, LIBRARY}), compression.__path__
assert compression.gzip.open is gzip.open
assert compression._common.__file__.startswith(str(LIBRARY))
assert get_template("admin/compression/review.html").origin.name.startswith(str(ours))
assert finders.find("compression/review.css").startswith(str(ours))
assert instructions() and default_counter().count("one two three") == 3
print("found")
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH, with the stand-in in it on a Python that has no such package."""
    folder = tmp_path / "library"
    if sys.version_info >= (3, 14):
        folder.mkdir()
        return folder
    (folder / "compression" / "_common").mkdir(parents=True)
    (folder / "compression" / "__init__.py").write_text("")
    (folder / "compression" / "_common" / "__init__.py").write_text("")
    (folder / "compression" / "_common" / "_streams.py").write_text("")
    (folder / "compression" / "gzip.py").write_text("from gzip import open\n")
    (folder / "compression" / "zstd.py").write_text("")
    (folder / "gzip.py").write_text(GZIP)
    return folder


def librarys(library: Path) -> Path:
    """Where the library's package is, or its stand-in."""
    standard = Path(sysconfig.get_path("stdlib"))
    return (library if sys.version_info < (3, 14) else standard) / "compression"


def beside(library: Path, order: str, **more: str) -> dict[str, str]:
    """The environment of a process with the stand-in, which has been imported or not."""
    early = library / "sitecustomize.py"
    early.write_text("import gzip, compression.gzip\n" if order == ORDERS[1] else "")
    environment = server_environment(library.parent, free_port())
    return {**environment, "PYTHONPATH": str(library), "PYTHONDONTWRITEBYTECODE": "1", **more}


def run(
    arguments: list[str], environment: dict[str, str], folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_no_module_of_ours_hides_one_of_the_librarys() -> None:
    ours = {module.name for module in pkgutil.iter_modules([str(ROOT / "compression")])}
    assert not ours & LIBRARYS


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", ["before the library", "after the library"])
def test_both_packages_are_one(library: Path, order: str, where: str) -> None:
    """Whichever is imported first, and wherever the project's folder is found.

    Breaks when: `compression` does not extend its path, or `chatapp` leaves the library's package
    in its place, or anything of ours is looked for in the first folder of the path.
    """
    position = "0" if where == "before the library" else "len(sys.path)"
    code = (
        f"import sys; sys.path.remove(''); sys.path.insert({position}, {str(ROOT)!r})\n"
        f"from pathlib import Path; LIBRARY = Path({str(librarys(library))!r})\n{RESOURCES}"
    )
    done = run(["-c", code], beside(library, order), library.parent)
    assert done.stdout == "found\n", done.stderr


@pytest.mark.parametrize("order", ORDERS)
def test_the_command_line_starts(library: Path, order: str) -> None:
    """Breaks when: `compression` hides the library's package, or the other way round."""
    done = run(["manage.py", "check"], beside(library, order))
    assert done.returncode == 0, done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("order", ORDERS)
def test_the_tests_start(library: Path, order: str) -> None:
    """By pytest's own command, which puts the folder on the path by itself and late."""
    command = str(Path(sys.executable).with_name("pytest"))
    environment = beside(library, order)
    del environment["DJANGO_SETTINGS_MODULE"]
    done = run([command, "-q", "-x", "tests/compression/planning/test_policy.py"], environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_other_servers_start(library: Path, order: str, server: str) -> None:
    """Breaks when: the ASGI application relies on the order in which a server imports."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                server,
                "--fd",
                str(listener.fileno()),
                "chatapp.asgi:application",
            ],
            cwd=ROOT,
            env=beside(library, order),
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        # It listens already: the connection waits until it is answered, or until the process dies.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
            assert answer.status == 200
    except OSError as error:
        process.kill()
        pytest.fail(f"{error}\n{process.communicate()[0]}")
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("order", ORDERS)
def test_another_host_starts(library: Path, order: str) -> None:
    """With the lines that docs/compression.md has for a host's settings.

    Breaks when: those lines are wrong, or `compression` does not extend its path.
    """
    (block,) = (one for one in blocks(COMPRESSION, "python") if one.heading == "Python 3.14")
    lines = block.text
    settings = (ROOT / "tests" / "standalone" / "settings.py").read_text("utf-8")
    (library.parent / "host.py").write_text(lines + settings)
    environment = beside(
        library,
        order,
        DJANGO_SETTINGS_MODULE="host",
        STANDALONE_FOLDER=str(library.parent),
    )
    environment["PYTHONPATH"] += os.pathsep + str(library.parent)
    code = (
        f"import gzip, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from django.core.management import execute_from_command_line as run\n"
        "run(['manage.py', 'check'])\n"
        "import compression._common, compression.gzip\n"
        "from django.template.loader import get_template\n"
        "get_template('admin/compression/review.html')\n"
    )
    done = run(["-c", code], environment, library.parent)
    assert done.returncode == 0, done.stderr


def test_reloading_changes_nothing() -> None:
    """A host may do so in any order: see docs/compression.md.

    Breaks when: something with a memory is kept in the package itself.
    """
    before = list(compression.__path__)
    assert importlib.reload(compression).__path__ == before
