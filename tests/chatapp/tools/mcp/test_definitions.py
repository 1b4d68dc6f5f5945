"""What becomes of a server's raw definitions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.tools.mcp.definitions import (
    MOST_CHARACTERS,
    described,
    flaw,
    is_read_only,
    offered_name,
)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
servers = st.from_regex(r"\A[a-z0-9]{1,10}(-[a-z0-9]{1,5}){0,2}\Z").filter(lambda n: len(n) <= 24)
names = st.text(min_size=1, max_size=120)


def definition(**changes: Any) -> dict[str, Any]:
    return {
        "name": "search",
        "description": "Search the documents.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
        **changes,
    }


def test_it_works() -> None:
    assert offered_name("docs", "search") == "docs__search"
    assert flaw(definition()) == ""


@given(servers, names)
def test_t05_every_name_is_one_that_models_take(server: str, tool: str) -> None:
    """T05.

    Breaks when: a name is neither cut nor freed from other characters.
    """
    assert NAME.fullmatch(offered_name(server, tool))


@given(servers, servers, names, names)
def test_t05_no_two_tools_share_a_name(one: str, other: str, tool: str, another: str) -> None:
    """T05.

    Breaks when: a name that was changed or cut gets no hash.
    """
    if (one, tool) != (other, another):
        assert offered_name(one, tool) != offered_name(other, another)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.b", "a_b"), ("x" * 70, "x" * 71), ("ä", "ö"), ("a b", "a.b")],
)
def test_t05_names_that_would_collide(one: str, other: str) -> None:
    """T05."""
    assert offered_name("docs", one) != offered_name("docs", other)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        "object",
        {},
        {"type": "string"},
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {"type": "thing"}}},
        {"type": "object", "required": "a"},
        {"type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/"}}},
        {"type": "object", "$defs": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"pattern": "x{5000000000}"}}},
        {"type": "object", "$schema": "http://["},
    ],
)
def test_a_schema_that_is_none(schema: Any) -> None:
    """T03 too: some validators fetch what a schema refers to.

    Breaks when: references to other documents are let through.
    """
    assert flaw(definition(inputSchema=schema)).endswith(".")


@pytest.mark.parametrize("raw", [None, [], "x", {}, {"name": ""}, {"name": 3}])
def test_what_is_no_definition(raw: Any) -> None:
    assert flaw(raw) == "It has no name."


def test_one_that_is_too_long() -> None:
    assert "characters" in flaw(definition(description="x" * MOST_CHARACTERS))


def test_a_reference_within_the_schema_is_fine() -> None:
    schema = {
        "type": "object",
        "$defs": {"a": {"type": "string"}},
        "properties": {"b": {"$ref": "#/$defs/a"}},
    }
    assert flaw(definition(inputSchema=schema)) == ""


def test_a_description_has_nothing_that_its_reader_does_not_see() -> None:
    """Breaks when: the description goes to the model as the server sent it."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert described(definition(description=f"Search{hidden}.\x00")) == "Search.\ufffd"


@pytest.mark.parametrize(
    ("annotations", "read_only"),
    [
        (None, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": "true"}, False),
        ({"idempotentHint": True}, False),
        (["readOnlyHint"], False),
    ],
)
def test_only_what_is_marked_needs_no_approval(annotations: Any, read_only: bool) -> None:
    """Breaks when: a mark that is not ``true`` counts."""
    raw = definition(annotations=annotations)
    assert is_read_only(raw) is read_only
