"""A server's database, read from outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg


class Database:
    """Rows of the database that a DATABASE_URL names; placeholders are ``%s``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_postgres = url.startswith("postgres")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds, read by a connection of its own."""
        if self.is_postgres:
            with psycopg.connect(self.url, autocommit=True) as server:
                return server.execute(query, values).fetchall()
        path = self.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=20)) as file:
            return file.execute(query.replace("%s", "?"), values).fetchall()

    def run(self, statement: str) -> None:
        """Change something that a server's administrator may change; PostgreSQL only."""
        with psycopg.connect(self.url, autocommit=True) as server:
            server.execute(statement)
