"""Hidden characters, wherever a person reads what a model reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from io import BytesIO
from itertools import pairwise
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from chatapp.live import events
from chatapp.live.view_models import Carried
from chatapp.rendering.fragments import render_event
from chatapp.rendering.markdown import StreamRenderer
from chatapp.templatetags.chat import feed, summary_html
from chatapp.text.search_terms import passage
from chatapp.transfer.files import conversations
from chatapp.transfer.openai_messages import HIDDEN_LEFT_OUT
from chatapp.transfer.values import ForeignConversation
from compression.recall.terms import terms_of
from tests.chatapp.rendering.samples import ENVELOPE, message, page, state, turn

#: "obey" in tag characters.
TAGS = "\U000e006f\U000e0062\U000e0065\U000e0079"
TEXT = f"Good{TAGS} day, ❤\ufe0f می\u200cخواهم and on"
SHOWN = "Good⟦U+E006F and 3 more⟧ day, ❤\ufe0f می\u200cخواهم and on"


def in_the_chat() -> dict[str, str]:
    """The same message wherever it may stand, as HTML."""
    calls = [{"id": "1", "function": {"name": "look", "arguments": TEXT}}]
    reply = message(8, "assistant", TEXT, reasoning=TEXT, tool_calls=calls)
    open_reply = message(8, "assistant", "", status="streaming")
    open_turn = turn(8, "streaming", finished_at=None, text=f"{TEXT}\n\n{TEXT}")
    articles = {
        "user": message(7, "user", TEXT),
        "assistant": reply,
        "tool": message(9, "tool", TEXT),
    }
    found: dict[str, str] = {name: feed(page([one])).live for name, one in articles.items()}
    found |= {f"{name}, caught up": render_event(state([one])) for name, one in articles.items()}
    found["open"] = feed(page([open_reply], turn=open_turn)).live
    parts = passage(TEXT, terms_of("day خواهم"))
    found["search"] = (
        render_to_string(
            "partials/found.html",
            {"found": {"groups": [{"code": page([]).conversation.code, "parts": parts}]}},
        )
        .replace("<mark>", "")
        .replace("</mark>", "")
    )
    found["summary"] = summary_html(TEXT, Carried())
    found["title"] = render_event(events.TitleChanged(**ENVELOPE, title=TEXT))
    seen = {"role": "user", "seq": 7, "tokens": 4, "text": TEXT}
    parts_seen = [{"name": "tail", "tokens": 4, "messages": [seen]}]
    found["what the model sees"] = render_to_string(
        "partials/context.html", {"context": page([]).context, "parts": parts_seen}
    )
    return found


@pytest.mark.parametrize("place", in_the_chat())
def test_n07_they_are_seen_wherever_a_person_reads(place: str) -> None:
    """N07: the mark stands there, what a script needs stays, and nothing hides anywhere.

    Breaks when: a template shows a text of anyone without ``plain``.
    """
    html = in_the_chat()[place]
    assert SHOWN in html
    assert not set(TAGS) & set(html)


@given(st.lists(st.integers(0, 60), max_size=6))
def test_n07_thoughts_that_stream_look_as_on_a_page_loaded_then(
    cuts: list[int],
) -> None:
    """N07, I22: at every flush, wherever the pieces end.

    Breaks when: pieces of thoughts are made visible each by itself.
    """
    thoughts = f"a {TEXT} \u200fשלום!\u200f b\ufe0f\u200b" + "\U000e0041" * 5 + "the end"
    edges = [0, *sorted(min(cut, len(thoughts)) for cut in cuts), len(thoughts)]
    renderer, shown = StreamRenderer(), ""
    for first, last in pairwise(edges):
        shown += renderer.feed("", thoughts[first:last]).thoughts_html
        so_far = turn(8, "streaming", finished_at=None, reasoning=thoughts[:last])
        loaded = feed(page([message(8, "assistant", "", status="streaming")], turn=so_far)).live
        assert f'class="thoughts">{shown}</div>' in loaded


def test_n07_a_run_that_streams_is_looked_at_once() -> None:
    """Breaks when: each piece of a run looks at the whole of it again."""
    renderer = StreamRenderer()
    pieces = [renderer.feed("", "\u200b" * 50).thoughts_html for _ in range(4_000)]
    assert set(pieces) == {""}
    assert renderer.feed("", "the end").thoughts_html == "⟦U+200B and 199,999 more⟧the end"


VERSION_1 = {"format": "palimpsest", "version": 1}


def native(text: str) -> Any:
    said = {"role": "user", "text": text}
    result = {"role": "tool", "text": text, "tool_call_id": "1", "tool_name": "look"}
    about = {"title": text, "system_prompt": text}
    return {**VERSION_1, "conversation": about, "messages": [said, result]}


def openai(text: str) -> Any:
    call = {"id": "1", "function": {"name": "look", "arguments": text}}
    return [
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"role": "assistant", "content": text, "reasoning": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": text},
    ]


def chatgpt(text: str) -> Any:
    content = {"content_type": "text", "parts": [text]}
    nodes = {
        "1": {"id": "1", "message": {"author": {"role": "user"}, "content": content}},
    }
    return [{"title": text, "mapping": nodes, "current_node": "1"}]


def claude(text: str) -> Any:
    said = {"uuid": "1", "sender": "human", "text": text, "content": []}
    return [{"uuid": "2", "name": text, "chat_messages": [said]}]


@pytest.mark.parametrize("form", [native, openai, chatgpt, claude])
def test_n07_an_import_takes_them_out(form: Callable[[str], Any]) -> None:
    """N07: of what anyone else wrote, results of tools and titles too; and the report says so.

    Breaks when: a reader takes a text without ``fields.text`` or ``shown_only``.
    """
    (found,) = conversations(BytesIO(json.dumps(form(TEXT)).encode()))
    assert isinstance(found, ForeignConversation)
    assert SHOWN.replace("⟦U+E006F and 3 more⟧", "") in {one.text for one in found.messages}
    everything = json.dumps(asdict(found), default=str, ensure_ascii=False)
    assert not set(TAGS) & set(everything)
    assert found.left_out[HIDDEN_LEFT_OUT] >= 1
    (clean,) = conversations(BytesIO(json.dumps(form("Good day")).encode()))
    assert isinstance(clean, ForeignConversation)
    assert HIDDEN_LEFT_OUT not in clean.left_out
