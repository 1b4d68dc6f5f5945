"""Lists of models in the shapes that real servers send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import MalformedReply
from chatapp.llm.openai_compatible.listing import read_models


def listed(*models: Any) -> tuple[ModelInfo, ...]:
    return read_models(json.dumps({"object": "list", "data": list(models)}).encode())


@pytest.mark.parametrize(
    ("model", "window", "max_output", "source"),
    [
        ({"id": "m"}, None, None, ""),
        ({"id": "m", "max_model_len": 32768}, 32768, None, "max_model_len"),
        ({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}, 4096, None, "meta.n_ctx"),
        ({"id": "m", "context_window": 131072, "max_completion_tokens": 8192},
         131072, 8192, "context_window"),
        ({"id": "m", "context_length": 200000, "top_provider": {"max_completion_tokens": 64000}},
         200000, 64000, "context_length"),
        ({"id": "m", "max_model_len": "many", "context_length": -1}, None, None, ""),
        ({"id": "m", "max_model_len": True}, None, None, ""),
    ],
)  # fmt: skip
def test_windows(model: Any, window: int | None, max_output: int | None, source: str) -> None:
    expected = ModelInfo(name="m", window=window, max_output_tokens=max_output, source=source)
    assert listed(model) == (expected,)


def test_a_bare_list_and_names_once() -> None:
    models = read_models(b'[{"id": "a"}, {"id": "b"}, {"id": "a"}, 5, {}, {"id": "x\\u0000"}]')
    assert [model.name for model in models] == ["a", "b"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"5", b'{"data": 5}', b"\xff", b"[" * 100_000])
def test_what_is_no_list_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReply):
        read_models(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["data", "id", "meta", "n_ctx"]), inner)
        ),
    )
)
def test_any_json_is_a_list_or_malformed(payload: Any) -> None:
    try:
        models = read_models(json.dumps(payload).encode())
    except MalformedReply:
        return
    assert all(model.name for model in models)
