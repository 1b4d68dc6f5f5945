"""A reply while it is written: what viewers are shown of it, whenever they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.markdown.stream import StreamRenderer
from chatapp.turns.live_reply import PORTION, LiveStream
from chatapp.turns.turn import Job

JOB = Job(conversation_id=1, owner_id=1, turn=1, reply_seq=2, reply_id=2, model="a-model")


def told(stream: LiveStream, text: str, *, shown: bool) -> None:
    """One flush of ``text``."""
    stream.add(text=text)
    stream.gather()
    stream.take(shown=shown)


@given(
    st.lists(st.tuples(st.sampled_from(["one ", "two\n\n", "```\n", "# three\n"]), st.booleans()))
)
def test_i22_who_comes_late_is_shown_the_rest_once(flushes: list[tuple[str, bool]]) -> None:
    """I22: what each update adds, after what was there when nobody looked, makes the whole.

    Breaks when: what nobody looked at is part of the next update, or is left out of the blocks.
    """
    stream = LiveStream(job=JOB, event_no=1)
    text = closed = shown_open = ""
    for piece, shown in flushes:
        text += piece
        told(stream, piece, shown=shown)
        if not shown:
            # A page that is loaded now shows all of it.
            closed, shown_open = StreamRenderer.split(text)
            continue
        while stream.unseen:
            stream.catch_up()
        update = stream.render()
        closed, shown_open = closed + update.closed_html, update.open_html
    assert (closed, shown_open) == StreamRenderer.split(text)


def test_i25_what_nobody_looked_at_is_rendered_in_portions() -> None:
    """I25: a long reply whose first viewer comes late is not rendered in one go.

    Breaks when: ``catch_up`` takes all there is.
    """
    stream = LiveStream(job=JOB, event_no=1)
    for number in range(PORTION // 10):
        told(stream, f"Paragraph number {number}.\n\n", shown=False)
    portions = 0
    while stream.unseen:
        assert stream.to_render > 0
        stream.catch_up()
        portions += 1
    assert portions == -(-len(stream.text) // PORTION)
    told(stream, "The last one.", shown=True)
    update = stream.render()
    before, _ = StreamRenderer.split(stream.text.removesuffix("The last one."))
    closed, shown_open = StreamRenderer.split(stream.text)
    assert (before + update.closed_html, update.open_html) == (closed, shown_open)
