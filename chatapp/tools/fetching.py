"""The built-in tool that fetches a web page as text, if an operator switches it on."""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from chatapp.text.safety import without_hidden
from chatapp.tools.addresses import Reach
from chatapp.tools.outbound import BodyTooLarge, outbound_client
from chatapp.tools.pages import TooDeep, page_text
from chatapp.version import VERSION
from compression.exceptions import ToolFailed
from compression.tools.tool import Tool

#: Bytes of a page, and seconds for all of it.
MOST_BYTES = 2 * 1024 * 1024
SECONDS = 20.0
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_ENCODING = re.compile(r"utf-8|utf-16.*|ascii|(iso|cp|mac|koi|shift|euc|gb|big5|hz|tis).*")
# Characters of an address or a kind that is told.
_SHOWN = 500
# Where an HTML page has to name its encoding.
_HEAD_BYTES = 1024
_READABLE = re.compile(r"text/.*|application/([\w.+-]*\+)?(json|xml)|application/javascript")
_HTML = frozenset({"text/html", "application/xhtml+xml"})


def fetch_tool() -> Tool | None:
    """The tool that fetches a page, if the settings name hosts that it may reach."""
    if not settings.FETCH_HOSTS:
        return None
    reach = Reach(
        hosts=frozenset(host.lower() for host in settings.FETCH_HOSTS),
        private=settings.FETCH_PRIVATE_ADDRESSES,
    )
    return _fetching(reach)


def _fetching(reach: Reach) -> Tool:
    return Tool(
        name="fetch_page",
        description="Fetch a web page and read it as text. Redirects are not followed.",
        parameters={
            "type": "object",
            "properties": {
                "address": {"type": "string", "description": "Begins with https:// or http://."}
            },
            "required": ["address"],
            "additionalProperties": False,
        },
        run=partial(_fetch, reach),
        # An address can carry what was said here to whoever owns it, so a person looks at it.
        read_only=False,
    )


async def _fetch(reach: Reach, arguments: Mapping[str, Any]) -> str:
    address = str(arguments["address"]).strip()
    _check(address)
    agent = {"User-Agent": f"Palimpsest/{VERSION}", "Accept": "text/html, text/*;q=0.9, */*;q=0.1"}
    try:
        async with (
            asyncio.timeout(SECONDS),
            outbound_client(reach, most_bytes=MOST_BYTES, headers=agent, seconds=SECONDS) as client,
            client.stream("GET", address) as response,
        ):
            kind = _kind(response)
            body = await response.aread()
    except TimeoutError:
        raise ToolFailed(f"The page did not come within {SECONDS:.0f} seconds.") from None
    except BodyTooLarge:
        raise ToolFailed(f"The page has more than {MOST_BYTES // 2**20} MB.") from None
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        raise ToolFailed(f"The page could not be fetched: {error}") from None
    return await asyncio.to_thread(_as_text, body, kind, response.charset_encoding)


def _check(address: str) -> None:
    """Raises ToolFailed for what is no address of a page."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ToolFailed("An address begins with https:// or http:// and names a host.")
    if parts.username or parts.password:
        raise ToolFailed("The address must not hold a name or a password.")


def _kind(response: httpx2.Response) -> str:
    """The content type of a page that can be read. Raises ToolFailed for any other answer."""
    if response.has_redirect_location:
        location = without_hidden(response.headers["Location"])
        if len(location) > _SHOWN:
            raise ToolFailed("The page has moved to a very long address, which is not followed.")
        raise ToolFailed(
            f"The page has moved to {location}. Redirects are not followed; call again with that "
            "address if it is the right one."
        )
    if not response.is_success:
        raise ToolFailed(f"The server answered {response.status_code} {response.reason_phrase}.")
    kind = str(response.headers.get("Content-Type", "")).partition(";")[0].strip().lower()
    if not _READABLE.fullmatch(kind):
        raise ToolFailed(f"The page is {kind[:_SHOWN] or 'of no known kind'}, which is no text.")
    return kind


def _encoding(charset: str | None) -> str:
    """The encoding of a page, if it is one of pages; some of Python's are no text's, or slow."""
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _ENCODING.fullmatch(name) else "utf-8"


def _as_text(body: bytes, kind: str, charset: str | None) -> str:
    if kind in _HTML and not charset:
        named = _CHARSET.search(body[:_HEAD_BYTES])
        charset = named[1].decode() if named else None
    text = body.decode(_encoding(charset), "replace")
    if kind not in _HTML:
        return text
    try:
        return page_text(text)
    except TooDeep:
        raise ToolFailed("The page is built so that it cannot be read.") from None
