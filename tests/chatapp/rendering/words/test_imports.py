from __future__ import annotations

import re
from pathlib import Path

import pytest

from chatapp.rendering.words.imports import left_out
from chatapp.transfer import chatgpt, fields, openai_messages, own_state

READERS = Path(chatgpt.__file__).parent.glob("*.py")
NAMED = {
    chatgpt.OTHER_BRANCH,
    chatgpt.CYCLE,
    fields.UNSTORABLE,
    openai_messages.SYSTEM_LEFT_OUT,
    openai_messages.TIME_LEFT_OUT,
    openai_messages.HIDDEN_LEFT_OUT,
    openai_messages.SHORTENED,
    own_state.SUMMARIES_LEFT_OUT,
    own_state.PROMPT_LEFT_OUT,
    # Of chatapp.actions.import_report.
    "pin, for which there is no room",
}
KINDS = NAMED.union(
    *(re.findall(r'left_out\["([^"]+)"\]', path.read_text("utf-8")) for path in READERS)
)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_whatever_a_reader_leaves_out_is_explained(kind: str) -> None:
    """Breaks when: a reader counts something new, and the report has no words for it."""
    one, many = left_out({kind: 1})[0], left_out({kind: 2})[0]
    assert one.why == many.why != ""
    assert one.what != many.what


def test_parts_are_named_as_a_person_would() -> None:
    """Breaks when: the name of a part, which is the file's, shows as it is."""
    found = left_out({"part of type audio": 1, "part of type image_url": 3, "odd\u202e": 2})
    assert [(one.count, one.what) for one in found] == [
        (3, "pictures"),
        (2, "odd⟦U+202E⟧"),
        (1, "recording"),
    ]
    assert left_out({"part of type <b>": 1})[0].what == "part of type <b>", "the template escapes"
