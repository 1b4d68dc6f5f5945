"""Parts of a span: filled to their room, whole at their ends where that costs little, bounded."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compression.planning.parts import MOST_EMPTY, Chunk, Plan, bounded, filled
from compression.summarizers.quoting import quote_item, shortened
from compression.tokens import CharacterCounter
from compression.types import Item

COUNTER = CharacterCounter()
ROOM = 600


def size(item: Item) -> int:
    return COUNTER.count(quote_item(item, "ab12cd34")) + 2


def say(seq: int, text: str) -> Item:
    return Item(seq=seq, role="user" if seq % 2 else "assistant", text=text, tokens=len(text) // 3)


def planned(items: list[Item], room: int = ROOM) -> Plan:
    chunks = tuple(filled(items, lambda number: room, size))
    return Plan(chunks=chunks, originals={item.seq: item for item in items})


def said(items: list[Item] | tuple[Item, ...]) -> dict[int, str]:
    """All that was said by seq; the pieces of a message together."""
    texts: dict[int, str] = {}
    for item in items:
        texts[item.seq] = texts.get(item.seq, "") + item.text
    return texts


words = st.integers(0, 900).map(lambda count: "word " * count)
texts = st.lists(words | st.text(max_size=3000), min_size=1, max_size=30)


@given(texts)
def test_every_word_is_in_one_part_and_no_part_is_above_its_room(texts: list[str]) -> None:
    """Breaks when: ``filled`` forgets the rest of a divided message, or what its frame takes."""
    items = [say(seq, text) for seq, text in enumerate(texts, 1)]
    chunks = planned(items).chunks
    assert said([item for chunk in chunks for item in chunk.items]) == said(items)
    written: dict[int, int] = {}
    for chunk in chunks:
        for item in chunk.items:
            written[item.seq] = written.get(item.seq, 0) + len(item.text)
        last = chunk.through_seq
        assert chunk.divided_at == (written[last] if written[last] < len(texts[last - 1]) else 0)
        assert chunk.tokens == sum(size(item) for item in chunk.items) <= ROOM


@given(st.lists(words, min_size=1, max_size=30))
def test_parts_are_filled(texts: list[str]) -> None:
    """Breaks when: long messages are halved until they fit, or never share a part."""
    items = [say(seq, text) for seq, text in enumerate(texts, 1)]
    for chunk in planned(items).chunks[:-1]:
        assert chunk.tokens >= ROOM * (1 - MOST_EMPTY) * 0.9


def test_a_part_ends_where_a_message_does_if_little_stays_empty() -> None:
    """Breaks when: ``filled`` divides whatever does not fit."""
    items = [say(seq, "word " * 160) for seq in range(1, 6)]
    chunks = planned(items).chunks
    assert [len(chunk.items) for chunk in chunks] == [2, 2, 1]
    assert not any(chunk.divided_at for chunk in chunks)
    items = [say(1, "word " * 40), say(2, "word " * 300)]
    first, second = planned(items).chunks
    assert (first.divided_at, second.divided_at) == (len(first.items[1].text), 0)
    assert (first.through_seq, second.first_seq) == (2, 2)


@given(texts, st.integers(1, 12))
def test_beyond_the_bound_the_extract_has_the_oldest(texts: list[str], most: int) -> None:
    """Breaks when: ``bounded`` loses a message between the two, or gives the model the oldest."""
    items = [say(seq, text) for seq, text in enumerate(texts, 1)]
    whole = planned(items)
    plan = bounded(whole, most)
    assert len(plan.chunks) <= most
    by_model = [item for chunk in plan.chunks for item in chunk.items]
    assert said([*plan.oldest, *by_model]) == said(items)
    assert plan.parts == len(plan.chunks) + bool(plan.oldest)
    if plan.oldest:
        assert plan.oldest[-1].seq <= by_model[0].seq
    else:
        assert plan == whole


def test_a_tenth_of_the_calls_is_left_for_what_is_asked_again() -> None:
    """Breaks when: ``bounded`` plans a part for each call."""
    chunks = tuple(Chunk(items=(say(seq, "x"),)) for seq in range(1, 101))
    plan = Plan(chunks=chunks, originals={seq: say(seq, "x") for seq in range(1, 101)})
    assert len(bounded(plan, 40).chunks) == 36
    assert len(bounded(plan, 1).chunks) == 1
    assert bounded(plan, 100) == plan


def call(arguments: str) -> Item:
    function = {"name": "write_file", "arguments": arguments}
    return replace(say(2, "I write it."), tool_calls=({"id": "c1", "function": function},))


def test_arguments_of_calls_are_cut_as_results_are() -> None:
    """The path stays whole. Breaks when: ``shortened`` looks at results only."""
    content = "x = 1\\n" * 1400
    item = call(f'{{"path": "src/parse.py", "content": "{content}", "mode": 420}}')
    quoted = quote_item(shortened(item, 2000), "ab12cd34")
    assert len(quoted) < 2600
    assert "src/parse.py" in quoted
    assert "characters …]" in quoted
    assert "420" in quoted
    assert shortened(item, 100_000) == item


def test_arguments_that_are_no_object_are_cut_too() -> None:
    """Breaks when: ``shortened`` gives up on what it cannot read."""
    for arguments in ("word " * 3000, "[" + "1, " * 3000 + "1]", '{"path": "' + "y" * 9000):
        quoted = quote_item(shortened(call(arguments), 500), "ab12cd34")
        assert len(quoted) < 900
    many = "{" + ", ".join(f'"k{n}": {n}' for n in range(2000)) + "}"
    assert len(quote_item(shortened(call(many), 500), "ab12cd34")) < 900
