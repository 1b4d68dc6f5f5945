"""The fake model server as a process of its own, for products that run as processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.servers import ROOT


@dataclass(frozen=True, kw_only=True)
class RunningUpstream:
    """Where it listens, and what it was asked."""

    base_url: str

    def script(self, *descriptions: dict[str, Any]) -> None:
        """These are its next answers; see ``fake_scripts.from_json``."""
        body = json.dumps(descriptions).encode()
        address = self.base_url.removesuffix("/v1") + "/script"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=10):
            return

    def left_alone(self) -> bool:
        """Whether every request was answered whole or its connection closed; waits 2 s for it."""
        deadline = time.monotonic() + 2
        while not all(one["disconnected"] or one["answered"] for one in self._chats()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def release(self) -> None:
        """Let the answers go on that wait at a step ``{"wait": null}``."""
        self._tell("/release")

    def reset(self) -> None:
        """Forget all scripts and requests."""
        self._tell("/reset")

    def _tell(self, path: str) -> None:
        address = self.base_url.removesuffix("/v1") + path
        with urllib.request.urlopen(urllib.request.Request(address, b""), timeout=10):
            return

    def chats(self) -> list[dict[str, Any]]:
        """The bodies of all requests for a reply so far, summaries included."""
        return [one["json"] for one in self._chats()]

    def _chats(self) -> list[dict[str, Any]]:
        address = self.base_url.removesuffix("/v1") + "/requests"
        with urllib.request.urlopen(address, timeout=10) as answer:
            told = json.load(answer)["requests"]
        return [one for one in told if one["path"].endswith("/completions")]


@contextmanager
def running_upstream(**windows: int) -> Iterator[RunningUpstream]:
    """Start it on a free port; it ends with the block.

    ``windows``: the models that it lists and their tokens, instead of the one of its own.
    """
    listed = [{"id": name, "object": "model", "max_model_len": windows[name]} for name in windows]
    models = ["--models", json.dumps(listed)] if listed else []
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fake_upstream", "--port", "0", *models],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield RunningUpstream(base_url=process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
