"""Errors for a server's answers. Pure; :func:`from_response` and :func:`from_error_event`.

Servers agree on little: the status, an ``error`` object, a ``detail`` or a ``message``. So the
status, the code and the words are looked at together, the most certain sign first.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from chatapp.llm.errors import (
    ContentFiltered,
    ContextOverflow,
    LLMError,
    MalformedReply,
    ModelUnknown,
    QuotaExhausted,
    RateLimitedByServer,
    RequestRefused,
    ServerFault,
    ServerTimeout,
    UnofferedToolCall,
    WrongKey,
)
from chatapp.llm.openai_compatible.pieces import as_dict

#: Bytes of an error's body that are looked at.
MAX_BODY = 64 * 1024
#: Seconds; more is taken for a day.
MAX_RETRY_AFTER = 24 * 3600.0

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded"
    r"|maximum context length|max(?:imum)? (?:model|context|sequence) len"
    r"|exceed\w* (?:the |this )?(?:\w+ ){0,3}context|context (?:length|window|size) (?:of|exceeded)"
    r"|(?:prompt|input|request|conversation|message)s? (?:is|are|was) too (?:long|large)"
    r"|too large for model with|input token count .{0,40}exceeds"
    r"|reduce the length of the (?:messages|prompt|input)|when context the overflows"
    r"|must be <= ?\d+|too many (?:input )?tokens",
    re.I,
)
_WINDOW = re.compile(
    r"(?:context (?:length|window|size)|maximum tokens allowed|tokens allowed|maximum context)"
    r"\D{0,40}?\(?(\d[\d,_]{2,9})"
    r"|> ?(\d[\d,_]{2,9}) maximum|<= ?(\d[\d,_]{2,9})"
    r"|(\d[\d,_]{2,9})[ -]tokens? (?:maximum )?context|with (\d[\d,_]{2,9}) maximum context",
    re.I,
)
_TOKENS = re.compile(
    r"(\d[\d,_]{0,9}) (?:tokens )?(?:in|from) the (?:messages|input|prompt)"
    r"|(?:messages resulted in|prompt (?:contains|is too long:)|request has)"
    r" (\d[\d,_]{0,9}) (?:input )?tokens",
    re.I,
)
#: Not the window: how long a reply may be at most.
_OUTPUT = re.compile(r"max_(?:completion_|output_)?tokens|(?:completion|output) tokens", re.I)
_MOST_OUTPUT = re.compile(
    r"(?:at most|must be <=|less than or equal to|should be <=|cannot exceed|maximum (?:of|is))"
    r"\s*[`'\"]?(\d[\d,_]{1,9})"
    r"|> ?(\d[\d,_]{1,9}), which is the maximum|\[\s*\d+\s*,\s*(\d[\d_]{1,9})\s*\]",
    re.I,
)
_INPUT = re.compile(
    r"context.?length|inputs?\W? tokens|input length|\bprompt\b|the messages|max_new_tokens", re.I
)
_UNOFFERED = re.compile(
    r"tool choice is none, but (?:the )?model called|not in request\.tools", re.I
)
_PER_MINUTE = re.compile(
    r"tokens? per (?:minute|day)|requests? per|\bTPM\b|\bRPM\b|rate.?limit", re.I
)
_QUOTA = re.compile(
    r"insufficient_quota|insufficient (?:credit|balance|fund)|exceeded your current quota"
    r"|billing|out of credit|requires more credits|credit balance|payment required",
    re.I,
)
_MODEL_SIGN = re.compile(
    r"model_not_found|unknown_model|model_not_available|not_found_error: model"
    r"|models? identifier is invalid|model.{0,120}?(?:not found|does not exist|is not supported"
    r"|not available|no such)|(?:no such|unknown|invalid) model\b|^model: \S+$"
    r"|not a valid model|no (?:allowed )?(?:providers|endpoints) (?:available|found) for",
    re.I,
)
_KEY_SIGN = re.compile(
    r"invalid_api_key|api key|authentication|unauthorized|no auth credentials|access token", re.I
)
_FILTER_SIGN = re.compile(
    r"content_filter|content management policy|content_policy|responsibleai|safety system"
    r"|flagged|moderation",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of an error's body, wherever they stand in it."""

    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""
    window: int | None = None
    """The context window as a number of its own (llama.cpp's ``n_ctx``)."""
    status: int = 0
    """A status given inside the body."""

    @property
    def all(self) -> str:
        """Everything that a sign may be found in."""
        return f"{self.code} {self.kind}: {self.message}"


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, has_key: bool = True
) -> LLMError:
    """The error that an answer other than 200 stands for.

    ``headers`` with lower-case names; of ``body`` the first 64 KiB are looked at. ``has_key``
    says whether a key was sent, so that "no key" and "wrong key" are told apart.
    """
    body = body[:MAX_BODY]
    if 300 <= status < 400:
        return MalformedReply(
            "The model server pointed to another address, which this program does not follow, "
            "so that nothing you write goes elsewhere. Check OPENAI_BASE_URL.",
            http_status=status,
        )
    words = read_words(body)
    retry_after = read_retry_after(headers)
    return _choose(status, words, retry_after, has_key=has_key)


def from_error_event(error: object) -> LLMError:
    """The error that an ``error`` object in the middle of a stream stands for."""
    words = _words_of(error if isinstance(error, dict) else {"error": error})
    return _choose(words.status, words, None, has_key=True)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date).

    None when there is no usable one; never negative.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
            except (ValueError, TypeError, OverflowError):
                continue
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, MAX_RETRY_AFTER)
    return None


def read_words(body: bytes) -> Words:
    """The words of a body: JSON in any known shape, else its text."""
    text = body.decode("utf-8", "replace")
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return Words(message=text)
    if isinstance(payload, list) and payload:
        payload = payload[0]
    return _words_of(payload) if isinstance(payload, dict) else Words(message=text)


def _words_of(payload: Mapping[str, object]) -> Words:
    """From ``{"error": {…}}``, ``{"error": "…"}``, ``{"detail": …}`` or ``{"message": "…"}``."""
    error = payload.get("error")
    inner = as_dict(error) or dict(payload)
    message = next(
        (
            str(candidate)
            for candidate in (
                inner.get("message"),
                error if isinstance(error, str) else None,
                payload.get("message"),
                _detail(payload.get("detail")),
            )
            if candidate
        ),
        "",
    )
    raw = as_dict(inner.get("metadata")).get("raw")
    if isinstance(raw, str) and raw:
        message = f"{message}: {raw}" if message else raw
    code = inner.get("code")
    window = inner.get("n_ctx")
    statuses = (code, inner.get("status_code"), inner.get("status"))
    return Words(
        message=message,
        code=code if isinstance(code, str) else "",
        kind=str(inner.get("type") or ""),
        parameter=str(inner.get("param") or _location(payload.get("detail"))),
        window=window if isinstance(window, int) else None,
        status=next((s for s in statuses if isinstance(s, int) and 400 <= s < 600), 0),
    )


def _detail(detail: object) -> str:
    """FastAPI's ``detail``: a sentence, or a list of complaints with a place each."""
    if isinstance(detail, list):
        return "; ".join(
            f"{_location([complaint])}: {as_dict(complaint).get('msg', '')}"
            for complaint in detail[:5]
        )
    return str(as_dict(detail).get("message") or detail or "")


def _location(detail: object) -> str:
    first = as_dict(detail[0]) if isinstance(detail, list) and detail else {}
    place = first.get("loc")
    return ".".join(str(step) for step in place) if isinstance(place, list) else ""


def _choose(status: int, words: Words, retry_after: float | None, *, has_key: bool) -> LLMError:
    kind, message = _class_of(status, words)
    if kind is WrongKey and not has_key:
        message = WrongKey.no_key_message
    error = kind(
        message,
        provider_message=words.message,
        http_status=status,
        parameter=words.parameter[:200],
        retry_after=retry_after if kind is RateLimitedByServer else None,
    )
    if kind is RequestRefused and (most := _most_output(words)) is not None:
        error.fields["max_output_tokens"] = most
    if kind is ContextOverflow and (window := _window(words)) is not None:
        error.fields["window"] = window
    if kind is ContextOverflow and (found := _TOKENS.search(words.all)):
        error.fields["tokens"] = int(re.sub(r"\D", "", found[1] or found[2]))
    return error


def _class_of(status: int, words: Words) -> tuple[type[LLMError], str]:
    """The class, and a sentence of its own where the class's would mislead."""
    said = words.all
    if status == 402 or (status in {0, 400, 403, 429} and _QUOTA.search(said)):
        return QuotaExhausted, ""
    if status == 401:
        return WrongKey, ""
    if _UNOFFERED.search(said) and status in {0, 400}:
        return UnofferedToolCall, ""
    if status in {0, 400, 422} and _most_output(words) is not None:
        return RequestRefused, ""
    if _OVERFLOW.search(said) and status not in {403, 429} and not _PER_MINUTE.search(said):
        return ContextOverflow, ""
    if status == 429 or (status in {0, 413} and _PER_MINUTE.search(said)):
        return RateLimitedByServer, ""
    if _FILTER_SIGN.search(said) and status in {0, 400, 403, 422}:
        return ContentFiltered, ""
    if status in {0, 400, 403, 404, 422} and _MODEL_SIGN.search(said):
        return ModelUnknown, ""
    if status == 403:
        return WrongKey, "The model server does not allow this to the API key that is set."
    if status in {0, 400} and _KEY_SIGN.search(said) and "key" in said.lower():
        return WrongKey, ""
    if status in {404, 405}:
        return MalformedReply, (
            "The model server knows no chat under this address. Check OPENAI_BASE_URL: it "
            "usually ends in /v1."
        )
    if status in {408, 504}:
        return ServerTimeout, "The model server gave up waiting for its own model. Retry."
    if 400 <= status < 500:
        return RequestRefused, ""
    return ServerFault, ""


def _most_output(words: Words) -> int | None:
    """The longest reply allowed, where the words are about that and not the whole request."""
    if not _OUTPUT.search(words.message) or _INPUT.search(words.message):
        return None
    found = _MOST_OUTPUT.search(words.message)
    return _number(found) if found else None


def _number(found: re.Match[str]) -> int | None:
    """The first group that has one."""
    digits = next(group for group in found.groups() if group)
    return int(re.sub(r"\D", "", digits)) or None


def _window(words: Words) -> int | None:
    if words.window is not None and words.window > 0:
        return words.window
    found = _WINDOW.search(words.message)
    return _number(found) if found else None
