"""Prompts as files: what a head must be, and which prompt holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.checks import check_prompt
from compression.summarizers.prompt_files import (
    COMPACT,
    LARGEST,
    Prompt,
    PromptUnusable,
    compact,
    packaged,
    parsed,
    read,
)

HEAD = "---\nname: Terse\ndescription: Shorter lines.\n---\n"
BODY = packaged().text.replace("You keep", "You briefly keep")


def test_it_works(tmp_path: Path) -> None:
    """A file in the folder holds; without it, or without a folder, the packaged one.

    Breaks when: ``compact`` does not look into the folder.
    """
    assert compact("") is packaged()
    assert compact(str(tmp_path)) is packaged()
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / COMPACT
    path.write_text(HEAD + BODY)
    found = compact(str(path.parent))
    assert found == Prompt(name="Terse", description="Shorter lines.", text=BODY, path=str(path))
    assert found.version != packaged().version
    assert packaged().name
    assert "---" not in packaged().text


def test_the_version_is_that_of_the_instructions() -> None:
    """Another name is no other prompt; line ends are not, either.

    Breaks when: the head is part of what the version is made from.
    """
    other = HEAD.replace("Terse", "Short")
    versions = {parsed(text).version for text in (HEAD + BODY, other + BODY)}
    versions.add(parsed("\ufeff" + (HEAD + BODY).replace("\n", "\r\n")).version)
    assert len(versions) == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (BODY, "does not begin"),
        ("", "does not begin"),
        ("---\nname: x\n" + BODY, "does not end"),
        ("---\nname: x\n---\n" + BODY, "no “description"),
        ("---\nname: x\nname: y\n---\n" + BODY, "twice"),
        ("---\nname:\ndescription: d\n---\n" + BODY, "must have 1 to 80"),
        ("---\nname: x\ndescription: " + "d" * 401 + "\n---\n" + BODY, "must have 1 to 400"),
        ("---\nname: x\u202ey\ndescription: d\n---\n" + BODY, "must have"),
        ("---\nname: x\ndescription: d\nmodel: m\n---\n" + BODY, "lines other than"),
        (HEAD + "\n \n", "no instructions"),
        (HEAD + BODY + "\x07", "control characters"),
        (HEAD + BODY.replace('"lift"', "lift"), 'ask for "lift"'),
        (HEAD + "Summarise this.", 'ask for "narrative"'),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(source: str, words: str) -> None:
    with pytest.raises(PromptUnusable, match=words):
        parsed(source)


@given(st.text(max_size=200))
def test_any_text_is_a_prompt_or_refused(text: str) -> None:
    for source in (text, "---\n" + text, HEAD + text):
        with suppress(PromptUnusable):
            parsed(source)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptUnusable, match="no such folder"):
        read(tmp_path / "nowhere")
    (tmp_path / COMPACT).write_bytes(b"\xff\xfe")
    with pytest.raises(PromptUnusable, match="UTF-8"):
        read(tmp_path)
    (tmp_path / COMPACT).write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(PromptUnusable, match="more than"):
        read(tmp_path)
    (tmp_path / COMPACT).unlink()
    (tmp_path / COMPACT).mkdir()
    with pytest.raises(PromptUnusable, match="cannot be read"):
        read(tmp_path)


def test_s_a_bad_prompt_is_found_at_start(tmp_path: Path, settings: object) -> None:
    """Breaks when: ``check_prompt`` is not registered, or reads only when a summary is due."""
    compression = {**settings.COMPRESSION, "PROMPTS_DIR": str(tmp_path)}  # type: ignore[attr-defined]
    settings.COMPRESSION = compression  # type: ignore[attr-defined]
    assert check_prompt() == []
    other = tmp_path / "other"
    other.mkdir()
    (other / COMPACT).write_text("Summarise.")
    compression["PROMPTS_DIR"] = str(other)
    assert [one.id for one in check_prompt()] == ["compression.E006"]
