"""The process of tests/mcp_server.py, which can be killed and started again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx2

from tests.servers import ROOT


class ToolServerProcess:
    """One such process, always at the same port."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.mcp_server", "--port", str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.origin = self.process.stdout.readline().strip()
        self.port = int(self.origin.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def control(self, **wanted: Any) -> dict[str, Any]:
        told = httpx2.post(f"{self.origin}/control", json=wanted).raise_for_status().json()
        assert isinstance(told, dict)
        return told

    @property
    def asked(self) -> list[str]:
        return [one["method"] for one in self.control()["asked"]]
