"""No token of a sign-in link in any line of the log."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatapp.accounts import signin_links
from chatapp.deployment.log_redaction import redact_records, without_tokens
from tests.servers import RunningServer, manage

TOKEN = "c1x2y3-0123456789abcdef0123456789abcdef"


class Lines(logging.Handler):
    """What a handler of somebody else's writes."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(f"{record.getMessage()} {record.args}")


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler = Lines()
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler.written
    root.removeHandler(handler)


@pytest.mark.parametrize(
    "text",
    [
        f"Forbidden (no cookie): /accounts/link/MQ/{TOKEN}/",
        f'"GET /accounts/link/MQ/{TOKEN}/?a=b HTTP/1.1" 200',
        f"/accounts/login/?next=%2Faccounts%2Flink%2FMQ%2F{TOKEN}%2F",
        f"Referer checking failed - http://a.example/accounts/link/MQ/{TOKEN} does not match",
        f"<ASGIRequest: POST '/accounts/link/MQ/{TOKEN}'>",
        f"Not Found: /s/{TOKEN}/",
    ],
)
def test_a_token_is_found_wherever_it_stands(text: str) -> None:
    assert TOKEN not in without_tokens(text)
    assert "[token]" in without_tokens(text)


@pytest.mark.parametrize("text", ["/c/0b6e/messages/", "a link / that is none", "/link/", ""])
def test_other_lines_stay(text: str) -> None:
    assert without_tokens(text) == text


def test_arguments_stay_as_many(lines: list[str]) -> None:
    """uvicorn's access log unpacks its five.

    Breaks when: a record with a token in its arguments loses them.
    """
    redact_records()
    access = ("127.0.0.1:5", "GET", f"/accounts/link/MQ/{TOKEN}/", "1.1", 200)
    logging.getLogger("tests.access").warning('%s - "%s %s HTTP/%s" %d', *access)
    assert len(lines) == 1
    assert TOKEN not in lines[0]
    assert "200)" in lines[0]


def test_what_is_no_text_is_redacted_too(lines: list[str]) -> None:
    redact_records()
    path = {"path": f"/accounts/link/MQ/{TOKEN}/"}
    logging.getLogger("tests.other").warning("seen %s", path)
    logging.getLogger("tests.other").warning("seen %(path)s", path)
    assert [line for line in lines if TOKEN in line] == []
    assert sum("[token]" in line for line in lines) == 2


def test_j02_nor_does_a_traceback_name_one() -> None:
    """J02: as of the error for an address without its last slash, while DEBUG is on.

    Breaks when: only the message of a record is looked at, and not its exception.
    """
    redact_records()
    written = io.StringIO()
    logger, handler = logging.getLogger("tests.raising"), logging.StreamHandler(written)
    logger.addHandler(handler)
    try:
        raise RuntimeError(f"no slash at the end of /accounts/link/MQ/{TOKEN}")
    except RuntimeError:
        logger.exception("It failed.")
    logger.removeHandler(handler)
    assert "RuntimeError: no slash" in written.getvalue()
    assert "link/MQ/[token]" in written.getvalue()
    assert TOKEN not in written.getvalue()


@pytest.mark.django_db
def test_j02_no_refusal_names_an_unspent_token(lines: list[str]) -> None:
    """J02: forged, by a wrong method, beside the link's path, and used already.

    Breaks when: the factory of records is not put in place, or leaves out where Django's log
    keeps the path.
    """
    person = User.objects.create_user("anna")
    path = signin_links.signin_link(person, "http://testserver").removeprefix("http://testserver")
    token = path.split("/")[-2]
    client = Client(enforce_csrf_checks=True)
    assert client.post(path).status_code == 403
    assert client.put(path).status_code in {403, 405}
    assert client.get(f"{path}more/").status_code == 404
    assert client.get(path.rstrip("/")).status_code in {301, 404}
    assert Client().delete(path).status_code == 405
    assert Client().post(path).status_code == 302
    assert Client().post(path).status_code == 410
    assert len(lines) >= 5
    assert [line for line in lines if token in line] == []


def test_the_link_is_not_told_as_where_one_comes_from(client: Client, alice: User) -> None:
    """Breaks when: the page's style sheet is asked for with the link as Referer."""
    path = signin_links.signin_link(alice, "http://testserver").removeprefix("http://testserver")
    for answer in (client.get(path), client.post(path), client.get(path)):
        assert answer["Referrer-Policy"] == "strict-origin"


def test_j02_a_server_writes_no_token(serve: Callable[..., RunningServer]) -> None:
    """J02: what stands in the log of the process itself, but for the line that is the link."""
    server = serve()
    link = manage(server, "signin_link").strip()
    token = link.split("/")[-2]
    path = re.sub(r"^https?://[^/]+", "", link)
    with httpx2.Client(base_url=server.base_url) as client:
        assert client.post(path).status_code == 403
        assert client.get(f"{path}more/").status_code == 404
    server.terminate()
    # The link of its start is the same one where both were made in one second.
    logged = [line for line in server.log.splitlines() if not line.startswith("Sign in: ")]
    assert any("Forbidden" in line for line in logged)
    assert [line for line in logged if token in line] == []
