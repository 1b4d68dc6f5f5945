"""A request as one server wants it: what it does not know is left out. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from chatapp.llm.client import ChatRequest, without_system_role, without_tools
from chatapp.llm.errors import LLMError
from chatapp.llm.lessons import TRIAL
from chatapp.llm.lessons import Value as Learned

__all__ = ["Adaptation", "Learned", "objection", "still_believed"]

#: Seconds for which what a server refuses is left out without a look at the profile.
REMEMBERED = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """The known abilities of one model at one server, named as in the model's profile."""

    supports_usage: bool = True
    supports_json_schema: bool = True
    supports_system_role: bool = True
    supports_tools: bool = True
    supports_temperature: bool = True
    supports_reasoning_effort: bool = True
    knows_max_tokens: bool = True
    """False: the limit is called ``max_completion_tokens`` there. Not kept in the profile."""
    max_output_tokens: int | None = None
    """No longer reply may be asked for; None: as long as one likes."""

    def apply(self, request: ChatRequest) -> dict[str, Any]:
        """The JSON body of the request."""
        messages = list(request.messages)
        if not self.supports_tools:
            messages = without_tools(messages)
        if not self.supports_system_role:
            messages = without_system_role(messages)
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
        if request.include_usage and self.supports_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools and self.supports_tools:
            body["tools"] = list(request.tools)
        if request.response_format is not None and self.supports_json_schema:
            body["response_format"] = request.response_format
        if request.max_tokens is not None:
            name = "max_tokens" if self.knows_max_tokens else "max_completion_tokens"
            body[name] = min(request.max_tokens, self.max_output_tokens or request.max_tokens)
        if request.temperature is not None and self.supports_temperature:
            body["temperature"] = request.temperature
        if request.reasoning_effort and self.supports_reasoning_effort:
            body["reasoning_effort"] = request.reasoning_effort
        return body

    def lessons(self, before: Adaptation, request: ChatRequest) -> list[tuple[str, Learned]]:
        """(field of the profile, value) for what ``request`` taught that was not known before."""
        sent = used_by(request)
        return [
            (field.name, getattr(self, field.name))
            for field in fields(self)
            if field.name != "knows_max_tokens"
            and sent[field.name]
            and getattr(self, field.name) not in {None, getattr(before, field.name)}
        ]


_SIGNS = {
    "supports_usage": ("stream_options", "include_usage"),
    "supports_json_schema": ("response_format", "json_schema", "structured output", "guided"),
    "knows_max_tokens": ("max_completion_tokens",),
    "supports_tools": (
        "support tools",
        "support tool",
        "support function",
        "tool choice requires",
        "tools param requires",
        "tool use is not",
        "tool calling` is not",
        "tool calling is not",
        "function calling is not",
        "tools is not supported",
        "tools are not supported",
        "argument supplied: tools",
        "parameter: 'tools'",
        "parameter: tools",
    ),
    "supports_system_role": (
        "'system'",
        '"system"',
        "system role",
        "role system",
        "system message",
        "developer instruction",
    ),
    "supports_temperature": ("temperature",),
    "supports_reasoning_effort": (
        "reasoning_effort",
        "reasoningeffort",
        "reasoning effort",
        "reasoning.effort",
        "support thinking",
        "support reasoning",
    ),
}
# A server that says so takes the parameter, but not this value of it: whoever chose it should know.
_ANOTHER_VALUE = (
    "range",
    "between",
    "less than",
    "greater than",
    "at most",
    "at least",
    "<=",
    "non-negative",
    "supported values",
    "valid values",
    "must be one of",
)
_VALUED = frozenset({"supports_temperature", "supports_reasoning_effort"})


def used_by(request: ChatRequest) -> dict[str, bool]:
    """The features that a request would use, by the names of an adaptation's fields."""
    return {
        "supports_usage": request.include_usage,
        "supports_json_schema": request.response_format is not None,
        "knows_max_tokens": request.max_tokens is not None,
        "max_output_tokens": request.max_tokens is not None,
        "supports_tools": bool(request.tools),
        "supports_temperature": request.temperature is not None,
        "supports_reasoning_effort": bool(request.reasoning_effort),
        "supports_system_role": any(m.get("role") == "system" for m in request.messages),
    }


def objection(error: LLMError, request: ChatRequest, known: Adaptation) -> Adaptation | None:
    """The next thing to leave out, judged by a server's refusal; None if it names none of them.

    Nothing is left out twice, so a request is adapted eight times at most.
    """
    said = f"{error.parameter} {error.provider_message}".lower()
    sent = used_by(request)
    most = error.fields.get("max_output_tokens")
    if most and request.max_tokens and most < request.max_tokens and not known.max_output_tokens:
        return replace(known, max_output_tokens=most)
    for name, signs in _SIGNS.items():
        if name in _VALUED and any(words in said for words in _ANOTHER_VALUE):
            continue
        if sent[name] and getattr(known, name) and any(sign in said for sign in signs):
            return replace(known, **{name: False})
    return None


def still_believed(learned: Adaptation, seconds: float) -> Adaptation:
    """The part of what was learned so many seconds ago that counts without the profile's word.

    Whoever asks knows the profile, where a lesson has its own time and can be taken back.
    """
    if seconds < REMEMBERED:
        return learned
    forgotten = seconds >= TRIAL.total_seconds()
    return Adaptation(knows_max_tokens=learned.knows_max_tokens or forgotten)
