"""A small MCP server to try tools with: ``python -m chatapp.tools.mcp.tryout --port 9100``.

It keeps notes in its memory, for whoever asks, until it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import socket

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

PATH = "/mcp"
MOST_NOTES = 1000


def notes() -> MCPServer:
    """The server, with three tools: two that only read, and one that asks before it runs."""
    kept: list[str] = []
    server: MCPServer = MCPServer("notes")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read() -> str:
        """Read all notes."""
        return "\n".join(f"{n}. {note}" for n, note in enumerate(kept, start=1)) or "No notes yet."

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def find(words: str) -> str:
        """Find the notes that contain these words."""
        return "\n".join(one for one in kept if words.lower() in one.lower()) or "Nothing found."

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
    def add(text: str) -> str:
        """Add a note."""
        if len(kept) >= MOST_NOTES:
            raise ToolError("There are too many notes.")
        kept.append(text)
        return f"Note {len(kept)} is kept."

    return server


def main() -> None:
    """Serve on this computer until Ctrl+C."""
    parser = argparse.ArgumentParser(description="Serve a few tools over streamable HTTP.")
    parser.add_argument("--port", type=int, default=9100)
    port = parser.parse_args().port
    app = notes().streamable_http_app(streamable_http_path=PATH)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    # Before it says so, so that whoever reads it can connect.
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"Serving on http://127.0.0.1:{port}{PATH}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


if __name__ == "__main__":
    main()
