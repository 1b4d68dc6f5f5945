"""The process of tests/mcp_server.py, which can be killed and started again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx2

from chatapp.conversations.tools import definitions
from chatapp.conversations.tools.servers import ServerAccess, access_to
from chatapp.models import ToolDefinition, ToolServer
from chatapp.tools.sealing import seal
from compression.database import in_database_thread
from tests.servers import ROOT


class Server:
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

    def access(self, **changes: Any) -> ServerAccess:
        values: dict[str, Any] = {
            "server_id": 1,
            "name": "tests",
            "address": f"{self.origin}/mcp",
            "command": (),
            "private_addresses": True,
            "credential_name": "X-Key",
            "sealed_key": seal("sesame"),
        }
        return ServerAccess(**{**values, **changes})


def _access(row: ToolServer) -> ServerAccess:
    return access_to(ToolServer.objects.get(pk=row.pk))


def _approve_all(row: ToolServer) -> None:
    seen = ToolDefinition.objects.filter(server=row).values_list("name", "reported_sha256")
    definitions.approve(row.pk, dict(seen), "root")


def _states(row: ToolServer) -> dict[str, bool]:
    return {one.name: one.offered for one in ToolDefinition.objects.filter(server=row)}


aaccess = in_database_thread(_access)
aapprove_all = in_database_thread(_approve_all)
astates = in_database_thread(_states)
