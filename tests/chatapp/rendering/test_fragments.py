"""Fragments: what each event changes on the screen, and that nothing in it is alive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils.html import strip_tags

from chatapp.conversations.turns.progress import interruption
from chatapp.live import events
from chatapp.live.view_models import CompressionView
from chatapp.rendering import markdown
from chatapp.rendering.fragments import render_event
from chatapp.rendering.words import labels
from chatapp.templatetags.chat import feed
from tests.chatapp.rendering.samples import (
    ENVELOPE,
    NOW,
    Elements,
    compressed,
    context,
    conversation,
    message,
    page,
    state,
    turn,
)

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"' \u202e {{7*7}} {% load x %}"
EVIL_ERROR: dict[str, Any] = {
    "code": "llm_server_error",
    "message": EVIL,
    "retryable": True,
    "retry_after": 20,
    "fields": {"provider_message": EVIL, "current_text": EVIL, "submitted_text": EVIL},
    "partial_kept": True,
}
UPDATE = markdown.Update(closed_html="<p>one</p>", open_html="<p>two</p>")


def _error(text: str) -> dict[str, Any]:
    return {**EVIL_ERROR, "message": text}


def _turn_events(text: str) -> list[events.Event]:
    reply = message(8, "assistant", text, model=text, reasoning=text)
    ended = turn(8, "failed", error=_error(text))
    return [
        state(
            [message(7, "user", text, client_msg_id=text), reply],
            conversation=conversation(title=text, draft=text, queued=True),
            turns=[ended, turn(4, "failed", error=_error(text))],
            compression=compressed(
                summary=text,
                model=text,
                truncated_count=3,
                mask_batch=1,
                masked_seqs=[9, 12],
                masked_results=1,
            ),
        ),
        events.TurnStarted(**ENVELOPE, turn=7, message_seq=7, reply_seq=8, model=text),
        events.Delta(**ENVELOPE, turn=7, seq=8, offset=3, text=text, reasoning=text),
        events.ToolStarted(
            **ENVELOPE, turn=7, seq=8, call_id=text, name=text, arguments={text: text}
        ),
        events.ToolFinished(
            **ENVELOPE, turn=7, seq=9, call_id=text, name=text, result=text, seconds=0.2
        ),
        events.TurnFinished(
            **ENVELOPE,
            turn=7,
            status="failed",
            error=_error(text),
            usage={},
            message=reply,
            ended=ended,
        ),
    ]


def failed_compression(reason: str) -> events.CompressionCompleted:
    """A run that ended without a summary."""
    return events.CompressionCompleted(
        **ENVELOPE,
        trigger="threshold",
        success=False,
        version=0,
        tokens_before=0,
        tokens_after=0,
        usage_before=0.8,
        usage_after=0.8,
        reason=reason,
        code="summarizer_failed",
        degraded=False,
        duration=2.0,
        cost=None,
        compression=CompressionView(running=True, locks_input=True),
        context=context(model=reason),
    )


def every_event(text: str = "Good day.") -> list[events.Event]:
    """One event of each type with ``text`` wherever a text of anyone can stand."""
    return [
        *_turn_events(text),
        events.CompressionStarted(
            **ENVELOPE, trigger=text, message_count=6, source_tokens=2000, locks_input=True
        ),
        events.CompressionProgress(**ENVELOPE, tokens_written=1234),
        failed_compression(text),
        events.SummaryChanged(
            **ENVELOPE, version=3, compression=compressed(summary=text), context=context()
        ),
        events.MessageAdded(
            **ENVELOPE, message=message(9, "tool", text, tool_name=text, masked=True)
        ),
        events.MessageChanged(**ENVELOPE, message=message(9, "user", text, pinned=True)),
        events.Masked(**ENVELOPE, batch=1, count=2, tokens_freed=900, seqs=[9, 12]),
        events.TitleChanged(**ENVELOPE, title=text),
        events.Context(**ENVELOPE, context=context(estimated=True)),
        events.Error(**ENVELOPE, error=_error(text)),
    ]


def fragment(event: events.Event) -> str:
    return render_event(event, UPDATE if isinstance(event, events.Delta) else None)


@pytest.mark.parametrize("event", every_event(), ids=lambda event: event.type)
def test_every_top_level_element_says_which_event_it_is_and_where_it_goes(
    event: events.Event,
) -> None:
    elements = Elements(fragment(event))
    assert elements.top
    for _, attributes in elements.top:
        assert attributes["data-event"] == event.type
        assert attributes["data-event-no"] == "42"
        assert attributes["id"]
        assert attributes["hx-swap-oob"]


def test_every_type_of_event_has_a_fragment() -> None:
    types = {kind for kind in vars(events).values() if isinstance(kind, type)}
    known = {kind for kind in types if issubclass(kind, events.Event) and kind is not events.Event}
    assert {type(event) for event in every_event()} == known


def test_an_event_without_a_fragment_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no fragment"):
        render_event(events.Event(**ENVELOPE))


@pytest.mark.parametrize("event", every_event(EVIL), ids=lambda event: event.type)
def test_i22_text_of_anyone_is_inert_in_every_event(event: events.Event) -> None:
    """I22: no text of a user, a model, a tool or an error becomes an element or an attribute.

    Breaks when: a template marks a value as ``safe``, or ``_delta`` leaves out ``escape``.
    """
    html = fragment(event)
    for tag, attributes in Elements(html).all:
        assert tag not in {"script", "img", "iframe", "style", "object"}
        assert not [name for name in attributes if name.startswith("on")]
        assert "style" not in attributes
    assert "\u202e" not in html


class TestDelta:
    def delta(self, update: markdown.Update | None, **fields: Any) -> Elements:
        values: dict[str, Any] = {"turn": 7, "seq": 8, "offset": 120, "text": "x", **fields}
        return Elements(render_event(events.Delta(**ENVELOPE, **values), update))

    def test_closed_blocks_are_appended_and_the_open_one_replaced(self) -> None:
        elements = self.delta(UPDATE)
        assert elements.of_id("m-8-closed")["hx-swap-oob"] == "beforeend"
        assert elements.of_id("m-8-open")["hx-swap-oob"] == "innerHTML"
        for identifier in ("m-8-closed", "m-8-open"):
            assert elements.of_id(identifier)["data-seq"] == "8"
            assert elements.of_id(identifier)["data-offset"] == "120"

    def test_without_a_closed_block_only_the_open_one_is_sent(self) -> None:
        elements = self.delta(markdown.Update(closed_html="", open_html=""))
        assert [attributes["id"] for _, attributes in elements.top] == ["m-8-open"]

    def test_reasoning_is_plain_text(self) -> None:
        update = markdown.StreamRenderer().feed("", "**a** <b>")
        elements = self.delta(update, offset=0, text="", reasoning="**a** <b>")
        assert elements.of_id("m-8-thoughts")["hx-swap-oob"] == "beforeend"
        assert elements.of_id("m-8-thinking")["hx-swap-oob"] == "innerHTML"
        assert elements.text == "**a** <b>" * 2

    def test_what_the_deltas_make_is_what_a_page_load_makes_of_the_text_so_far(self) -> None:
        text = "# A\n\nfirst\n\n- one\n- two\n\n```python\nx = 1\n"
        renderer, closed, open_html = markdown.StreamRenderer(), "", ""
        for start in range(0, len(text), 5):
            update = renderer.feed(text[start : start + 5])
            closed, open_html = closed + update.closed_html, update.open_html
        reply = message(8, "assistant", "", status="streaming")
        shown = feed(page([reply], turn=turn(8, "streaming", finished_at=None, text=text)))
        assert f'<div id="m-8-closed" class="closed">{closed}</div>' in shown.live
        assert f'<div id="m-8-open" class="open">{open_html}</div>' in shown.live


class TestArticles:
    def test_a_fragment_is_the_article_of_a_page_load_and_the_swap(self) -> None:
        """I4, I22: what an event brings equals what a fresh page shows.

        Breaks when: ``article.html`` shows something in one of the two only.
        """
        reply = message(8, "assistant", "**Good** day.")
        ended = turn(8, "stopped", usage={"completion_tokens": 312})
        event = events.TurnFinished(
            **ENVELOPE,
            turn=7,
            status="stopped",
            error=None,
            usage={},
            message=reply,
            ended=ended,
        )
        fresh = feed(page([reply], turns=[ended])).live
        marks = ' hx-swap-oob="message:#feed" data-event="turn-finished" data-event-no="42"'
        streamed = render_event(event)
        assert marks in streamed
        assert streamed.replace(marks, "").startswith(fresh)

    def test_the_streaming_reply_is_busy_and_the_finished_one_is_not(self) -> None:
        busy = Elements(feed(page([message(8, "assistant", "", status="streaming")])).live)
        assert busy.of_id("m-8")["aria-busy"] == "true"
        done = Elements(feed(page([message(8, "assistant", "x")])).live)
        assert "aria-busy" not in done.of_id("m-8")

    def test_headings_are_you_and_the_model(self) -> None:
        shown = feed(page([message(1), message(2, "assistant", "x", model="some-model")])).live
        assert '<h2 id="m-1-by">You</h2>' in shown
        assert '<h2 id="m-2-by">some-model</h2>' in shown

    def test_superseded_messages_are_not_on_the_page_and_leave_the_screen(self) -> None:
        gone = message(2, "assistant", "x", superseded=True)
        assert "m-2" not in feed(page([message(1), gone])).live
        html = render_event(events.MessageChanged(**ENVELOPE, message=gone))
        assert "data-superseded" in Elements(html).of_id("m-2")

    def test_messages_up_to_the_boundary_stand_beneath_the_divider(self) -> None:
        shown = feed(page([message(6), message(7)], compression=compressed()))
        assert Elements(shown.summarised).of_id("m-6")["data-beneath"] == ""
        assert "data-beneath" not in Elements(shown.live).of_id("m-7")

    def test_a_changed_message_keeps_what_is_said_of_its_turn(self) -> None:
        html = render_event(events.MessageChanged(**ENVELOPE, message=message(8, "assistant", "x")))
        assert "data-keep" in Elements(html).of_id("m-8-outcome")


class TestOutcomes:
    def finished(self, status: str, **fields: Any) -> str:
        return render_event(
            events.TurnFinished(
                **ENVELOPE,
                turn=7,
                status=status,
                error=fields.get("error"),
                usage={},
                message=message(8, "assistant", "Some text"),
                ended=turn(8, status, **fields),
            )
        )

    def test_a_complete_turn_says_nothing_and_is_announced(self) -> None:
        html = self.finished("complete")
        assert "Answer complete" in html
        assert 'class="card"' not in html

    def test_a_stopped_turn_says_after_how_many_tokens_and_offers_to_go_on(self) -> None:
        html = self.finished("stopped", usage={"completion_tokens": 1312}, ruler_tokens=1300)
        assert "Stopped after 1,312 tokens." in html
        assert 'hx-post="continue/"' in html
        assert 'class="link" hx-post="regenerate/"' in html

    def test_without_a_bill_the_ruler_says_about_how_many(self) -> None:
        assert "Stopped after ~312 tokens." in self.finished("stopped", ruler_tokens=312)
        assert "Stopped after ~1 token." in self.finished("stopped", ruler_tokens=1)
        assert "Stopped before the first word." in self.finished("stopped")

    @pytest.mark.parametrize("status", ["stopped", "interrupted", "truncated", "failed"])
    def test_what_has_no_text_is_not_offered_to_be_continued(self, status: str) -> None:
        """Breaks when: Continue goes by the turn's status, or by what the model server billed."""
        thought = {"completion_tokens": 40}
        nothing = interruption(kept=False) if status == "interrupted" else None
        html = self.finished(status, usage=thought, error=nothing)
        assert 'hx-post="continue/"' not in html
        assert 'hx-post="regenerate/"' in html
        kept = interruption(kept=True) if status == "interrupted" else None
        html = self.finished(status, usage=thought, error=kept, ruler_tokens=12)
        assert 'hx-post="continue/"' in html

    def test_a_failure_is_a_card_with_the_providers_words_folded_away(self) -> None:
        error = {**EVIL_ERROR, "message": "The model server is busy.", "fields": {}}
        error["fields"] = {"provider_message": "slow down"}
        elements = Elements(self.finished("failed", error=error))
        assert ("div", {"class": "card", "role": "alert"}) in elements.all
        assert "The model server is busy." in elements.text
        assert "slow down" in elements.text
        assert [a for _, a in elements.all if a.get("data-retry-after") == "20"]

    @pytest.mark.parametrize("kept", [True, False])
    def test_a_failure_names_continue_only_where_it_offers_it(self, kept: bool) -> None:
        """Breaks when: a sentence sends the reader to a button that is not there."""
        error = {**EVIL_ERROR, "message": "It broke off.", "fields": {}, "partial_kept": kept}
        html = self.finished("interrupted", error=error, ruler_tokens=12)
        assert ("Continue goes on from the text so far." in html) == kept
        assert ('hx-post="continue/"' in html) == kept

    def test_a_reply_cut_off_with_an_error_says_both(self) -> None:
        error = {**EVIL_ERROR, "message": "The model server is busy.", "fields": {}}
        error |= {"partial_kept": True}
        html = self.finished("truncated", error=error, ruler_tokens=12)
        assert "reached the model&#x27;s length limit. The model server is busy." in html
        assert 'hx-post="continue/"' in html

    def test_a_turn_whose_message_did_not_change_changes_its_outcome_alone(self) -> None:
        html = render_event(state([], turns=[turn(4, "interrupted")]))
        assert Elements(html).of_id("m-4-outcome")["hx-swap-oob"] == "innerHTML"
        assert "Interrupted" in html


class TestCompression:
    def test_a_locking_run_locks_and_a_background_run_does_not(self) -> None:
        def started(locks: bool) -> str:
            return render_event(
                events.CompressionStarted(
                    **ENVELOPE,
                    trigger="threshold",
                    message_count=214,
                    source_tokens=86_000,
                    locks_input=locks,
                )
            )

        assert "data-locked" in started(True)
        assert "Compressing conversation" in started(True)
        assert "data-locked" not in started(False)
        assert "Summarising 214 older messages" in strip_tags(started(False))
        assert 'id="spoken"' not in started(False)

    def test_progress_is_a_true_count(self) -> None:
        html = render_event(events.CompressionProgress(**ENVELOPE, tokens_written=1234))
        bar = next(a for _, a in Elements(html).all if a.get("role") == "progressbar")
        assert bar["aria-valuetext"] == "1234 tokens written"
        assert "1.2k tokens written" in html
        assert "compression-messages" not in html

    def test_progress_says_of_how_many_messages_where_that_is_known(self) -> None:
        """Who loaded the page from another process learns it so."""
        html = render_event(
            events.CompressionProgress(**ENVELOPE, tokens_written=1, message_count=214)
        )
        assert Elements(html).of_id("compression-messages")["hx-swap-oob"] == "innerHTML"
        assert "214 " in strip_tags(html)

    def test_progress_names_the_part_its_messages_and_the_time_left(self) -> None:
        """Breaks when: the line leaves one of them out, or names the only part of a short one."""

        def line(**facts: Any) -> str:
            html = render_event(events.CompressionProgress(**ENVELOPE, tokens_written=1, **facts))
            assert Elements(html).of_id("compression-part")["hx-swap-oob"] == "innerHTML"
            return " ".join(strip_tags(html).split())

        whole = {"part": 3, "parts": 38, "first_seq": 1, "through_seq": 412}
        told = line(**whole, seconds_left=18)
        assert "part 3 of 38 messages 1–412 about 20 s left" in told
        assert line(**whole).endswith("messages 1–412")
        assert "about 3 min left" in line(**whole, seconds_left=170)
        assert "part" not in line(part=1, parts=1, first_seq=1, through_seq=9)

    def test_the_parts_of_an_extract_are_named(self) -> None:
        """Breaks when: a summary of which no model wrote a part looks like any other."""
        one = {"part": 8, "parts": 9, "first_seq": 120, "through_seq": 160}
        extracted = [one | {"reason": "The model answered with nothing <b>."}]
        view = replace(compressed(), model="fake-model", extracted=extracted)
        html = render_event(
            events.SummaryChanged(**ENVELOPE, version=2, compression=view, context=context())
        )
        assert "part 8 of 9 by extract" in strip_tags(html)
        assert "no model could summarise" not in html
        assert labels.extracted_part(view.extracted[0]) == (
            "Part 8 of 9 (messages 120–160) by extract: the model answered with nothing <b>."
        )
        assert labels.extracted([one, one | {"part": 9}]) == "parts 8, 9 of 9 by extract"

    def test_the_divider_has_its_figures_and_its_buttons(self) -> None:
        html = render_event(
            events.SummaryChanged(
                **ENVELOPE, version=2, compression=compressed(), context=context()
            )
        )
        elements = Elements(html)
        region = next(a for _, a in elements.all if a.get("role") == "region")
        assert region["aria-label"] == "Compressed messages"
        assert region["data-boundary"] == "6"
        assert "6 messages above are kept here" in elements.text
        assert "2.3k → 402 tokens" in elements.text
        for name in ("View summary", "Edit summary", "Undo compression"):
            assert name in elements.text

    @pytest.mark.parametrize(
        ("trigger", "said"), [("edit", "takes back the edit"), ("threshold", "")]
    )
    def test_what_undo_takes_back_is_said_where_it_is_no_compression(
        self, trigger: str, said: str
    ) -> None:
        """Beside the button, and it is not called a compression; to a screen reader it stays so."""
        compression = compressed(undoes=trigger)
        html = render_event(
            events.SummaryChanged(**ENVELOPE, version=2, compression=compression, context=context())
        )
        assert f">{'Undo' if said else 'Undo compression'}</button>" in html
        assert ('aria-label="Undo compression"' in html) is bool(said)
        assert (f'<span class="hint">{said}</span>' in html) is bool(said)
        assert ('title="Takes back' in html) is bool(said)

    def test_a_failure_says_that_nothing_was_lost(self) -> None:
        html = render_event(failed_compression("The model did not finish."))
        assert "Nothing was lost" in html
        assert 'hx-post="compact/"' in html

    def test_the_end_of_a_background_run_is_quiet(self) -> None:
        for success in (True, False):
            ended = replace(
                failed_compression("The model did not finish."),
                trigger="background",
                success=success,
                tokens_before=2300,
                tokens_after=402,
            )
            html = render_event(ended)
            assert 'id="compression"' in html
            assert 'id="alerts"' not in html
            assert 'id="spoken"' not in html

    def test_a_new_summary_is_said_with_the_dividers_figures(self) -> None:
        applied = replace(
            failed_compression(""), success=True, version=2, compression=compressed(can_undo=True)
        )
        html = render_event(applied)
        assert html.count("2.3k → 402 tokens") == 2
        assert 'hx-post="summary/undo/" hx-swap="none">Undo</button>' in html
        assert "Conversation compressed" in html

    def test_a_prepared_summary_is_said_like_any_other(self) -> None:
        """Also by a state, to a page that got no event; not if a person changed the summary.

        Breaks when: what is applied without a lock is left out, or an edit is called compression.
        """
        view = replace(compressed(can_undo=True), version=2, made_by="background")
        ended = replace(
            failed_compression(""), trigger="background", success=True, version=2, compression=view
        )
        for event, said in (
            (ended, True),
            (state([], compression=view), True),
            (state([], compression=replace(view, made_by="edit")), False),
        ):
            html = render_event(event)
            assert ('id="moment"' in html) is said
            assert ('data-spoken="Conversation compressed"' in html) is said
            assert 'id="alerts"' not in html
            assert 'id="spoken"' not in html

    def test_a_line_names_what_is_kept_and_undoes_its_own_version(self) -> None:
        """Breaks when: Undo takes back what was done meanwhile."""
        text = f"## Constraints\n- {EVIL} [1]\n\n## Decisions\n- One [2]\n- Two [3]"
        view = replace(
            compressed(summary=text, can_undo=True), version=7, boundary=6, made_by="manual"
        )
        html = render_event(state([], compression=view))
        kept = 'tokens</strong> · 1 rule, 2 decisions kept<span class="between"> · </span><span'
        assert kept in html
        assert 'data-figures="2.3k to 402 tokens, 1 rule and 2 decisions kept"' in html
        assert "hx-vals='{\"version\": 7}'" in html
        assert ">Rule</span>" in html
        assert "<script" not in html
        assert "\u202e" not in html

    def test_lines_come_with_the_progress(self) -> None:
        """Escaped, and none where none is written: what is shown stays."""
        facts: dict[str, Any] = {**ENVELOPE, "tokens_written": 5}
        html = render_event(events.CompressionProgress(**facts, lines=("A rule", EVIL)))
        assert Elements(html).of_id("compression-lines")["hx-swap-oob"] == "innerHTML"
        assert "<li>A rule</li>" in html
        assert "<script" not in html
        assert "compression-lines" not in render_event(events.CompressionProgress(**facts))

    def test_messages_left_out_are_said_plainly(self) -> None:
        because = "summarising failed: The model said <nothing>"
        view = CompressionView(truncated_count=12, truncated_tokens=1700, truncated_because=because)
        html = render_event(state([], compression=view))
        assert "The oldest 12 messages, 1.7k tokens, are left out of what the model sees" in html
        assert "because summarising failed: The model said &lt;nothing&gt;." in html

    def test_messages_left_out_because_nobody_wanted_a_summary(self) -> None:
        html = render_event(state([], compression=CompressionView(truncated_count=12, off=True)))
        assert "Compress now" in html
        assert "Retry" not in html


def test_times_are_machine_readable() -> None:
    assert f'datetime="{NOW.isoformat()}"' in feed(page([message(1)])).live
