"""Errors between this program and a model server.

::

    UserFacingError                     (compression.exceptions)
    └── LLMError
        ├── ServerUnreachable           llm_unreachable         502  retryable
        ├── ServerTimeout               llm_timeout             504  retryable  fields: limit
        ├── WrongKey                    llm_auth                502
        ├── ModelUnknown                llm_model_unknown       502
        ├── RateLimitedByServer         llm_rate_limited        503  retryable  retry_after
        ├── QuotaExhausted              llm_quota               502
        ├── ContextOverflow             llm_context_overflow    502             fields: window
        ├── RequestRefused              llm_bad_request         502
        ├── ServerFault                 llm_server_error        502  retryable
        ├── MalformedReply              llm_malformed           502  retryable
        ├── ReplyCut                    llm_cut                 502  retryable
        ├── EmptyReply                  llm_empty               502  retryable
        ├── OnlyReasoning               llm_only_reasoning      502  retryable
        ├── UnofferedToolCall           llm_tool_call           502  retryable  fields: tool
        ├── ToolsWithoutEnd             llm_tools_without_end   502  retryable
        ├── ContentFiltered             llm_filtered            502
        ├── ModelRefused                llm_refused             502
        └── ReplyTooLong                llm_reply_too_long      502

``fields["provider_message"]`` holds the server's own words, cleaned by :func:`clean_words`; the
sentence itself never does. :mod:`chatapp.llm.openai_compatible.classify` chooses the class for a
server's answer. Do not raise :class:`LLMError` itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from compression.exceptions import UserFacingError

#: Characters that a card shows without scrolling.
MAX_PROVIDER_MESSAGE = 500

_TAG = re.compile(r"<(script|style)\b.*?(</\1\s*>|$)|<!--.*?(-->|$)|<[^<>]*>", re.I | re.S)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/@]+@")
_SECRET = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf|key|tok)[-_][A-Za-z0-9*._\-]{6,}"
    r"|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|\beyJ[A-Za-z0-9_\-]{10,}(?:\.[A-Za-z0-9_\-]+)*"
    r"|(?<=[Bb]earer )\S+|(?<=[Bb]asic )[A-Za-z0-9+/=]{8,}"
    r"|[?&](?:api_?key|key|token|access_token)=[^&\s]+",
)
#: Control characters, invisible ones, direction overrides and lone surrogates.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+"
)


def clean_words(words: str, *, secrets: tuple[str, ...] = ()) -> str:
    """A server's words on one line, without markup, control characters, keys or URL credentials.

    ``secrets`` are exact strings to remove, such as the key in use. Returns at most
    :data:`MAX_PROVIDER_MESSAGE` characters.
    """
    words = words[: MAX_PROVIDER_MESSAGE * 40]
    for secret in secrets:
        if secret:
            words = words.replace(secret, "…")
    words = _TAG.sub(" ", words)
    words = _CONTROL.sub(" ", words)
    words = _URL_CREDENTIALS.sub("…@", words)
    words = _SECRET.sub("…", words)
    words = " ".join(words.replace("<", " ").split())
    return words if len(words) <= MAX_PROVIDER_MESSAGE else words[: MAX_PROVIDER_MESSAGE - 1] + "…"


class LLMError(UserFacingError):
    """Root of the errors of a model server.

    ``http_status`` is the status of the answer; 0 if there was none, or it was 200. ``parameter``
    is the part of the request that the server objected to, if it named one.
    """

    status = 502

    def __init__(
        self,
        message: str = "",
        *,
        provider_message: str = "",
        http_status: int = 0,
        parameter: str = "",
        retry_after: float | None = None,
        **fields: Any,
    ) -> None:
        if provider_message:
            fields["provider_message"] = clean_words(provider_message)
        super().__init__(message, fields=fields, retry_after=retry_after)
        self.http_status = http_status
        self.parameter = parameter

    @property
    def provider_message(self) -> str:
        """The server's own words, cleaned; empty if it had none."""
        return str(self.fields.get("provider_message", ""))


class ServerUnreachable(LLMError):
    """There was no connection, or it was closed before any answer.

    ``passing`` is true when the same request may well succeed a moment later.
    """

    passing: bool = False
    code = "llm_unreachable"
    retryable = True
    default_message = (
        "The model server cannot be reached. Check that it runs and that its address is right, "
        "then retry."
    )


class ServerTimeout(LLMError):
    """A time limit of the client has passed; ``fields["limit"]`` names it."""

    code = "llm_timeout"
    status = 504
    retryable = True
    default_message = "The model server took too long. Retry, or try a shorter message."

    SENTENCES: ClassVar[Mapping[str, str]] = {
        "connect": "The model server did not accept a connection within {seconds:g} s.",
        "first_token": "The model server did not begin a reply within {seconds:g} s.",
        "between_tokens": "The model server paused for more than {seconds:g} s within its reply.",
        "closing": "The model server did not end its reply within {seconds:g} s.",
        "total": "The reply was not finished after {seconds:g} s, the longest this program waits.",
    }

    @classmethod
    def of(cls, limit: str, seconds: float) -> ServerTimeout:
        """The error for a limit: its key in ``SENTENCES``, and its length in seconds."""
        sentence = cls.SENTENCES[limit].format(seconds=seconds)
        return cls(f"{sentence} Retry, or try another model.", limit=limit, seconds=seconds)


class WrongKey(LLMError):
    """The server requires a key, or a different one."""

    code = "llm_auth"
    default_message = (
        "The model server refused the API key. An administrator should check OPENAI_API_KEY."
    )
    no_key_message = (
        "The model server asks for an API key and none is set. An administrator should set "
        "OPENAI_API_KEY."
    )


class ModelUnknown(LLMError):
    """The server does not know the model, or the key may not use it."""

    code = "llm_model_unknown"
    default_message = "The model server does not offer this model. Choose another one."


class RateLimitedByServer(LLMError):
    """Too many requests; ``retry_after`` is in seconds if the server gave it."""

    code = "llm_rate_limited"
    status = 503
    retryable = True
    default_message = "The model server is getting too many requests. Wait a little, then retry."


class QuotaExhausted(LLMError):
    """The account behind the key has no credit left."""

    code = "llm_quota"
    default_message = (
        "The account at the model provider has no credit left. An administrator should look at "
        "its billing, or choose another model."
    )


class ContextOverflow(LLMError):
    """The request was too long for the model; ``fields["window"]`` if the server gave it."""

    code = "llm_context_overflow"
    default_message = (
        "The conversation is too long for this model. Compress it, or choose a model with a "
        "larger window."
    )


class RequestRefused(LLMError):
    """The server understood the request and refused it."""

    code = "llm_bad_request"
    default_message = (
        "The model server refused the request, for the reason below. Another model may accept it."
    )


class ServerFault(LLMError):
    """A fault on the server's side."""

    code = "llm_server_error"
    retryable = True
    default_message = "The model server has a problem of its own. Retry in a moment."


class MalformedReply(LLMError):
    """The answer is not one of an OpenAI-compatible server."""

    code = "llm_malformed"
    retryable = True
    default_message = (
        "The model server answered with something that is not a reply. Check that the address "
        "is that of an OpenAI-compatible server (it usually ends in /v1), then retry."
    )


class ReplyCut(LLMError):
    """The stream ended without a finish reason."""

    code = "llm_cut"
    retryable = True
    default_message = "The reply broke off before it was finished."


class EmptyReply(LLMError):
    """The model finished without a reply."""

    code = "llm_empty"
    retryable = True
    default_message = "The model sent an empty reply. Retry, or put the question differently."


class OnlyReasoning(LLMError):
    """The model finished with reasoning but without a reply."""

    code = "llm_only_reasoning"
    retryable = True
    default_message = (
        "The model thought about it and then said nothing. Retry, or put the question differently."
    )
    too_long_message = (
        "The model spent all the room for its reply on thinking. Retry, put the question "
        "differently, or choose a model that may write more."
    )


class UnofferedToolCall(LLMError):
    """The model called a tool though the request offered none; ``fields["tool"]`` names it."""

    code = "llm_tool_call"
    retryable = True
    default_message = (
        "The model tried to call a tool, and none is connected. Retry, put the question "
        "differently, or choose another model."
    )

    @classmethod
    def of(cls, name: str) -> UnofferedToolCall:
        """The error for a call of the tool with this name, which the model made up."""
        shown = clean_words(name)[:60]
        if not shown:
            return cls()
        return cls(cls.default_message.replace("a tool,", f"a tool ({shown}),"), tool=shown)


class ToolsWithoutEnd(LLMError):
    """The model called a tool again after its last round, whose request offered none."""

    code = "llm_tools_without_end"
    retryable = True
    default_message = (
        "The model went on calling tools instead of answering, so its turn was ended. Retry, put "
        "the question differently, or choose another model."
    )


class ModelRefused(LLMError):
    """The model itself refused, in words that its server marks as a refusal."""

    code = "llm_refused"
    default_message = (
        "The model refused to answer this; its words are above. Put the question differently, or "
        "choose another model."
    )


class ContentFiltered(LLMError):
    """The provider's filter stopped the reply or the request."""

    code = "llm_filtered"
    default_message = (
        "The provider's content filter stopped this. Put the question differently, or choose "
        "another model."
    )


class ReplyTooLong(LLMError):
    """The reply exceeded this program's own limit."""

    code = "llm_reply_too_long"
    default_message = "The reply became too long for this program and was ended here."
