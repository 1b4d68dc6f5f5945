"""Exceptions of the SDK and the HTTP library as our own errors: no URL, key or stack in them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx2
from openai import OpenAIError

from chatapp.llm.errors import (
    LLMError,
    MalformedReply,
    ReplyCut,
    RequestRefused,
    ServerTimeout,
    ServerUnreachable,
    WrongKey,
)
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.tools.addresses import AddressRefused

_EXPECTED = (
    OpenAIError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    OSError,
    ValueError,
)


def opening_error(error: Exception, limits: Limits) -> Exception:
    """The error for an exception before the server answered; one not of its making stays itself."""
    if isinstance(error, LLMError) or not isinstance(error, _EXPECTED):
        return error
    causes = tuple(_causes(error))
    for cause in causes:
        if found := _known_cause(cause, limits):
            return found
    if isinstance(error, ValueError):
        return MalformedReply()
    if any(isinstance(cause, httpx2.TransportError | OSError) for cause in causes):
        unreachable = ServerUnreachable()
        unreachable.passing = True
        return unreachable
    return MalformedReply()


def reading_error(error: Exception) -> Exception:
    """The error for an exception while the reply was read."""
    if isinstance(error, LLMError) or not isinstance(error, _EXPECTED):
        return error
    if isinstance(error, httpx2.DecodingError):
        return MalformedReply()
    return ReplyCut()


def _known_cause(cause: BaseException, limits: Limits) -> LLMError | None:
    """The error of one link of the chain, if that link alone tells it."""
    match cause:
        case httpx2.ConnectTimeout():
            return ServerTimeout.of("connect", limits.connect)
        case AddressRefused(always=True):
            return ServerUnreachable(
                "The model server's address is one that is never connected to, such as those where "
                "clouds keep the keys of their machines."
            )
        case AddressRefused():
            return ServerUnreachable(
                "The model server's address is on this computer or in its network, and this "
                "connection may not lead there. If it is meant to, an owner can tick “On this "
                "computer or in its network” when connecting it."
            )
        case httpx2.PoolTimeout():
            return ServerUnreachable(
                "Too many replies are being written at once. Wait a little, then retry."
            )
        case socket.gaierror():
            return ServerUnreachable(
                "The model server's name is not known to the network. Check OPENAI_BASE_URL and "
                "the connection, then retry."
            )
        case ssl.SSLError():
            return ServerUnreachable(
                "No secure connection to the model server could be made: its certificate is not "
                "trusted, or it speaks plain http. Check OPENAI_BASE_URL."
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ServerUnreachable(
                "The model server's address is not usable. OPENAI_BASE_URL should begin with "
                "http:// or https://."
            )
        case httpx2.LocalProtocolError():
            return WrongKey(_BAD_KEY)
        case UnicodeEncodeError(encoding="ascii"):
            return WrongKey(_BAD_KEY)
        case UnicodeEncodeError():
            return RequestRefused("The conversation holds characters that cannot be sent.")
    return None


_BAD_KEY = (
    "The API key holds characters that cannot be sent. An administrator should check "
    "OPENAI_API_KEY for spaces, line ends and quotation marks."
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it came from, outermost first."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        waiting.extend(cause for cause in (one.__cause__, one.__context__) if cause is not None)
