"""What is left out for a server that does not know it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatapp.llm.client import ChatRequest
from chatapp.llm.errors import RequestRefused
from chatapp.llm.openai_compatible.adaptation import Adaptation, objection

REQUEST = ChatRequest(
    model="m",
    messages=({"role": "system", "content": "Rules."}, {"role": "user", "content": "Hi"}),
    tools=({"type": "function"},),
    max_tokens=10,
    response_format={"type": "json_schema"},
)


def test_it_works() -> None:
    assert Adaptation().apply(REQUEST) == {
        "model": "m",
        "messages": list(REQUEST.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function"}],
        "response_format": {"type": "json_schema"},
        "max_tokens": 10,
    }


def test_everything_can_be_left_out() -> None:
    nothing = Adaptation(
        supports_usage=False,
        supports_json_schema=False,
        supports_system_role=False,
        supports_tools=False,
        knows_max_tokens=False,
    )
    assert nothing.apply(REQUEST) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Rules.\n\nHi"}],
        "stream": True,
        "max_completion_tokens": 10,
    }


@pytest.mark.parametrize(
    ("words", "parameter", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "", "supports_usage"),
        ("extra fields not permitted", "body.stream_options", "supports_usage"),
        ("'response_format' of type 'json_schema' is not supported", "", "supports_json_schema"),
        ("Use 'max_completion_tokens' instead.", "max_tokens", "knows_max_tokens"),
        ("'messages[0].role' does not support 'system' with this model.", "messages[0].role",
         "supports_system_role"),
        ("Jinja Exception: System role not supported", "", "supports_system_role"),
        ("registry/gemma does not support tools", "", "supports_tools"),
        ("tools param requires --jinja flag", "", "supports_tools"),
        ("`tool calling` is not supported with this model", "", "supports_tools"),
        ("Function calling is not enabled for this model", "", "supports_tools"),
        ("Unrecognized request argument supplied: tools", "", "supports_tools"),
        ("Unsupported parameter: 'tools' is not supported with this model.", "tools",
         "supports_tools"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_leave_out(words: str, parameter: str, field: str) -> None:
    error = RequestRefused(provider_message=words, parameter=parameter)
    changed = objection(error, REQUEST, Adaptation())
    assert changed is not None
    assert getattr(changed, field) is False
    assert objection(error, REQUEST, changed) is None, "once only"
    profile = [] if field == "knows_max_tokens" else [(field, False)]
    assert changed.lessons(Adaptation(), REQUEST) == profile


def test_nothing_is_left_out_that_was_not_sent() -> None:
    plain = ChatRequest(model="m", messages=({"role": "user", "content": "Hi"},))
    for words in ("response_format", "max_completion_tokens", "support tools", "system role"):
        assert objection(RequestRefused(provider_message=words), plain, Adaptation()) is None


def test_other_refusals_change_nothing() -> None:
    error = RequestRefused(provider_message="Invalid temperature")
    assert objection(error, REQUEST, Adaptation()) is None


CHOSEN = replace(REQUEST, temperature=0.2, reasoning_effort="high")


@pytest.mark.parametrize(
    ("words", "parameter", "field"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature",
         "supports_temperature"),
        ("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default "
         "(1) value is supported.", "temperature", "supports_temperature"),
        ("Unrecognized request argument supplied: reasoning_effort", "",
         "supports_reasoning_effort"),
        ("Extra inputs are not permitted", "body.reasoning_effort", "supports_reasoning_effort"),
        ("Model grok-4 does not support parameter reasoningEffort.", "",
         "supports_reasoning_effort"),
        ('"llama3" does not support thinking', "", "supports_reasoning_effort"),
    ],
)  # fmt: skip
def test_what_a_person_chose_is_left_out_where_it_is_refused(
    words: str, parameter: str, field: str
) -> None:
    """Breaks when: a model that takes no temperature never answers somebody who set one."""
    error = RequestRefused(provider_message=words, parameter=parameter)
    changed = objection(error, CHOSEN, Adaptation())
    assert changed == replace(Adaptation(), **{field: False})
    assert changed.lessons(Adaptation(), CHOSEN) == [(field, False)]
    name = field.removeprefix("supports_")
    assert name in Adaptation().apply(CHOSEN)
    assert name not in changed.apply(CHOSEN)


@pytest.mark.parametrize(
    "words",
    [
        "temperature: range: 0..1",
        "Invalid temperature value, the valid range of temperature is [0, 2.0]",
        "body.temperature: Input should be less than or equal to 1.5",
        "Unsupported value: 'reasoning_effort' does not support 'low' with this model. Supported "
        "values are: 'medium'.",
    ],
)
def test_who_chose_an_impossible_value_is_told(words: str) -> None:
    """Breaks when: a value too high teaches that the model takes no temperature at all."""
    error = RequestRefused(provider_message=words)
    assert objection(error, CHOSEN, Adaptation()) is None
