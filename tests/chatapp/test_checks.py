"""What is wrong with the settings is said before anything is served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from tests.forks import completed
from tests.servers import ROOT

SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "django.db.backends.postgresql"
KEY = "0123456789" * 5
GOOD = {
    "SECRET_KEY": KEY,
    "ALLOWED_ORIGINS": ["https://chat.example.org"],
    "ALLOWED_HOSTS": ["chat.example.org"],
    "OPENAI_BASE_URL": "",
    "OPENAI_API_KEY": "",
    "SUMMARY_BASE_URL": "",
    "SUMMARY_API_KEY": "",
    "SUMMARY_MODEL": "",
    "CHAT_MODEL": "",
    "ACTIVITY_LOG_DIR": "",
    "REDIS_URL": "",
    "DEBUG": False,
}


def ours(settings: Settings, **values: object) -> list[str]:
    """Ids of the chat's findings with these settings."""
    for name, value in (GOOD | values).items():
        setattr(settings, name, value)
    found = (message.id or "" for message in run_checks())
    return sorted(name for name in found if name.startswith("chatapp."))


def test_it_works(settings: Settings) -> None:
    assert ours(settings) == []


@pytest.mark.parametrize(
    "key", ["short", "x" * 60, "django-insecure-0123456789012345678901234567890123456789"]
)
def test_a_key_that_can_be_guessed(settings: Settings, key: str) -> None:
    assert ours(settings, SECRET_KEY=key) == ["chatapp.E001"]


@pytest.mark.parametrize(
    "origin",
    [
        "chat.example.org",
        "ws://chat.example.org",
        "https://chat.example.org/",
        "https://chat.example.org:port",
        "https://user@chat.example.org",
        "https://",
        "https://[",
        "*",
    ],
)
def test_an_origin_is_scheme_host_and_port(settings: Settings, origin: str) -> None:
    assert ours(settings, ALLOWED_ORIGINS=[origin]) == ["chatapp.E002"]


def test_an_origin_that_django_would_refuse(settings: Settings) -> None:
    assert ours(settings, ALLOWED_ORIGINS=["https://other.example.org"]) == ["chatapp.E003"]
    assert ours(settings, ALLOWED_HOSTS=[".example.org"]) == []


@pytest.mark.parametrize(
    "address", ["localhost:11434", "ftp://x/v1", "https://name:word@x/v1", "https://[", "http://"]
)
def test_a_model_server_is_an_address(settings: Settings, address: str) -> None:
    assert ours(settings, OPENAI_BASE_URL=address) == ["chatapp.E004"]


def test_a_password_in_the_address_is_not_repeated(settings: Settings) -> None:
    ours(settings, OPENAI_BASE_URL="https://name:hunter2@example.org/v1")
    assert "hunter2" not in "".join(str(message) for message in run_checks())


def test_a_model_server_without_a_key(settings: Settings) -> None:
    assert ours(settings, OPENAI_BASE_URL="https://api.example.org/v1") == ["chatapp.W003"]
    assert ours(settings, OPENAI_BASE_URL="http://127.0.0.1:11434/v1") == []


def test_a_log_that_cannot_be_written(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ours(settings, ACTIVITY_LOG_DIR=str(tmp_path / "file" / "log")) == ["chatapp.E005"]
    assert ours(settings, ACTIVITY_LOG_DIR=str(tmp_path / "new" / "log")) == []


def test_redis(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ours(settings, REDIS_URL="localhost:6379") == ["chatapp.E006"]
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", SQLITE)
    assert ours(settings, REDIS_URL="redis://localhost:6379/0") == ["chatapp.W001"]
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", POSTGRESQL)
    assert ours(settings, REDIS_URL="redis://localhost:6379/0") == []


def test_debug_in_public(settings: Settings) -> None:
    assert ours(settings, DEBUG=True) == ["chatapp.W002"]
    local = ["http://127.0.0.1:8000"]
    assert ours(settings, DEBUG=True, ALLOWED_ORIGINS=local, ALLOWED_HOSTS=["127.0.0.1"]) == []


def deployed(tmp_path: Path) -> dict[str, str]:
    """A deployment's settings, and nothing else that a program is given."""
    return {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": KEY,
        "ALLOWED_HOSTS": "chat.example.org",
        "ALLOWED_ORIGINS": "https://chat.example.org",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'deployed.sqlite3'}",
    }


def manage(tmp_path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``manage.py`` with them and ``env``."""
    return completed(arguments, deployed(tmp_path) | env, timeout=60)


def test_i32_a_deployment_is_clean(tmp_path: Path) -> None:
    """I32: ``check --deploy`` finds nothing with https origins.

    Breaks when: SECURE_HSTS_SECONDS, or any cookie's Secure, is left out of the settings.
    """
    checks = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:chatapp", *checks],
        cwd=ROOT,
        env=deployed(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    # How long and how far browsers insist on https is the host's choice.
    assert "no issues (2 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({}, "max-age=31536000"),
        ({"HSTS_INCLUDE_SUBDOMAINS": "true"}, "max-age=31536000; includeSubDomains"),
        ({"HSTS_PRELOAD": "true"}, "max-age=31536000; preload"),
    ],
)
def test_other_hosts_of_the_domain_are_bound_by_choice_only(
    tmp_path: Path, chosen: dict[str, str], told: str
) -> None:
    """Breaks when: either is on whenever the origins are https."""
    code = (
        "from django.test import Client;"
        "print('told', Client(SERVER_NAME='chat.example.org').get('/healthz', secure=True)"
        "['Strict-Transport-Security'])"
    )
    done = manage(tmp_path, "shell", "--no-imports", "-c", code, **chosen)
    assert f"told {told}\n" in done.stdout, done.stderr


def test_i32_the_models_have_their_migrations(tmp_path: Path) -> None:
    """I32: a fresh database gets every table.

    Breaks when: a model's field is changed without ``makemigrations``.
    """
    done = manage(tmp_path, "makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS", "ALLOWED_ORIGINS"])
def test_s01_a_deployment_without_its_own_values_refuses_to_start(
    tmp_path: Path, name: str
) -> None:
    done = manage(tmp_path, "check", **{name: ""})
    assert done.returncode == 1
    assert f"{name} is not set" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("CONTEXT_WINDOW", "abc", "CONTEXT_WINDOW must be a whole number, not 'abc'."),
        (
            "COMPRESSION_THRESHOLD",
            "80 %",
            "COMPRESSION_THRESHOLD must be a number from 0.5 to 0.95, not '80 %'.",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "serve"])
def test_what_is_not_understood_is_refused_in_one_sentence(
    tmp_path: Path, command: str, name: str, value: str, sentence: str
) -> None:
    """Breaks when: manage.py lets the exception through."""
    done = manage(tmp_path, command, **{name: value})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {sentence}\n")


@pytest.mark.parametrize(("given", "how", "used"), [("0.2", "low", "0.5"), ("80", "high", "0.95")])
def test_a_threshold_that_is_taken_as_the_nearest_is_said(
    tmp_path: Path, given: str, how: str, used: str
) -> None:
    """Breaks when: it is clamped silently."""
    done = manage(tmp_path, "check", COMPRESSION_THRESHOLD=given)
    assert done.returncode == 0
    assert f"COMPRESSION_THRESHOLD is {given}, which is too {how}: {used} is used." in done.stderr
    assert manage(tmp_path, "check", COMPRESSION_THRESHOLD="0.5").stderr == ""


@pytest.mark.parametrize("setting", ["CHANNEL_LAYERS", "CACHES"])
def test_deployments_on_one_redis_do_not_meet(tmp_path: Path, setting: str) -> None:
    """What one deployment publishes or counts is told apart from another's, not by the database
    number: Redis's channels have none.

    Breaks when: the prefix is left out, or the same for every deployment.
    """
    told = {
        line
        for key in (KEY, KEY[::-1])
        for line in manage(
            tmp_path, "diffsettings", SECRET_KEY=key, REDIS_URL="redis://localhost:6379/0"
        ).stdout.splitlines()
        if line.startswith(f"{setting} = ")
    }
    assert len(told) == 2


def test_earlier_secret_keys(tmp_path: Path) -> None:
    """Breaks when: whoever changes the secret key cannot name the one before."""
    told = manage(tmp_path, "diffsettings", SECRET_KEY_FALLBACKS=f"{KEY[::-1]}, another").stdout
    assert f"SECRET_KEY_FALLBACKS = {[KEY[::-1], 'another']}" in told


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"SUMMARY_API_KEY": "k"}, ["chatapp.E007"]),
        ({"SUMMARY_BASE_URL": "http://127.0.0.1:9/v1"}, ["chatapp.E008"]),
        ({"SUMMARY_BASE_URL": "http://127.0.0.1:9/v1", "SUMMARY_MODEL": "m"}, []),
        ({"SUMMARY_BASE_URL": "http://127.0.0.1:9/v1", "CHAT_MODEL": "m"}, []),
        ({"SUMMARY_BASE_URL": "https://user:word@x/v1", "SUMMARY_MODEL": "m"}, ["chatapp.E004"]),
        ({"SUMMARY_BASE_URL": "https://example.org/v1", "SUMMARY_MODEL": "m"}, ["chatapp.W003"]),
    ],
)
def test_the_server_for_summaries(
    settings: Settings, values: dict[str, str], found: list[str]
) -> None:
    """The chat's key is no stand-in for the one of this server.

    Breaks when: a key without an address is passed over.
    """
    assert ours(settings, OPENAI_API_KEY="of-the-chat", **values) == found
