"""Tools of MCP servers: connections, pinned definitions, and results as text."""
