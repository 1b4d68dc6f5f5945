"""Which address of X-Forwarded-For is believed."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from chatapp.accounts import limits
from chatapp.deployment.proxies import behind, forwarded_for
from tests.servers import RunningServer


def headers(*values: str) -> list[tuple[bytes, bytes]]:
    return [(b"X-Forwarded-For", value.encode()) for value in values]


def test_it_works() -> None:
    assert forwarded_for(headers("192.0.2.1"), 1) == "192.0.2.1"
    assert forwarded_for(headers("192.0.2.1, 10.0.0.1"), 2) == "192.0.2.1"


@pytest.mark.parametrize(
    "sent", [["evil", "192.0.2.1"], ["9.9.9.9, 8.8.8.8", "192.0.2.1"], ["9.9.9.9,192.0.2.1"]]
)
def test_n04_what_the_sender_wrote_is_not_believed(sent: list[str]) -> None:
    """N04: it stands before what the proxy appended, in the same line or another one.

    Breaks when: entries are counted from the beginning, or only the first line is read.
    """
    assert forwarded_for(headers(*sent), 1) == "192.0.2.1"
    assert forwarded_for(headers(*sent, "10.0.0.1"), 2) == "192.0.2.1"


@pytest.mark.parametrize(
    ("sent", "proxies"),
    [([], 1), (["192.0.2.1"], 0), (["192.0.2.1"], 2), (["unknown"], 1), ([""], 1), (["a, "], 1)],
)
def test_without_an_address_it_is_the_connections(sent: list[str], proxies: int) -> None:
    assert forwarded_for(headers(*sent), proxies) is None


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("192.0.2.1:443", "192.0.2.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
    ],
)
def test_ports_are_left_out(entry: str, address: str) -> None:
    assert forwarded_for(headers(entry), 1) == address


@pytest.mark.parametrize(("proxies", "client"), [(0, "10.0.0.9"), (1, "10.0.0.1"), (2, "1.2.3.4")])
async def test_the_application_is_told(proxies: int, client: str) -> None:
    """Breaks when: a socket's or a request's client stays the proxy."""
    seen: list[str] = []

    async def application(scope: object, receive: object, send: object) -> None:
        assert isinstance(scope, dict)
        seen.append(scope["client"][0])

    scope = {"client": ["10.0.0.9", 5], "headers": headers("9.9.9.9, 1.2.3.4, 10.0.0.1")}
    await behind(application, proxies)(scope, None, None)
    # A lifespan has neither.
    await behind(application, proxies)({"client": ["x", 0]}, None, None)
    assert seen == [client, "x"]


def test_n04_a_server_counts_by_what_its_proxy_appended(
    serve: Callable[..., RunningServer],
) -> None:
    """N04: whoever guesses a password writes a new address before it with each attempt.

    Breaks when: the server takes Daphne's reading of the header, which is the first address.
    """
    statuses = []
    with httpx2.Client(
        base_url=serve(arguments=("--behind-proxy",)).base_url, timeout=60
    ) as client:
        client.get("/accounts/login/")
        form = {"username": "anna", "password": "x"}
        form["csrfmiddlewaretoken"] = client.cookies["csrftoken"]
        for number in range(limits.ATTEMPTS + 1):
            address = {"X-Forwarded-For": f"203.0.113.{number}, 192.0.2.1"}
            statuses.append(client.post("/accounts/login/", data=form, headers=address).status_code)
    assert statuses == [200] * limits.ATTEMPTS + [429]
