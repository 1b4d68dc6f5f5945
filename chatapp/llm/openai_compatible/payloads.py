"""The objects of a streamed reply, in every provider's dialect, read into chunks. Pure.

What is unknown is ignored.
"""

from __future__ import annotations

from typing import Any

from chatapp.llm.client import TokenUsage, ToolCall
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.chunks import ChunkBuffer
from chatapp.llm.openai_compatible.event_stream import ServerSaid
from chatapp.llm.openai_compatible.pieces import (
    TextCleaner,
    ToolCallAssembler,
    as_dict,
    detailed_reasoning,
    token_usage,
)

#: Characters of a finish reason or half of those of a model's name that are kept.
MAX_WORD = 64

#: Other servers' words for the four that OpenAI has.
_FINISH_WORDS = {
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "safety": "content_filter",
}


class PayloadReader:
    """What the objects of one reply have said so far. Text and reasoning go to ``chunks``.

    ``finish_reason`` is empty until the model said why it stopped, ``reasoning_field`` until it
    reasoned under a name of its own.
    """

    def __init__(self, chunks: ChunkBuffer, bounds: Bounds) -> None:
        self.finish_reason = ""
        self.usage: TokenUsage | None = None
        self.model = ""
        self._chunks = chunks
        self._bounds = bounds
        self._refused = False
        self._said = False
        self.reasoning_field = ""
        self._reasoned = False
        self._tools = ToolCallAssembler()

    @property
    def only_refused(self) -> bool:
        """Whether all that was said is the model's own refusal."""
        return self._refused and not self._said

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls as far as they have come, in the order in which they began."""
        return self._tools.calls()

    def take(self, payload: dict[str, Any], *, is_error: bool) -> None:
        """Read one object. Raises ServerSaid for an error in it, and ReplyTooLong."""
        error = payload.get("error")
        if error:
            # The last words and the finish reason may come in the same object.
            self._take_choices(payload, failed=True)
            raise ServerSaid(error)
        if payload.get("object") == "error" or (is_error and "choices" not in payload):
            raise ServerSaid(payload)
        usage = payload.get("usage") or as_dict(payload.get("x_groq")).get("usage")
        if usage:
            self.usage = token_usage(usage) or self.usage
        if not self.model and isinstance(payload.get("model"), str):
            self.model = TextCleaner().clean(payload["model"])[: 2 * MAX_WORD]
        self._take_choices(payload)

    def _take_choices(self, payload: dict[str, Any], *, failed: bool = False) -> None:
        choices = payload.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice, failed=failed)

    def _take_choice(self, choice: dict[str, Any], *, failed: bool) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = as_dict(choice.get("message"))
        if content := delta.get("content"):
            self._take_content(content)
        self._take_reasoning(delta)
        if refusal := delta.get("refusal"):
            self._refused = True
            self._chunks.add_text(refusal)
        self._take_calls(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and not self.finish_reason:
            if reason == "error":
                if failed:
                    return
                raise ServerSaid("")
            word = TextCleaner().clean(reason)[:MAX_WORD]
            self.finish_reason = _FINISH_WORDS.get(word.lower(), word)

    def _take_content(self, content: object) -> None:
        """Text, or a list of parts of which some are thinking (Mistral)."""
        if isinstance(content, str):
            self._said = True
            self._chunks.add_text(content)
        for part in content if isinstance(content, list) else ():
            self._bounds.add_piece()
            if isinstance(part, str):
                self._take_content(part)
            elif isinstance(part, dict) and part.get("type") == "thinking":
                self._chunks.add_reasoning(_joined(part.get("thinking")))
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                self._take_content(part["text"])

    def _take_reasoning(self, delta: dict[str, Any]) -> None:
        """Reasoning under the name that this server has for it.

        OpenRouter says it twice, as ``reasoning`` and in ``reasoning_details``: the details count
        only where they are all there is.
        """
        name = "reasoning_content" if delta.get("reasoning_content") else "reasoning"
        if plain := delta.get(name):
            self._reasoned = True
            self.reasoning_field = name
            self._chunks.add_reasoning(plain)
        elif not self._reasoned:
            self._chunks.add_reasoning(detailed_reasoning(delta.get("reasoning_details")))

    def _take_calls(self, delta: dict[str, Any]) -> None:
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                self._bounds.add_piece()
                self._bounds.add_characters(self._tools.add(call))
        elif isinstance(delta.get("function_call"), dict):
            call = {"index": 0, "function": delta["function_call"]}
            self._bounds.add_characters(self._tools.add(call))


def _joined(parts: object) -> str:
    """The text of a string or of a list of text parts."""
    if isinstance(parts, str):
        return parts
    texts = [as_dict(part).get("text") for part in parts] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))
