"""The product's server, noting when a send passes what: ``python -m tests.benchmarks._traced``.

Its arguments are the file to write to, ``table`` or ``flame``, and those of ``manage.py``. With
``table``, the file has one line of JSON a send: of each part its name, the milliseconds that
it took, those of the process's CPU, and the SQL statements. With ``flame``, it has stacks in folded
form, as flame graphs are made of, each with the number of times that it was met. One send at a time
can be traced.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

# Where a part ends: the part, where the function is found, and whether at its begin or its end.
PARTS = (
    ("Twisted, Daphne, Django", "chatapp.views.answers.aperson", "begin"),
    ("who asks", "chatapp.views.answers.aperson", "end"),
    ("what is sent, into which conversation", "chatapp.turns.runner.Runner.begin", "begin"),
    ("stored", "chatapp.turns.runner.Runner.start", "begin"),
    ("made ready", "chatapp.turns.turn.prepare", "end"),
    ("on its way to the model", "aiohttp.ClientSession._request", "begin"),
    ("the server's answer begins", "aiohttp.ClientSession._request", "end"),
    ("its first piece", "chatapp.turns.live_reply.LiveStream.add", "end"),
    ("the piece is stored", "chatapp.turns.checkpoints.Checkpoints.store", "end"),
    ("rendered", "chatapp.live.bus.Bus._deliver", "begin"),
    ("on its way to the viewer", "chatapp.deployment.daphne.ViewerProtocol.serverSend", "end"),
)
#: Frames in which a thread waits; it is not at work then.
_WAITS = re.compile(r"select|_wait_for|wait|get|acquire|_worker|_next|run_forever")
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)", re.IGNORECASE)
SAMPLE_SECONDS = 0.0005


class Trace:
    """The marks of the send that is under way."""

    def __init__(self, write: Callable[[list[dict[str, Any]]], None]) -> None:
        self._write = write
        self._parts: list[dict[str, Any]] = []
        self._next = len(PARTS)
        self._last = (0, 0)
        self.statements = 0

    @property
    def under_way(self) -> bool:
        """Whether a send has begun and its first event has not gone out."""
        return self._next < len(PARTS)

    def begin(self) -> None:
        """The first bytes of a send have come."""
        self._parts, self._next, self.statements = [], 0, 0
        self._last = time.perf_counter_ns(), time.process_time_ns()

    def passed(self, number: int) -> None:
        """The end of a part; one before its time, or for a second time, is none."""
        if number != self._next:
            return
        now = time.perf_counter_ns(), time.process_time_ns()
        taken, cpu = ((new - old) / 1e6 for new, old in zip(now, self._last, strict=True))
        part = {"part": PARTS[number][0], "ms": taken, "cpu": cpu, "statements": self.statements}
        self._parts.append(part)
        self._next, self._last, self.statements = number + 1, now, 0
        if not self.under_way:
            self._write(self._parts)


def _found(path: str) -> tuple[Any, str]:
    """What holds the function of this path, and the name under which it does."""
    module = path
    names: list[str] = []
    while module not in sys.modules:
        try:
            __import__(module)
        except ImportError:
            module, _, name = module.rpartition(".")
            names.insert(0, name)
    holder: Any = sys.modules[module]
    for name in names[:-1]:
        holder = getattr(holder, name)
    return holder, names[-1]


def _mark(path: str, trace: Trace, numbers: dict[str, int]) -> None:
    """Have a function tell when it begins and ends."""
    holder, name = _found(path)
    inner = getattr(holder, name)
    before, after = numbers.get("begin", -1), numbers.get("end", -1)

    async def waiting(*args: Any, **kwargs: Any) -> Any:
        trace.passed(before)
        result = await inner(*args, **kwargs)
        trace.passed(after)
        return result

    def plain(*args: Any, **kwargs: Any) -> Any:
        trace.passed(before)
        result = inner(*args, **kwargs)
        trace.passed(after)
        return result

    wrapper = waiting if inspect.iscoroutinefunction(inner) else plain
    setattr(holder, name, functools.wraps(inner)(wrapper))


def _watch(trace: Trace) -> None:
    from django.db.backends.utils import CursorWrapper
    from twisted.web.http import HTTPChannel

    numbers: dict[str, dict[str, int]] = {}
    for number, (_, path, when) in enumerate(PARTS):
        numbers.setdefault(path, {})[when] = number
    for path, whens in numbers.items():
        _mark(path, trace, whens)
    receive: Any = HTTPChannel.dataReceived
    execute: Any = CursorWrapper.execute

    def received(self: Any, data: bytes) -> Any:
        if data.startswith(b"POST /c/") and b"/messages/ " in data[:80]:
            trace.begin()
        return receive(self, data)

    def executed(self: Any, sql: str, params: Any = None) -> Any:
        trace.statements += bool(_SQL.match(sql))
        return execute(self, sql, params)

    setattr(HTTPChannel, "dataReceived", received)  # noqa: B010
    setattr(CursorWrapper, "execute", executed)  # noqa: B010


def _stack(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        names.append(f"{module}.{code.co_qualname}" if module else code.co_qualname)
        frame = frame.f_back
    return ";".join(reversed(names))


def _sample(trace: Trace, met: Counter[str]) -> None:
    """Note what each thread is at, while a send is under way."""
    # Otherwise this thread waits 5 ms for the interpreter.
    sys.setswitchinterval(SAMPLE_SECONDS / 5)
    own = threading.get_ident()
    while True:
        time.sleep(SAMPLE_SECONDS)
        if not trace.under_way:
            continue
        for thread, frame in sys._current_frames().items():
            if thread != own and not _WAITS.fullmatch(frame.f_code.co_name):
                met[_stack(frame)] += 1


def main() -> None:
    """Serve, and write after each send."""
    path, kind, *arguments = sys.argv[1:]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    import django

    from chatapp.deployment import event_loop

    event_loop.install()
    django.setup()
    kept = Path(path)
    if kind == "flame":
        met: Counter[str] = Counter()
        trace = Trace(lambda parts: _keep(kept, met))
        threading.Thread(target=_sample, args=(trace, met), daemon=True).start()
    else:
        file = kept.open("a")
        trace = Trace(lambda parts: print(json.dumps(parts), file=file, flush=True))
    _watch(trace)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *arguments])


def _keep(path: Path, met: Counter[str]) -> None:
    """Write the stacks as they are now: who measures kills this process."""
    path.write_text("".join(f"{stack} {count}\n" for stack, count in list(met.items())))


if __name__ == "__main__":
    main()
