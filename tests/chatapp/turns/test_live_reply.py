"""A reply while it is written: what viewers are shown of it, whenever they come."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.markdown.stream import StreamRenderer
from chatapp.turns.live_reply import PORTION, LiveStream, Phase
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
        while stream.rendering.unseen:
            stream.rendering.catch_up()
        update = stream.rendering.render()
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
    while stream.rendering.unseen:
        assert stream.rendering.to_render > 0
        stream.rendering.catch_up()
        portions += 1
    assert portions == -(-len(stream.text) // PORTION)
    told(stream, "The last one.", shown=True)
    update = stream.rendering.render()
    before, _ = StreamRenderer.split(stream.text.removesuffix("The last one."))
    closed, shown_open = StreamRenderer.split(stream.text)
    assert (before + update.closed_html, update.open_html) == (closed, shown_open)


@given(st.lists(st.sampled_from(Phase)))
def test_a_turn_never_goes_back_to_an_earlier_phase(entered: list[Phase]) -> None:
    """A shutdown takes no Stop back, and nothing is written of a turn that is lost.

    Breaks when: ``enter`` lets any phase follow any other.
    """
    stream = LiveStream(job=JOB, event_no=1)
    for phase in entered:
        before = stream.phase
        assert stream.enter(phase) == (phase > before)
        assert stream.phase == max(before, phase)
    assert stream.lost == (Phase.LOST in entered)


@pytest.mark.parametrize("phase", [Phase.SHUTTING_DOWN, Phase.STOPPING, Phase.LOST])
@pytest.mark.parametrize("begun", [False, True])
async def test_a_task_ends_with_its_first_step_at_the_earliest(phase: Phase, begun: bool) -> None:
    """Cancelled before that, a task would never run, and the turn's end not be stored.

    Breaks when: ``end`` cancels a task that has not begun, or ``begin`` does not look whether it
    was to end.
    """
    stream, ends = LiveStream(job=JOB, event_no=1), list[Phase]()
    running = asyncio.Event()

    async def turn() -> None:
        try:
            stream.begin()
            running.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append(stream.phase)

    stream.task = asyncio.create_task(turn())
    if begun:
        await asyncio.wait_for(running.wait(), 10)
        assert stream.phase is Phase.RUNNING
    stream.end(phase)
    await asyncio.wait_for(asyncio.wait({stream.task}), 10)
    assert ends == [phase]


async def test_a_last_write_finds_out_by_itself_that_the_turn_is_lost() -> None:
    """Breaks when: ``lose`` does not spare a turn whose last write is under way."""
    stream = LiveStream(job=JOB, event_no=1, phase=Phase.FINISHING)
    stream.lose()
    assert stream.phase is Phase.FINISHING
    running = LiveStream(job=JOB, event_no=1, phase=Phase.RUNNING)
    running.lose()
    assert running.lost
