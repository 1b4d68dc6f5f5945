"""Who looks whether the process lives is answered by whatever name; nobody else is."""

from __future__ import annotations

import pytest
from django.test import AsyncClient, Client
from pytest_django import Settings

ADDRESS = "10.1.2.3:8001"
PATHS = ("/healthz", "/readyz")


@pytest.fixture(autouse=True)
def deployed(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["chat.example.org"]
    settings.SECURE_SSL_REDIRECT = True


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", [ADDRESS, "localhost", "chat.example.org", "no host/"])
async def test_a_probe_is_answered_whatever_its_host(path: str, host: str) -> None:
    """Breaks when: the probes come after what compares the Host."""
    answer = await AsyncClient().get(path, headers={"host": host})
    assert answer.status_code == 200
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]
    assert not answer.cookies


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", PATHS)
def test_a_probe_is_answered_without_an_event_loop(path: str) -> None:
    assert Client().head(path, headers={"host": ADDRESS}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/accounts/login/",
        "/admin/",
        "/nowhere",
        "/healthz/",
        "/healthz/../admin/",
        "//healthz",
        "/HEALTHZ",
        "/readyz%2f",
        "/readyz.json",
    ],
)
async def test_nothing_else_gets_past_the_check_of_the_host(path: str) -> None:
    """Breaks when: a probe is known by the beginning of its path."""
    answer = await AsyncClient().get(path, headers={"host": ADDRESS}, secure=True)
    assert answer.status_code == 400


@pytest.mark.parametrize("path", PATHS)
async def test_a_probe_only_reads(path: str) -> None:
    """Breaks when: any method is taken for a probe."""
    answer = await AsyncClient().post(path, headers={"host": ADDRESS}, secure=True)
    assert answer.status_code == 400
