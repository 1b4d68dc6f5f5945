"""One turn: make the request fit, ask the model, pass on its reply. No Channels, no HTML.

:func:`run_turn` yields the steps of a turn; its caller stores and shows them, and ends the turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from chatapp.conversations.turns.progress import Ending
from chatapp.errors import ContextBlocked
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.client import Finished, LLMClient, ReasoningChunk, TextChunk
from chatapp.llm.errors import (
    ContentFiltered,
    ContextOverflow,
    EmptyReply,
    LLMError,
    MalformedReply,
    ModelRefused,
    OnlyReasoning,
    ReplyCut,
    UnofferedToolCall,
)
from chatapp.llm.profiles import Profile
from chatapp.models import TurnStatus
from chatapp.turns.fitting import FittingDeps, Prepared, prepare
from compression.exceptions import UserFacingError
from compression.planning.projection import Report
from compression.tokens import HIGHEST_CALIBRATION

# Share by which our own count is assumed wrong when a provider refuses without giving a figure.
DOUBT = 0.1

# The provider's finish reason → the turn's terminal status; any other reason is a normal end.
STATUS_OF_REASON = {
    "length": TurnStatus.TRUNCATED,
    "max_tokens": TurnStatus.TRUNCATED,
    "content_filter": TurnStatus.FILTERED,
    "refusal": TurnStatus.FILTERED,
}


def status_of(error: UserFacingError, *, began: bool) -> TurnStatus:
    """The terminal status after an error; ``began``: a piece of the reply was received.

    A reply that broke off is interrupted, so that the reader can have it continued.
    """
    if isinstance(error, ContextBlocked):
        return TurnStatus.BLOCKED
    if isinstance(error, ReplyCut) or (began and isinstance(error, MalformedReply)):
        return TurnStatus.INTERRUPTED
    return TurnStatus.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The turn to run."""

    conversation_id: int
    owner_id: int
    turn: int
    reply_seq: int
    reply_id: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent:
    """The request was sent to the model."""

    manifest: dict[str, Any]
    event_no: int
    """The conversation's number of changes when the request was built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of the reply's reasoning."""

    text: str


Step = RequestSent | TextDelta | ReasoningDelta | Ending


@dataclass(slots=True)
class _Reply:
    """What has been received of the reply so far."""

    text: bool = False
    reasoning: bool = False
    finished: Finished | None = field(default=None)


async def run_turn(
    job: Job, *, client: LLMClient, catalogue: Catalogue, deps: FittingDeps
) -> AsyncGenerator[Step, None]:
    """Run one turn to its end, yielding its steps.

    Raises LLMError for failures of the model, ContextBlocked when nothing fits, and NotFound when
    the conversation is gone. When a provider first says that the request is too long, its window is
    learned, the conversation compressed, and the model asked again.
    """
    prepared = await prepare(job.conversation_id, deps)
    for last_try in (False, True):
        reply = _Reply()
        yield RequestSent(manifest=prepared.request.manifest, event_no=prepared.snapshot.event_no)
        try:
            async with aclosing(_ask(prepared, deps, client, reply)) as steps:
                async for step in steps:
                    yield step
            break
        except ContextOverflow as overflow:
            if last_try or reply.text or reply.reasoning:
                raise
            deps = await _after_overflow(overflow, prepared, deps, catalogue)
            prepared = await prepare(job.conversation_id, deps, overflowed=True)
    assert reply.finished is not None
    await _calibrate(reply.finished, prepared, deps.profile, catalogue)
    yield _ending(reply, deps.profile)


async def _ask(
    prepared: Prepared, deps: FittingDeps, client: LLMClient, reply: _Reply
) -> AsyncGenerator[Step, None]:
    profile = deps.profile
    request = profile.request(
        prepared.request.messages, max_tokens=profile.reserve, on_retry=deps.on_retry
    )
    async with client.stream(request) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                reply.text = reply.text or bool(chunk.text.strip())
                yield TextDelta(text=chunk.text)
            elif isinstance(chunk, ReasoningChunk):
                reply.reasoning = True
                yield ReasoningDelta(text=chunk.text)
            else:
                reply.finished = chunk


async def _after_overflow(
    overflow: ContextOverflow, prepared: Prepared, deps: FittingDeps, catalogue: Catalogue
) -> FittingDeps:
    """The dependencies for a second try, with what the refusal tells of the window or the count."""
    profile = deps.profile
    window, tokens = overflow.fields.get("window"), overflow.fields.get("tokens")
    factor = profile.calibration
    if tokens:
        factor = max(factor, int(tokens) / _counted(prepared))
    elif window and int(window) >= profile.window:
        # The window is as large as we thought, so the provider must count more tokens.
        factor *= 1 + DOUBT
    if not window and not tokens:
        window = int(profile.window * (1 - DOUBT))
        await catalogue.learn(profile.name, "window", window, named=False)
    if factor > profile.calibration:
        await catalogue.learn(profile.name, "calibration", min(HIGHEST_CALIBRATION, factor))
    learned = await catalogue.profile(profile.name)
    # The second try uses this window even if the catalogue does not trust it yet.
    learned = replace(learned, window=min(learned.window, int(window or learned.window)))
    said = int(tokens or factor * _counted(prepared))
    return replace(deps, profile=learned, refused=Report(counted=_counted(prepared), reported=said))


def _counted(prepared: Prepared) -> int:
    """Ruler tokens of a request."""
    return max(1, int(prepared.request.manifest["counted"]))


async def _calibrate(
    finished: Finished, prepared: Prepared, profile: Profile, catalogue: Catalogue
) -> None:
    if finished.usage is None:
        return
    await catalogue.calibrate(
        profile, reported=finished.usage.prompt_tokens, counted=_counted(prepared)
    )


def _wordless(reply: _Reply, finished: Finished) -> LLMError:
    """The error for a reply without text. None of our requests offers a tool."""
    if finished.tool_calls or finished.finish_reason == "tool_calls":
        return UnofferedToolCall.of(finished.tool_calls[0].name if finished.tool_calls else "")
    return OnlyReasoning() if reply.reasoning else EmptyReply()


def _why(status: TurnStatus, reply: _Reply, finished: Finished) -> dict[str, Any] | None:
    """The explanation of an ending, if the status alone does not explain it."""
    if finished.finish_reason == "refusal":
        return ModelRefused().as_dict()
    if status is TurnStatus.FILTERED:
        return ContentFiltered().as_dict()
    if status is TurnStatus.TRUNCATED and finished.error is not None:
        return {**finished.error.as_dict(), "partial_kept": reply.text}
    if status is TurnStatus.TRUNCATED and reply.reasoning and not reply.text:
        return OnlyReasoning(OnlyReasoning.too_long_message).as_dict()
    return None


def _ending(reply: _Reply, profile: Profile) -> Ending:
    """The end of a reply with its terminal status. Raises an error if it has no text (I6)."""
    finished = reply.finished
    assert finished is not None
    status = STATUS_OF_REASON.get(finished.finish_reason, TurnStatus.COMPLETE)
    if status is TurnStatus.COMPLETE and not reply.text:
        raise finished.error or _wordless(reply, finished)
    usage = finished.usage
    return Ending(
        status=status,
        finish_reason=finished.finish_reason,
        error=_why(status, reply, finished),
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        cost=profile.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        if usage
        else None,
    )
