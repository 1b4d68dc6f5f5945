"""The list of a server's models, in whichever form it comes. Pure."""

from __future__ import annotations

import json
from typing import Any

from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import MalformedReply
from chatapp.llm.openai_compatible.pieces import MAX_NAME, as_dict
from compression.tools.texts import mend

#: Of one server; what it lists after these is passed over.
MAX_MODELS = 5000
#: Tokens; more is taken for nonsense.
MAX_WINDOW = 100_000_000

_WINDOW_FIELDS = (
    "max_model_len",  # vLLM
    "meta.n_ctx",  # llama.cpp: as started
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "top_provider.context_length",  # OpenRouter
    "meta.n_ctx_train",  # llama.cpp, older: as trained
)
_OUTPUT_FIELDS = (
    "top_provider.max_completion_tokens",
    "max_completion_tokens",
    "max_output_tokens",
)


def read_models(body: bytes) -> tuple[ModelInfo, ...]:
    """The models in the body of ``GET /models``, in the server's order, each name once.

    Raises MalformedReply when the body is no list of models.
    """
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedReply from None
    listed = payload.get("data") if isinstance(payload, dict) else payload
    if listed is None and isinstance(payload, dict):
        listed = payload.get("models")
    if not isinstance(listed, list):
        raise MalformedReply
    found: dict[str, ModelInfo] = {}
    for one in listed[:MAX_MODELS]:
        name = _name(one)
        if name and name not in found:
            found[name] = _model(name, as_dict(one))
    return tuple(found.values())


def _name(one: object) -> str:
    name = as_dict(one).get("id") or as_dict(one).get("name")
    usable = isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()
    return mend(name) if usable and isinstance(name, str) else ""


def _model(name: str, one: dict[str, Any]) -> ModelInfo:
    source, window = next(
        ((field, size) for field in _WINDOW_FIELDS if (size := _size(one, field)) is not None),
        ("", None),
    )
    output = next((s for f in _OUTPUT_FIELDS if (s := _size(one, f)) is not None), None)
    return ModelInfo(name=name, window=window, max_output_tokens=output, source=source)


def _size(one: dict[str, Any], path: str) -> int | None:
    value: object = one
    for step in path.split("."):
        value = as_dict(value).get(step)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_WINDOW:
        return value
    return None
