"""What all tests share: people, the browser, the running product, and no way out of here."""

from __future__ import annotations

import functools
import gc
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.contrib.auth.models import User
from django.db import connections
from django.db.models.query_utils import DeferredAttribute
from hypothesis import HealthCheck, settings
from playwright.async_api import Browser, BrowserContext
from pytest_django import DjangoDbBlocker

from compression.database import close_pools, drain
from tests import browsers, emptying, network
from tests.servers import RunningServer, start_server

# A shared computer is slow now and then: time limits are pytest-timeout's.
settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
settings.load_profile("default")

MARKERS = (
    "storage: depends on what the database does; runs again on PostgreSQL",
    "events: depends on what the channel layer does; runs again on Redis",
    "elsewhere: uses one of them without more; `make soak` runs it on PostgreSQL and Redis",
    "browser: looks at pages with Chromium",
    "soak: takes longer than 10 s, or repeats at length what a shorter one shows; `make soak` only",
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name the markers; have servers end by SIGINT, and tables emptied quickly."""
    # Until all is collected: nothing of it becomes garbage.
    gc.disable()
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    setattr(DeferredAttribute, "__get__", _read_at_once)  # noqa: B010
    emptying.install()
    # A script starts what runs in its background with SIGINT ignored, which children inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def _asked(markexpr: str) -> list[str]:
    """The markers of which each test must have one, by ``-m``; none if it says anything else."""
    found = re.fullmatch(r"\(?((?!not\b)\w+(?: or \w+)*)\)?(?: and not \w+)?", markexpr)
    return found[1].split(" or ") if found else []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread in which no test has a marker that is asked for: three in four of them."""
    names = _asked(config.option.markexpr)
    if not names or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    return True if not any(f"mark.{name}" in text for name in names) else None


_read_late = DeferredAttribute.__get__


def _read_at_once(self: Any, instance: Any, owner: Any = None) -> Any:
    """A row's fields are of one query: one that was left out would be read later, and changed."""
    if instance is not None and self.field.attname not in instance.__dict__:
        raise AssertionError(f"{self.field} was left out when its row was read")
    return _read_late(self, instance, owner)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the soak out, unless ``-m`` speaks of it or a test is named on the command line.

    The browser's tests come first, then those outside the two packages, which start programs: one
    that takes long and began last would keep one worker busy while the others have nothing left.
    """
    named = any("::" in argument for argument in config.args)
    if "soak" not in config.option.markexpr and not named:
        soak = [item for item in items if item.get_closest_marker("soak")]
        if soak:
            config.hook.pytest_deselected(items=soak)
            items[:] = [item for item in items if item not in soak]
    packages = {Path(__file__).with_name(name) for name in ("chatapp", "compression")}
    items.sort(
        key=lambda item: (
            item.get_closest_marker("browser") is None,
            not packages.isdisjoint(item.path.parents),
        )
    )


def pytest_collection_finish() -> None:
    """What was collected stays, so the garbage collector need not look at it with each test."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Let units of work end whose awaiters were cancelled: emptying tables would wait for them."""
    drain()


@pytest.fixture(scope="session", autouse=True)
def only_this_computer() -> Iterator[None]:
    """No test reaches a real model, nor anything else outside."""
    network.forbid()
    yield
    network.allow()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Close the threads' connections before the test database goes."""
    with django_db_blocker.unblock():
        emptying.remember()
    yield
    close_pools()
    # Django's own asynchronous queries run in this one.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


def _person(name: str) -> User:
    return User.objects.create_user(name, password=f"the password of {name}")


@pytest.fixture
def alice(db: None) -> User:
    """Owns what a test makes."""
    return _person("alice")


@pytest.fixture
def bob(db: None) -> User:
    """A stranger to alice's conversations."""
    return _person("bob")


@pytest.fixture
def owner(db: None) -> User:
    """The superuser of the first start."""
    return User.objects.create_superuser("owner")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """``start_server`` in the test's own folder; whatever it started ends with the test."""
    started: list[RunningServer] = []

    def start(**options: object) -> RunningServer:
        server = start_server(tmp_path, **options)  # type: ignore[arg-type]
        started.append(server)
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server(serve: Callable[..., RunningServer]) -> RunningServer:
    """The product with the demo model and a SQLite file of its own."""
    return serve()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's browser. Its absence is a failure, with the command that helps."""
    return browsers.find_chromium()


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A headless Chromium."""
    async with browsers.launched() as launched:
        yield launched


@pytest.fixture
async def browser_context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A fresh profile: no cookies, nothing stored."""
    context = await browser.new_context()
    yield context
    await context.close()
