"""Two storages to break things on, and a survivor in each: a process that nothing happens to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fake_upstream import FakeUpstream
from tests.faults.world import World, answer
from tests.json_client import JsonClient
from tests.ports import free_port
from tests.services import own_database, postgres, redis


@pytest.fixture(
    scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)]
)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A database, a bus, and the survivor; on SQLite there is no bus, only the looks."""
    folder = tmp_path_factory.mktemp("world")
    yield from _made(folder, on_postgres=request.param == "postgres")


@pytest.fixture(scope="session")
def wide_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """PostgreSQL and Redis, for faults that only many processes know."""
    # Here nobody dies, and a second without database or bus is not to cost a turn its lease.
    yield from _made(tmp_path_factory.mktemp("wide"), on_postgres=True, lease=15.0)


def _made(folder: Path, *, on_postgres: bool, lease: float = 3.0) -> Iterator[World]:
    with ExitStack() as stack:
        database, bus = f"sqlite:///{folder / 'server.sqlite3'}", ""
        if on_postgres:
            database = stack.enter_context(own_database(stack.enter_context(postgres())))
            bus = stack.enter_context(redis())
        world = World(folder, database=database, redis=bus, upstream_port=free_port())
        world.lease = lease
        stack.callback(world.close)
        yield world


def world_of(request: pytest.FixtureRequest) -> World:
    """The world that a test is in."""
    name = "wide_world" if "wide_world" in request.fixturenames else "world"
    found: World = request.getfixturevalue(name)
    return found


@pytest.fixture
async def upstream(request: pytest.FixtureRequest) -> AsyncIterator[FakeUpstream]:
    """The model server of the world that the test is in, at the same address for each test."""
    async with FakeUpstream(handler=answer, port=world_of(request).upstream_port) as upstream:
        yield upstream


@pytest.fixture
async def person(
    request: pytest.FixtureRequest, upstream: FakeUpstream
) -> AsyncIterator[JsonClient]:
    """The owner at the world's survivor, with a conversation of their own."""
    client = await world_of(request).person()
    yield client
    await client.close()
