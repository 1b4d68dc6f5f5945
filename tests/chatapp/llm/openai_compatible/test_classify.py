"""Which error a server's answer is: bodies of the shapes that real servers send."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from chatapp.llm.openai_compatible.classify import from_error_event, from_response, read_retry_after


def answer(status: int, body: Any, **headers: str) -> LLMError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_response(status, headers, raw)


def openai(message: str, code: Any = None, param: str | None = None, kind: str = "") -> Any:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


OUTPUT_LIMITS = [
    ("max_tokens is too large: 32000. This model supports at most 4096 completion tokens, whereas "
     "you provided 32000.", 4096),
    ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is "
     "less than the `context_window` for this model", 8192),
    ("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for x", 8192),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    ("max_tokens must be <= 4096", 4096),
]  # fmt: skip

CASES: list[tuple[int, Any, type[LLMError]]] = [
    # Unknown models, in eight providers' words.
    (404, openai("The model `x` does not exist or you do not have access to it."), ModelUnknown),
    (400, openai("The requested model 'x-1.5' does not exist.", "model_not_found"), ModelUnknown),
    (404, {"id": "1", "message": "model 'x' not found, make sure the id is right"}, ModelUnknown),
    (404, {"error": {"code": 404, "message": "models/x-3.6 is not found for API version v1beta"}},
     ModelUnknown),
    (404, {"error": {"message": "model: x-4-5", "type": "not_found_error"}, "type": "error"},
     ModelUnknown),
    (400, {"detail": "Model x is not supported. Supported models are ['a', 'b']."}, ModelUnknown),
    (400, {"message": "The provided model identifier is invalid."}, ModelUnknown),
    (404, {"error": 'model "x:8b" not found, try pulling it first'}, ModelUnknown),
    # Refused requests.
    (400, openai("Invalid 'temperature': decimal below minimum value.", "x", "temperature"),
     RequestRefused),
    (400, openai("This model does not support effort level 'xhigh'."), RequestRefused),
    (400, openai("Tool call validation failed", "tool_use_failed"), RequestRefused),
    (400, openai("No tool output found for tool call call-a."), RequestRefused),
    (400, openai("Tool choice is none, but model called a tool", "tool_use_failed"),
     UnofferedToolCall),
    # How long a reply may be is no window.
    *((400, openai(words), RequestRefused) for words, _ in OUTPUT_LIMITS),
    (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]},
     RequestRefused),
    (400, {"message": "This model doesn't support the video content block."}, RequestRefused),
    # Overflows.
    (400, openai("This model's maximum context length is 4096 tokens. However, …",
                 "context_length_exceeded"), ContextOverflow),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size",
                     "type": "exceed_context_size_error", "n_ctx": 4096}}, ContextOverflow),
    (400, openai("prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
    (413, openai("Please reduce the length of the messages or completion."), ContextOverflow),
    (500, openai("Trying to keep the first 5000 tokens when context the overflows"),
     ContextOverflow),
    # Limits and money.
    (429, openai("Rate limit reached for requests"), RateLimitedByServer),
    (429, {"error": {"code": 429, "message": "Provider returned error",
                     "metadata": {"raw": "x is temporarily rate-limited upstream"}}},
     RateLimitedByServer),
    (413, openai("Request too large on tokens per minute (TPM): Limit 6000", "rate_limit_exceeded"),
     RateLimitedByServer),
    (429, openai("You exceeded your current quota, please check your plan and billing details.",
                 "insufficient_quota"), QuotaExhausted),
    (402, openai("This request requires more credits, or fewer max_tokens."), QuotaExhausted),
    (400, openai("Your credit balance is too low to access the API."), QuotaExhausted),
    # Keys.
    (401, openai("Incorrect API key provided: sk-abc.", "invalid_api_key"), WrongKey),
    (403, openai("You are not allowed to sample from this model"), WrongKey),
    (400, openai("API key not valid. Please pass a valid API key."), WrongKey),
    # Filters.
    (400, openai("The response was filtered due to Azure OpenAI's content management policy.",
                 "content_filter"), ContentFiltered),
    (403, openai("x requires moderation. Your input was flagged."), ContentFiltered),
    # The server's own trouble, and addresses that are not its.
    (500, openai("The server had an error"), ServerFault),
    (502, b"<html><h1>502 Bad Gateway</h1></html>", ServerFault),
    (503, b"", ServerFault),
    (504, b"upstream timed out", ServerTimeout),
    (404, b"<html>Not Found</html>", MalformedReply),
    (405, {"detail": "Method Not Allowed"}, MalformedReply),
    (307, b"", MalformedReply),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), CASES)
def test_the_class_of_an_answer(status: int, body: Any, kind: type[LLMError]) -> None:
    error = answer(status, body)
    assert type(error) is kind
    assert error.http_status == status
    assert error.message.endswith((".", "it."))
    assert "<" not in error.provider_message


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("This model's maximum context length is 4096 tokens. However, you asked for 5000", 4096),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
         1_048_576),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
         32_768),
        ("the model is loaded with context length of only 4,096 tokens; conversation too long",
         4096),
        ("The prompt is too long.", None),
    ],
)  # fmt: skip
def test_the_window_is_learned_from_an_overflow(message: str, window: int | None) -> None:
    error = answer(400, openai(message))
    assert type(error) is ContextOverflow
    assert error.fields.get("window") == window


@pytest.mark.parametrize(("message", "most"), OUTPUT_LIMITS)
def test_how_long_a_reply_may_be_is_not_taken_for_the_window(message: str, most: int) -> None:
    """One such figure left a model at a window of 4,096 tokens for ever.

    Breaks when: "must be <= 4096" is an overflow, whatever must be.
    """
    fields = answer(400, openai(message)).fields
    assert (fields.get("max_output_tokens"), fields.get("window")) == (most, None)


@pytest.mark.parametrize(
    ("message", "window", "tokens"),
    [
        ("This model's maximum context length is 4097 tokens. However, you requested 5000 tokens "
         "(1000 in the messages, 4000 in the completion). Please reduce the length of the "
         "messages or completion.", 4097, 1000),
        ("'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context "
         "length is 4096 tokens and your request has 3000 input tokens (2048 > 4096 - 3000).",
         4096, 3000),
        ("`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 1000 "
         "`max_new_tokens`", 4097, None),
    ],
)  # fmt: skip
def test_the_window_is_told_from_the_reply_that_was_asked_for(
    message: str, window: int, tokens: int | None
) -> None:
    """Breaks when: words about the whole request are taken for the reply's limit."""
    error = answer(400, openai(message))
    assert type(error) is ContextOverflow
    assert (error.fields["window"], error.fields.get("tokens")) == (window, tokens)


def test_the_window_as_a_number_of_its_own() -> None:
    body = {"error": {"message": "exceeds the available context size", "n_ctx": 2048}}
    assert answer(400, body).fields["window"] == 2048


def test_no_key_and_wrong_key_are_told_apart() -> None:
    body = json.dumps(openai("You didn't provide an API key.")).encode()
    without = from_response(401, {}, body, has_key=False)
    wrong = from_response(401, {}, body, has_key=True)
    assert "none is set" in without.message
    assert "refused the API key" in wrong.message
    assert without.code == wrong.code == "llm_auth"


def test_the_parameter_that_was_refused_is_named() -> None:
    assert answer(400, openai("no", param="stream_options")).parameter == "stream_options"
    detail = {"detail": [{"loc": ["body", "stream_options"], "msg": "extra"}]}
    assert answer(422, detail).parameter == "body.stream_options"
    assert answer(422, detail).provider_message == "body.stream_options: extra"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("121", 121.0),
        ("0.5", 0.5),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("999999999", 86_400.0),
        ("Wed, 99 Nov 2026 99:99:99 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_l08_retry_after(value: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": value}) == seconds


def test_l08_retry_after_as_a_date_and_in_milliseconds() -> None:
    later = formatdate(time.time() + 30, usegmt=True)
    found = read_retry_after({"retry-after": later})
    assert found is not None
    assert 27 < found <= 30
    assert read_retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25


def test_retry_after_belongs_to_rate_limits() -> None:
    headers = {"retry-after": "7"}
    assert answer(429, openai("slow"), **headers).retry_after == 7
    assert answer(400, openai("no"), **headers).retry_after is None


@given(status=st.integers(300, 599), body=st.binary(max_size=200))
def test_any_body_is_an_error(status: int, body: bytes) -> None:
    assert from_response(status, {}, body).message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "loc", "metadata", "raw", "code", "param", "n_ctx"]
            ),
            inner,
        )
    ),
)


@given(status=st.sampled_from([400, 404, 422, 429, 500]), payload=JSON)
def test_any_json_is_an_error(status: int, payload: Any) -> None:
    assert answer(status, payload).message
    assert from_error_event(payload).message
