"""Every command of every document is run, in a copy of the program on a computer of its own.

What a reader puts in himself (addresses, keys, ports) is put in by :class:`Computer`. Three kinds
of commands are not run as they stand:

- what serves is ended as a person ends it, after somebody has chatted there;
- ``make test`` and the other targets but ``run`` are looked for in what ``make help`` lists: this
  test is a part of the first, and the CI runs it;
- ``systemctl`` is not here: the units that it is told to start must be where it would look for
  them, and nginx must take its configuration.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import site
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from chatapp.conversations.tools.servers import ServerAccess
from chatapp.tools.mcp.client import open_session
from tests.documents import COMPRESSION, README, blocks, documents, in_backticks
from tests.json_client import JsonClient
from tests.ports import free_port
from tests.servers import ROOT, START_TIMEOUT, STOP_TIMEOUT, status_of
from tests.services import ensure_nginx, own_database, postgres, postgres_folder, redis
from tests.upstreams import RunningUpstream, running_upstream

#: Run there, in an empty project made of the page's pieces.
ELSEWHERE = {COMPRESSION: "tests/compression/test_standalone.py"}
# Whose options sentences may name by themselves.
OWN = ("serve", "signin_link", "ensure_owner", "import_messages")
DEPLOYING = ("chatapp.deployment.many", "chatapp.deployment.nginx", "chatapp.tools.mcp.tryout")
LANGUAGES = re.compile(r"(sh|http|json \w+|python)?")
# What the copy is made of; the environment and what was made here stay away.
COPIED = (
    "chatapp",
    "compression",
    "templates",
    "static",
    "manage.py",
    "pyproject.toml",
    "Makefile",
)
_ASSIGNMENTS = r"(?:\w+=\S+ )*"
_SERVES = re.compile(rf"{_ASSIGNMENTS}(make run|.*manage\.py serve|.*chatapp\.deployment\.many)\b")
_SERVES_TOOLS = re.compile(r".*chatapp\.tools\.mcp\.tryout\b")
_ONLY_LISTED = re.compile(r"make (?!run\b)[a-z]+")
_MODEL_SERVER = re.compile(r"https?://[\w.:]+/v1")
# What holds for the commands after it, in later sections too.
_LASTING = re.compile(r"(export|umask) ")


class Computer:
    """A computer with a copy of the program, for which ``make`` has made what it needs to run."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.program, self.etc, self._stack = folder / "palimpsest", folder / "etc", stack
        self.program.mkdir()
        for name in (*COPIED, *(path.name for path in ROOT.glob("requirements*.txt"))):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.program / name)
        for place in ("systemd/system", "nginx/conf.d", "ssl"):
            (self.etc / place).mkdir(parents=True)
        self._bin = folder / "bin"
        self._bin.mkdir()
        (self._bin / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
        self._make_environment()
        self._ports: dict[str, int] = {}
        self._lasting: list[str] = []
        self._shell("make var/static.stamp")

    def _make_environment(self) -> None:
        """``.venv`` as ``make`` leaves it: with the packages that are tested here."""
        environment = self.program / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        packages = next((environment / "lib").glob("python*/site-packages"))
        ours = "".join(f"import site; site.addsitedir({one!r})\n" for one in site.getsitepackages())
        (packages / "of_the_tests.pth").write_text(ours)
        for stamp in ("uv", "run", "dev"):
            (environment / stamp).touch()

    @cached_property
    def database(self) -> str:
        """A DATABASE_URL of PostgreSQL, for all sections."""
        return self._stack.enter_context(own_database(self._stack.enter_context(postgres())))

    @cached_property
    def bus(self) -> str:
        """A REDIS_URL."""
        return self._stack.enter_context(redis())

    @cached_property
    def model(self) -> RunningUpstream:
        """The model server that every address of one leads to."""
        return self._stack.enter_context(running_upstream())

    @property
    def environment(self) -> dict[str, str]:
        """What a person's shell has; no command reaches a package index."""
        places = [self._bin, *filter(None, [postgres_folder()]), os.environ["PATH"], "/usr/sbin"]
        return {
            "PATH": os.pathsep.join(map(str, places)),
            "HOME": os.environ.get("HOME", "/"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "PIP_NO_INDEX": "1",
            "PORT": str(self._port("8000")),
        }

    def _port(self, shown: str) -> int:
        return self._ports.setdefault(shown, free_port())

    def filled_in(self, command: str) -> str:
        """The command with values of this computer in place of those that are shown."""
        for shown, ours in (
            (r"postgres://\S+", lambda _: self.database),
            (r"redis://\S+", lambda _: self.bus),
            (_MODEL_SERVER, lambda _: self.model.base_url),
            (r"sk-…", lambda _: "a-key"),
            (r"SECRET_KEY=…", lambda _: f"SECRET_KEY={secrets.token_urlsafe(50)}"),
            (r"(?<=[: ])(8\d{3}|9\d{3})\b", lambda found: str(self._port(found[0]))),
            (r"(?<=[ =])/etc/", lambda _: f"{self.etc}/"),
        ):
            command = re.sub(shown, ours, command)
        return command

    def run(self, command: str) -> None:
        """Run one command of a document as it is meant; fails when it does."""
        if _LASTING.match(command):
            if "var/secret_key" in command:
                # Who says so has run the chat there.
                self._serve("make run")
            self._lasting.append(self.filled_in(command))
        elif command.startswith("systemctl "):
            self._systemctl(command.split()[1:])
        elif listed := _ONLY_LISTED.match(command):
            self._shell(f"make help | grep --fixed-strings --quiet '  {listed[0]}\t'")
        elif _SERVES_TOOLS.match(command):
            self._serve_tools(command)
        elif _SERVES.match(command):
            self._serve(command)
        else:
            self._shell(command)

    def lasting(self, commands: list[str]) -> None:
        """Begin a section: only these hold from before."""
        self._lasting = [self.filled_in(one) for one in commands if _LASTING.match(one)]

    def _script(self, command: str) -> list[str]:
        return ["bash", "-ec", "\n".join([*self._lasting, self.filled_in(command)])]

    def _shell(self, command: str) -> None:
        done = subprocess.run(
            self._script(command),
            cwd=self.program,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"

    def _serve(self, command: str) -> None:
        """Start it, have a person chat there if it lets one in, and press Ctrl+C."""
        with self._running(command) as said:
            serving = re.search(r"^Serving on (\S+)$", said, re.MULTILINE)
            assert serving is not None, said
            assert status_of(f"{serving[1]}/readyz") == 200
            link = re.search(r"^(?:Sign in: )?(http\S+/accounts/link/\S+)$", said, re.MULTILINE)
            assert (link is None) == ("--no-prepare" in command), said
            if link is not None:
                asyncio.run(self._chat(serving[1], link[1], command))

    def _serve_tools(self, command: str) -> None:
        """Start it, have its tools listed as for an administrator, and press Ctrl+C."""
        with self._running(command) as said:
            serving = re.search(r"^Serving on (\S+)$", said, re.MULTILINE)
            assert serving is not None, said
            assert "add" in asyncio.run(_tools_at(serving[1]))

    @contextmanager
    def _running(self, command: str) -> Iterator[str]:
        """What serves, from what it says at first to its orderly end."""
        process = subprocess.Popen(
            self._script(command),
            cwd=self.program,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []
        ready = threading.Event()
        reader = threading.Thread(target=_read, args=(process, command, lines, ready), daemon=True)
        reader.start()
        try:
            assert ready.wait(START_TIMEOUT)
            yield "".join(lines)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(STOP_TIMEOUT)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                reader.join(STOP_TIMEOUT)
        assert "Traceback" not in "".join(lines), "".join(lines)

    async def _chat(self, address: str, link: str, command: str) -> None:
        """Sign in and be answered, by the model that the command names if it names one."""
        # The server of the command before may have asked for a title at its end.
        await asyncio.to_thread(self.model.reset)
        person = JsonClient(address)
        try:
            await person.sign_in(link)
            await person.create()
            accepted = await person.send("Hello")
            assert "turn" in accepted, accepted
            async with asyncio.timeout(START_TIMEOUT):
                while (page := await person.get())["turn"] is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            await person.close()
        assert [one["status"] for one in page["messages"]] == ["complete"] * 2, page
        if _MODEL_SERVER.search(command):
            named = re.search(r"CHAT_MODEL=(\S+)", command)
            asked = await asyncio.to_thread(self.model.chats)
            assert asked, "the model server was not asked"
            assert named is None or asked[0]["model"] == named[1]

    def _systemctl(self, arguments: list[str]) -> None:
        """Look where systemd would; nothing is started."""
        verb, *units = [one for one in arguments if one != "--now"]
        assert verb in {"enable", "restart", "reload"}
        for unit in units:
            if unit == "nginx":
                self._nginx_takes_its_sites()
                continue
            name, at, instance = unit.partition("@")
            file = f"{name}@.service" if at else unit
            assert not at or instance.isdigit()
            source = ROOT / "chatapp" / "deployment" / file
            assert source.exists(), unit
            # A section may rely on another one that has put it in place.
            there = self.etc / "systemd" / "system" / file
            assert verb != "enable" or there.read_text() == source.read_text()

    def _nginx_takes_its_sites(self) -> None:
        making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=chat"]
        ssl = self.etc / "ssl"
        command = [*making, "-keyout", str(ssl / "chat.key"), "-out", str(ssl / "chat.pem")]
        subprocess.run(command, check=True, capture_output=True)
        sites = sorted((self.etc / "nginx" / "conf.d").glob("*.conf"))
        assert sites
        for one in sites:
            one.write_text(one.read_text().replace(" 443 ", f" 127.0.0.1:{free_port()} "))
        whole = self.etc / "nginx" / "nginx.conf"
        inner = f"include {self.etc}/nginx/conf.d/*.conf;"
        whole.write_text(f"pid {self.etc}/pid;\nevents {{}}\nhttp {{ {inner} }}\n")
        command = [ensure_nginx(), "-t", "-p", str(self.etc), "-c", str(whole), "-e", "stderr"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "syntax is ok" in done.stderr, done.stderr


def _read(
    process: subprocess.Popen[str], command: str, lines: list[str], ready: threading.Event
) -> None:
    """Collect what it says; ``ready`` is set when it serves and has said who may enter."""
    assert process.stdout is not None
    # The script for many processes prints the link first.
    by_itself = ("--no-prepare", "many", "tryout")
    last = "Serving on " if any(one in command for one in by_itself) else "Sign in: "
    for line in process.stdout:
        lines.append(line)
        if line.startswith(last):
            ready.set()
    ready.set()
    process.stdout.close()


async def _tools_at(address: str) -> dict[str, str]:
    """The tools of a server, as the chat reads them."""
    access = ServerAccess(
        server_id=0,
        name="notes",
        address=address,
        command=(),
        private_addresses=True,
        credential_name="Authorization",
        sealed_key="",
    )
    async with open_session(access) as session:
        return await session.listing()


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Computer]:
    """One for all sections of a worker: none may need what another has done, exports aside."""
    with ExitStack() as stack:
        yield Computer(tmp_path_factory.mktemp("computer"), stack)


def commands(text: str) -> list[str]:
    """The commands of a piece, without comments; one that goes on over a line is one."""
    lines = text.replace("\\\n", " ").splitlines()
    bare = (re.sub(r"(^|\s+)# .*", "", line).strip() for line in lines)
    return [re.sub(r" {2,}", " ", line) for line in bare if line]


def sections() -> list[tuple[Path, str]]:
    """Every document's headings under which there are commands."""
    found = [
        (path, block.heading)
        for path in documents()
        for block in blocks(path, "sh")
        if path not in ELSEWHERE
    ]
    return list(dict.fromkeys(found))


def _name(value: object) -> str:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else str(value)


@pytest.mark.parametrize(
    ("document", "heading"),
    # Those of the README with each change.
    [pytest.param(*one, marks=() if one[0] == README else pytest.mark.soak) for one in sections()],
    ids=_name,
)
def test_commands_do_what_they_should(computer: Computer, document: Path, heading: str) -> None:
    """Breaks when: an option, a file, a target or a setting is renamed that a document names."""
    pieces = list(blocks(document, "sh"))
    first = next(n for n, piece in enumerate(pieces) if piece.heading == heading)
    computer.lasting([one for piece in pieces[:first] for one in commands(piece.text)])
    for piece in pieces:
        if piece.heading == heading:
            for command in commands(piece.text):
                computer.run(command)


def test_no_piece_of_code_is_left_out() -> None:
    """Of ``http`` and ``json`` in the page of the API, and of ``python``, other tests take care.

    Breaks when: commands are fenced as ``bash``, or not marked as commands at all.
    """
    assert {path.name for path, _ in sections()} >= {"README.md", "operations.md"}
    for path in documents():
        for block in blocks(path):
            assert LANGUAGES.fullmatch(block.language), (path, block.language)
            kind = block.language.partition(" ")[0]
            assert kind not in {"http", "json"} or path.name == "api.md", path
            assert kind != "python" or path == COMPRESSION, path
            unmarked = commands(block.text) if not block.language else []
            programs = r"(\$ |make |python|\.venv/|pip |systemctl |curl |docker )"
            assert [one for one in unmarked if re.match(programs, one)] == []


def test_commands_in_sentences_exist() -> None:
    """With their options.

    Breaks when: a command or an option is renamed and a sentence still has its old name.
    """
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    seen = set()
    known = {option for name in OWN for option in _options(name)}
    known |= {option for module in DEPLOYING for option in _options_of_module(module)}
    for path in documents():
        for text in in_backticks(path):
            if target := re.match(r"make ([a-z]+)", text):
                assert target[1] in phony[1].split(), (path, text)
            if module := re.search(r"python -m ([\w.]+)", text):
                assert find_spec(module[1]) is not None, (path, text)
            if text.startswith("--"):
                assert text.split()[0] in known, (path, text)
            if own := re.search(r"manage\.py ([a-z_]+)(.*)", text):
                seen.add(own[1])
                assert own[1] in get_commands(), (path, text)
                assert set(re.findall(r"--[\w-]+", own[2])) <= _options(own[1]), (path, text)
    assert {"serve", "migrate", "signin_link"} <= seen


def _options(command: str) -> set[str]:
    app = get_commands()[command]
    assert isinstance(app, str)
    parser = load_command_class(app, command).create_parser("manage.py", command)
    return {option for action in parser._actions for option in action.option_strings}


def _options_of_module(module: str) -> set[str]:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(re.findall(r"--[\w-]+", done.stdout))
