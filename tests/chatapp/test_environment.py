from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatapp import environment
from tests.ports import free_port
from tests.servers import ROOT, server_environment

NAME = "PALIMPSEST_TEST_VALUE"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv(NAME, raising=False)
    return monkeypatch


def test_it_works(given: pytest.MonkeyPatch) -> None:
    assert environment.text(NAME, "default") == "default"
    given.setenv(NAME, "  value ")
    assert environment.text(NAME, "default") == "value"


def test_empty_means_default_or_off(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, " ")
    assert environment.text(NAME, "default") == "default"
    assert environment.text_or_off(NAME, "default") == ""
    given.delenv(NAME)
    assert environment.text_or_off(NAME, "default") == "default"


def test_listing(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, " a, b ,,c,")
    assert environment.listing(NAME) == ["a", "b", "c"]
    given.delenv(NAME)
    assert environment.listing(NAME, "x,y") == ["x", "y"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("YES", True), ("on", True), ("0", False), ("False", False), ("off", False)],
)
def test_boolean(given: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    given.setenv(NAME, value)
    assert environment.boolean(NAME, not expected) is expected


def test_numbers(given: pytest.MonkeyPatch) -> None:
    assert environment.integer(NAME, 7) == 7
    given.setenv(NAME, "12")
    assert environment.integer(NAME, 7, least=12) == 12
    given.setenv(NAME, "0.7")
    assert environment.share(NAME, 0.5, low=0.1, high=0.9) == 0.7


@pytest.mark.parametrize("value", ["maybe", "1.5", "nan", "12 cats", "١٢x"])
def test_what_is_no_value_is_refused_by_name(given: pytest.MonkeyPatch, value: str) -> None:
    given.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        environment.boolean(NAME)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        environment.integer(NAME, 1)


def test_no_share_is_the_default(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, "")
    assert environment.share(NAME, 0.5, low=0.1, high=0.9) == 0.5


@pytest.mark.parametrize("value", ["nan", "inf", "one half", "80 %"])
def test_what_is_no_share_is_refused(given: pytest.MonkeyPatch, value: str) -> None:
    given.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured) as caught:
        environment.share(NAME, 0.5, low=0.1, high=0.9)
    assert str(caught.value) == f"{NAME} must be a number from 0.1 to 0.9, not {value!r}."


@pytest.mark.parametrize(
    ("value", "nearest"), [("-1", 0.1), ("0.05", 0.1), ("0.3", 0.3), ("0.95", 0.9), ("80", 0.9)]
)
def test_a_share_is_taken_as_the_nearest(
    given: pytest.MonkeyPatch, value: str, nearest: float
) -> None:
    given.setenv(NAME, value)
    assert environment.share(NAME, 0.5, low=0.1, high=0.9) == nearest


def test_a_number_below_the_least_is_refused(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, "0")
    with pytest.raises(ImproperlyConfigured, match="at least 1"):
        environment.integer(NAME, 5, least=1)


def test_sqlite(given: pytest.MonkeyPatch) -> None:
    found = environment.database(NAME, "sqlite:///var/file.sqlite3")
    assert found["NAME"] == "var/file.sqlite3"
    options = found["OPTIONS"]
    assert isinstance(options, dict)
    assert options["transaction_mode"] == "IMMEDIATE"
    assert options["timeout"] == 20
    given.setenv(NAME, "sqlite:////absolute/file.sqlite3")
    assert environment.database(NAME, "")["NAME"] == "/absolute/file.sqlite3"


def test_postgres(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, "postgres://us%40er:p%2Fw@host:5433/data%20base?sslmode=require")
    found = environment.database(NAME, "")
    parts = ("USER", "PASSWORD", "HOST", "PORT", "NAME")
    assert [found[part] for part in parts] == ["us@er", "p/w", "host", "5433", "data base"]
    options = found["OPTIONS"]
    assert isinstance(options, dict)
    assert options["sslmode"] == "require"
    assert options["pool"]


def test_the_sentence_about_a_wrong_url_does_not_quote_it(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAME, "mysql://me:secret@host/db")
    with pytest.raises(ImproperlyConfigured) as caught:
        environment.database(NAME, "")
    assert NAME in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("value", "amount"), [("", 0.0), ("0", 0.0), ("2.5", 2.5), ("1e7", 1e7)])
def test_an_amount_is_what_is_given(given: pytest.MonkeyPatch, value: str, amount: float) -> None:
    given.setenv(NAME, value)
    assert environment.amount(NAME) == amount


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "two", "1,50"])
def test_what_is_no_amount_is_refused(given: pytest.MonkeyPatch, value: str) -> None:
    """A limit that was meant must not turn into none.

    Breaks when: an amount below 0 is taken as 0.
    """
    given.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured) as caught:
        environment.amount(NAME)
    assert str(caught.value) == f"{NAME} must be a number of at least 0, not {value!r}."


def test_a_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two"
    assert environment.folder(NAME, path) == environment.folder(NAME, path) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_what_can_be_no_folder_is_said_in_a_sentence(tmp_path: Path) -> None:
    """Breaks when: the start ends with the traceback of ``mkdir``."""
    (tmp_path / "a file").write_text("")
    for path in (tmp_path / "a file", tmp_path / "a file" / "in it"):
        with pytest.raises(ImproperlyConfigured, match=rf"^{NAME}: {path} cannot be created"):
            environment.folder(NAME, path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DAILY_COST_PER_USER", "-5", "must be a number of at least 0"),
        ("IMPORT_DIR", "/dev/null/imports", "cannot be created or entered"),
        ("DATABASE_URL", "sqlite:////dev/null/chat.sqlite3", "cannot be created or entered"),
    ],
)
def test_the_settings_refuse_it_at_start(tmp_path: Path, name: str, value: str, said: str) -> None:
    """Breaks when: a limit below 0 is no limit, or a folder fails at the first import only."""
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**server_environment(tmp_path, free_port()), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
