"""Raw results of tools as text."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatapp.tools.mcp.results import MOST_CHARACTERS, as_text

PICTURE = base64.b64encode(b"\x89PNG" * 250).decode()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({}, ""),
        ({"content": "no list"}, ""),
        ({"content": [], "structuredContent": {"a": "ä"}}, '{"a": "ä"}'),
        (
            {"content": [{"type": "text", "text": "both"}], "structuredContent": {"a": 1}},
            "both",
        ),
        (
            {"content": [{"type": "image", "mimeType": "image/png", "data": PICTURE}]},
            "[image: image/png, about 1,002 bytes, not shown]",
        ),
        (
            {"content": [{"type": "audio", "data": ""}]},
            "[audio: of an unknown kind, about 0 bytes, not shown]",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}]},
            "[resource: a:b]\ninside",
        ),
        ({"content": [{"type": "resource_link", "uri": "a:b"}]}, "[resource: a:b]"),
        ({"content": [{"type": "resource"}]}, "[a resource that is none]"),
        (
            {"content": [{"type": "hologram"}]},
            "[a block of the unknown type hologram, not shown]",
        ),
    ],
)
def test_it_works(result: dict[str, Any], text: str) -> None:
    assert as_text(result) == text


def test_t04_binary_data_is_no_text() -> None:
    """T04.

    Breaks when: the data of a block goes to the model.
    """
    blob = {"uri": "a:b", "mimeType": "application/zip", "blob": PICTURE}
    shown = as_text({"content": [{"type": "resource", "resource": blob}]})
    assert shown == "[resource: a:b, application/zip, about 1,002 bytes, not shown]"


def test_t04_a_flood_is_cut() -> None:
    """T04.

    Breaks when: the text is passed on whole.
    """
    shown = as_text({"content": [{"type": "text", "text": "x" * (MOST_CHARACTERS + 7)}]})
    assert shown.endswith("x\n[7 more characters were left out]")


def test_what_nobody_sees_is_left_out() -> None:
    """Breaks when: a result keeps its tag characters or its NUL."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert as_text({"content": [{"type": "text", "text": f"a{hidden}b\x00"}]}) == "ab\ufffd"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=50)
@given(
    st.fixed_dictionaries(
        {
            "content": json_values
            | st.lists(
                st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(
                            ["text", "image", "audio", "resource", "resource_link"]
                        )
                    },
                    optional={"text": json_values, "data": json_values, "resource": json_values},
                )
            )
        }
    )
)
def test_whatever_a_server_sends_is_storable_text(result: dict[str, Any]) -> None:
    """T04."""
    text = as_text(result)
    assert "\x00" not in text
    text.encode()
