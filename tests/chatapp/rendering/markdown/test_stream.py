"""What a reply looks like while it comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chatapp.rendering.markdown import StreamRenderer, render
from chatapp.rendering.markdown.cutter import OPEN_BLOCK, OPEN_FENCE, Cutter
from tests.chatapp.rendering.inert import PAYLOADS, assert_inert
from tests.growth import cost

LINES = st.sampled_from(
    [
        *("", "", "text", "more *text*", "# head", "- item", "  - inner", "    - deep", "1. one"),
        *("   text in item", "```", "```python", "  ```", "~~~", "> quote", ">", "| a | b |"),
        *("|---|---|", "---", "===", "    code", "\ttab", "[r]: https://x.example", "[r]", "* * *"),
        *(
            "<b onclick=x>",
            "![i](https://x.example)",
            "2) two",
            " ",
            "````",
            "`a",
            "\\",
            "-",
            "+ x",
        ),
        *(r"\(a_1\) b", r"\(", r"\[", r"a *b* \]", "$$", "$$x$$ y", "  $$", r"x\)"),
    ]
)
TEXTS = st.lists(LINES, max_size=25).map("\n".join)
BLOCKS = st.sampled_from(
    [
        *("a *paragraph*\nof two lines", "# head", "- one\n- two\n  - three", "> quote\n> more"),
        *("1. one\n\n   text\n\n2. two", "| a |\n|---|\n| b |", "---", "    code\n\n    more"),
        *(
            "```\ncode\n\n# no head\n```",
            "~~~\n```\n~~~",
            "title\n===",
            "- a\n\n  ```\n  b\n\n  c\n  ```",
        ),
        *("a \\(b\\) *c*", "\\[\na\n- b\n\\]", "1. a\n\n   $$\n   b\n   $$"),
        *("[r]: https://x.example", "see [r]", "***", "#", "* a\n* b"),
    ]
)


def streamed(chunks: list[str]) -> tuple[str, str]:
    renderer = StreamRenderer()
    closed, opened = "", ""
    for chunk in chunks:
        update = renderer.feed(chunk)
        closed += update.closed_html
        opened = update.open_html
    return closed, opened


def in_chunks(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[first:last] for first, last in pairwise(edges)]


def test_it_works() -> None:
    renderer = StreamRenderer()
    first = renderer.feed("# Head\n\nSome *wo")
    assert (first.closed_html, first.open_html) == (
        "<h1>Head</h1>\n",
        "<p>Some <em>wo</em></p>\n",
    )
    second = renderer.feed("rds*\n\nNext")
    assert (second.closed_html, second.open_html) == (
        "",
        "<p>Some <em>words</em></p>\n<p>Next</p>\n",
    )
    third = renderer.feed("\n")
    assert (third.closed_html, third.open_html) == ("<p>Some <em>words</em></p>\n", "<p>Next</p>\n")
    assert renderer.finish() == render("# Head\n\nSome *words*\n\nNext\n")


def test_nothing_shows_nothing() -> None:
    assert StreamRenderer.split("") == ("", "")
    assert StreamRenderer().finish() == ""


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_i22_chunks_make_no_difference(text: str, cuts: list[int], newline: str) -> None:
    """I22: whoever came late or reloads in mid-stream sees what the others see.

    Breaks when: ``Cutter._scan`` passes over a line before its newline has come.
    """
    text = text.replace("\n", newline)
    assert streamed(in_chunks(text, cuts)) == StreamRenderer.split(text)


@given(TEXTS)
@example("[r]: https://x.example\n\n[r]\n\n[r]\n")
@settings(max_examples=40)
def test_i22_every_prefix_splits_as_it_streamed(text: str) -> None:
    """I22.

    Breaks when: ``for_open_block`` hands out the references themselves and not a copy.
    """
    renderer = StreamRenderer()
    closed = ""
    for offset, character in enumerate(text):
        update = renderer.feed(character)
        closed += update.closed_html
        assert (closed, update.open_html) == StreamRenderer.split(text[: offset + 1])
    assert renderer.finish() == render(text)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_i22_a_payload_cut_anywhere_is_inert(payload: str) -> None:
    """I22, X05: each fragment is whole in itself at every offset.

    Breaks when: ``render_piece`` gives back what the parser wrote, and that writes HTML through.
    """
    text = f"a\n\n{payload}\n\nb\n\n{payload}"
    for offset in range(len(text) + 1):
        for html in streamed([text[:offset], text[offset:]]):
            assert_inert(html)
        assert_inert(StreamRenderer.split(text[:offset])[1])


@given(st.lists(BLOCKS, max_size=12))
def test_i22_the_stream_ends_as_the_page_loads(blocks: list[str]) -> None:
    """I22: even before the final render, blocks look the same in both (links made later aside).

    Breaks when: ``Cutter`` cuts at the second item of a list that has blank lines.
    """
    text = "\n\n".join(["[r]: https://x.example", *blocks, ""])
    closed, opened = streamed([text])
    assert closed + opened == render(text)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a\n\nb", ""),
        ("a\n\nb\n", "a\n\n"),
        ("a\n\n- b\n", "a\n\n"),
        ("- a\n\n- b\n\n  c\n", ""),
        ("- a\n\nb\n", "- a\n\n"),
        ("a\n# b\n", "a\n# b\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n", "```\na\n\nb\n```\n"),
        ("- a\n  ```\n  b\n\n  c\n  ```\n", ""),
        ("- a\n\n```\nb\n", "- a\n\n"),
        ("1. a\n  ```\nb\n\nc\n", "1. a\n"),
        ("~~~\n```\n\na\n", ""),
        ("> a\n\n> b\n", "> a\n\n"),
        ("- a\n\n* * *\n", "- a\n\n"),
    ],
)
def test_where_it_cuts(text: str, closed: str) -> None:
    assert "".join(piece.text for piece in Cutter().feed(text)) == closed


@given(TEXTS)
def test_pieces_are_the_text(text: str) -> None:
    cutter = Cutter()
    pieces = [piece.text for piece in cutter.feed(text)]
    whole = "".join([*pieces, cutter.open_piece().text])
    assert whole.split() == text.split()


LONG = {
    "fence": "```python\n" + "".join(f"value_{n} = {n}\n" for n in range(5_000)) + "```\n",
    "table": "| a | b |\n|---|---|\n" + "".join(f"| {n} | y |\n" for n in range(10_000)),
    "list": "".join(f"- item {n} with words\n" for n in range(5_000)),
    "line": "word " * 20_000,
    "line without spaces": "x" * 100_000,
    "brackets": "[" * 20_000,
    "quotes": "> " * 20_000,
}


@pytest.mark.parametrize("name", LONG)
def test_x10_the_open_block_is_bounded(name: str) -> None:
    """X10.

    Breaks when: ``Cutter.feed`` never calls ``_cut_within_block``.
    """
    text = LONG[name]
    cutter = Cutter()
    for start in range(0, len(text), 997):
        cutter.feed(text[start : start + 997])
        assert len(cutter.open_piece().text) <= max(OPEN_BLOCK, OPEN_FENCE) + 1_000


@pytest.mark.parametrize("name", LONG)
def test_a_long_block_streams_the_same_in_any_chunks(name: str) -> None:
    text = LONG[name][:40_000]
    pieces = [text[start : start + 1_237] for start in range(0, len(text), 1_237)]
    assert streamed(pieces) == StreamRenderer.split(text)


def test_a_long_fence_goes_on_as_a_fence() -> None:
    closed, opened = StreamRenderer.split(LONG["fence"][:30_000])
    figures = (closed + opened).split("<figure")[1:]
    assert [figure.startswith(' class="code continued"') for figure in figures] == [
        False,
        *[True] * (len(figures) - 1),
    ]
    assert len(figures) > 1
    assert "<p>" not in closed + opened


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("```\nx = 1", "x = 1</code></pre></figure>\n"),
        ("```\nx = 1\n", "x = 1\n</code></pre></figure>\n"),
        ("```py\nx = 1", "1</span></code></pre></figure>\n"),
    ],
)
def test_a_line_of_code_that_goes_on_is_not_broken(text: str, end: str) -> None:
    """The caret stands at its end.

    Breaks when: the parser's line break is left after an unfinished line.
    """
    assert StreamRenderer.split(text)[1].endswith(end)


def test_a_long_table_goes_on_as_a_table() -> None:
    closed, opened = StreamRenderer.split(LONG["table"][:10_000])
    assert (closed + opened).count("<table ") > 1
    assert "<p>" not in closed + opened


def test_a_long_list_is_cut_between_items() -> None:
    closed, _ = StreamRenderer.split(LONG["list"][:10_000])
    assert closed.count("<ul ") > 1
    assert "<p>" not in closed


def test_a_common_reply_costs_little_to_stream() -> None:
    paragraph = "Here is a **paragraph** with `code`, *emphasis* and quite some words in it.\n\n"
    code = "```python\n" + "def f(x):\n    return x + 1\n" * 8 + "```\n\n"
    items = "".join(f"{n}. item number {n} with **bold** words\n" for n in range(1, 9)) + "\n"
    table = "| a | b |\n|---|---|\n" + "| x | y |\n" * 6 + "\n"
    reply = ((paragraph * 3 + code + items + table) * 30)[:20_000]
    flushes = [reply[start : start + 200] for start in range(0, len(reply), 200)]
    # Re-rendered whole at each flush it would be 50 times one whole rendering.
    assert cost(lambda: streamed(flushes)) < 15 * cost(lambda: render(reply))
