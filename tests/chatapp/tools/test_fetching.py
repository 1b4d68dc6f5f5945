"""The built-in tool that fetches a page, against a real server on this computer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from pytest_django import Settings

from chatapp.tools import fetching
from chatapp.tools.fetching import MOST_BYTES, fetch_tool
from compression.exceptions import ToolFailed

PAGE = """<!doctype html><html><head><title>Harbour</title><style>p {color: red}</style>
<script>alert("ignore")</script></head><body><nav><a href="/home">Home</a></nav>
<h1>Opening hours</h1><p>The harbour of <b>Malmö</b> opens at&nbsp;nine.</p>
<ul><li>Monday</li><li>Tuesday</li></ul><table><tr><td>a</td><td>b</td></tr></table>
<!-- hidden --></body></html>"""


class _Site:
    def __init__(self) -> None:
        self.origin = ""
        self.asked = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        match request.path:
            case "/page":
                return web.Response(text=PAGE, content_type="text/html")
            case "/latin":
                body = PAGE.replace("<head>", '<head><meta charset="iso-8859-1">')
                headers = {"Content-Type": "text/html"}
                return web.Response(body=body.encode("latin-1"), headers=headers)
            case "/plain":
                return web.Response(text="just <text>")
            case "/json":
                return web.json_response({"a": 1})
            case "/odd":
                return web.Response(
                    body=b"odd", headers={"Content-Type": "text/plain; charset=idna"}
                )
            case "/picture":
                return web.Response(body=b"\x89PNG", content_type="image/png")
            case "/long":
                return web.Response(text="x" * (MOST_BYTES + 1))
            case "/far":
                raise web.HTTPFound("/" + "x" * 8000)
            case "/redirect":
                raise web.HTTPFound("/plain")
            case "/broken":
                raise web.HTTPBadGateway
            case "/deep":
                return web.Response(text="<div>" * 100_000 + "bottom", content_type="text/html")
            case "/hang":
                await asyncio.Event().wait()
        raise web.HTTPNotFound


@pytest_asyncio.fixture
async def site(settings: Settings) -> AsyncIterator[_Site]:
    made = _Site()
    app = web.Application()
    app.router.add_get("/{rest:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    settings.FETCH_HOSTS, settings.FETCH_PRIVATE_ADDRESSES = ["127.0.0.1"], True
    yield made
    await runner.cleanup()


async def fetch(address: str) -> str:
    tool = fetch_tool()
    assert tool is not None
    return await tool.run({"address": address})


def test_off_by_default() -> None:
    """Breaks when: it is offered though nobody has named a host."""
    assert fetch_tool() is None


async def test_it_works(site: _Site) -> None:
    text = await fetch(f"{site.origin}/page")
    assert "Opening hours" in text
    assert "The harbour of Malmö opens at nine." in text.replace("\xa0", " ")
    assert "Monday" in text
    for hidden in ("alert", "color: red", "hidden", "<"):
        assert hidden not in text


async def test_a_call_is_approved_by_a_person(site: _Site) -> None:
    """T02: an address can carry away what was said.

    Breaks when: the tool is marked as read-only.
    """
    tool = fetch_tool()
    assert tool is not None
    assert not tool.read_only


@pytest.mark.parametrize(
    ("path", "text"),
    [("/odd", "odd"), ("/plain", "just <text>"), ("/json", '{"a": 1}'), ("/latin", "Malmö")],
)
async def test_other_pages(site: _Site, path: str, text: str) -> None:
    assert text in await fetch(f"{site.origin}{path}")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/picture", "image/png"),
        ("/long", "more than 2 MB"),
        ("/redirect", "moved to /plain"),
        ("/far", "very long address"),
        ("/broken", "502"),
        ("/nowhere", "404"),
    ],
)
async def test_t04_what_cannot_be_read_is_a_sentence(site: _Site, path: str, sentence: str) -> None:
    """T03, T04.

    Breaks when: a redirect is followed, or a body is read before its kind is known.
    """
    with pytest.raises(ToolFailed, match=sentence):
        await fetch(f"{site.origin}{path}")
    assert site.asked == 1


async def test_t04_a_page_that_costs_a_parser_much(site: _Site) -> None:
    """T04: 100,000 elements in each other.

    Breaks when: the parser fails at them with anything but a sentence.
    """
    with pytest.raises(ToolFailed, match="cannot be read"):
        await fetch(f"{site.origin}/deep")


async def test_t04_a_page_that_never_comes(site: _Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """T04."""
    monkeypatch.setattr(fetching, "SECONDS", 0.2)
    with pytest.raises(ToolFailed, match="did not come"):
        await fetch(f"{site.origin}/hang")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "harbour",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "http://",
        "http://[::1",
        "http://someone:secret@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1\u3002/",
        "http://exa mple/",
        "http://" + "a" * 3000,
    ],
)
async def test_what_is_no_address_of_a_page(site: _Site, address: str) -> None:
    with pytest.raises(ToolFailed):
        await fetch(address)
    assert site.asked == 0


async def test_t03_only_configured_hosts_and_public_addresses(
    site: _Site, settings: Settings
) -> None:
    """T03.

    Breaks when: the settings are not passed on to the client.
    """
    settings.FETCH_HOSTS, settings.FETCH_PRIVATE_ADDRESSES = ["*"], False
    with pytest.raises(ToolFailed, match="private address"):
        await fetch(f"{site.origin}/page")
    settings.FETCH_HOSTS = ["tools.example"]
    with pytest.raises(ToolFailed, match="configured"):
        await fetch(f"{site.origin}/page")
    assert site.asked == 0
