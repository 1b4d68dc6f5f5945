"""The process of tests/mcp_server.py, which can be killed and started again."""

from __future__ import annotations

from typing import Any

from chatapp.conversations.tools import definitions
from chatapp.conversations.tools.servers import ServerAccess, access_to
from chatapp.models import ToolDefinition, ToolServer
from chatapp.tools.sealing import seal
from compression.database import in_database_thread
from tests.tool_server import ToolServerProcess


class Server(ToolServerProcess):
    """Such a process, as the product knows it."""

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
