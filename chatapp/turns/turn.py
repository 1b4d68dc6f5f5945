"""One turn: make the request fit, ask the model, pass on its reply. No Channels, no HTML.

:func:`run_turn` yields the steps of a turn; its caller stores and shows them, and ends the turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from chatapp.context.instructions import own_part
from chatapp.context.request import ConversationSnapshot, project_in_manifest
from chatapp.conversations.turns.progress import Ending
from chatapp.errors import ContextBlocked
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.client import Finished, LLMClient, ReasoningChunk, TextChunk, ToolCall
from chatapp.llm.errors import (
    ContentFiltered,
    ContextOverflow,
    EmptyReply,
    LLMError,
    MalformedReply,
    ModelRefused,
    OnlyReasoning,
    ReplyCut,
    ToolsWithoutEnd,
    UnofferedToolCall,
)
from chatapp.llm.profiles import Profile
from chatapp.models import TurnStatus
from chatapp.tools.registry import no_tools
from chatapp.turns.fitting import FittingDeps, Prepared, prepare
from compression.exceptions import UserFacingError
from compression.planning.projection import Report
from compression.ports import TokenCounter
from compression.tokens import HIGHEST_CALIBRATION
from compression.tools.loop import Answer, MadeCall, ToolLoop
from compression.types import Sizes

# Share by which our own count is assumed wrong when a provider refuses without giving a figure.
DOUBT = 0.1

# The provider's finish reason → the turn's terminal status; any other reason is a normal end.
STATUS_OF_REASON = {
    "length": TurnStatus.TRUNCATED,
    "max_tokens": TurnStatus.TRUNCATED,
    "content_filter": TurnStatus.FILTERED,
    "refusal": TurnStatus.FILTERED,
    # The server broke off: by itself (vLLM, SGLang), in want of machines (DeepSeek), or because of
    # its network (Zhipu). Nothing of such a reply is run.
    "abort": TurnStatus.INTERRUPTED,
    "cancelled": TurnStatus.INTERRUPTED,
    "insufficient_system_resource": TurnStatus.INTERRUPTED,
    "network_error": TurnStatus.INTERRUPTED,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call of the model has ended, as its server counted it; None where it did not."""

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsCalled:
    """The reply has ended with calls of tools, which are run now."""

    calls: tuple[MadeCall, ...]
    reasoning_field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEnded:
    """All calls are answered; the model is asked again."""


Step = (
    RequestSent
    | TextDelta
    | ReasoningDelta
    | CallEnded
    | ToolsCalled
    | Answer
    | RoundEnded
    | Ending
)


@dataclass(slots=True)
class _Reply:
    """What has been received of the reply so far."""

    text: bool = False
    reasoning: bool = False
    finished: Finished | None = field(default=None)

    @property
    def status(self) -> TurnStatus:
        """The terminal status of a turn that ends with this reply."""
        assert self.finished is not None
        return STATUS_OF_REASON.get(self.finished.finish_reason.lower(), TurnStatus.COMPLETE)


async def run_turn(
    job: Job,
    *,
    client: LLMClient,
    catalogue: Catalogue,
    deps: FittingDeps,
    loop: ToolLoop | None = None,
    snapshot: ConversationSnapshot | None = None,
) -> AsyncGenerator[Step, None]:
    """Run one turn to its end, yielding its steps.

    ``snapshot``: what the first request is made of, if that was read just now.

    Each step must have been stored before the next one is asked for: a request is built from what
    is stored. Raises LLMError for failures of the model, ContextBlocked when nothing fits, and
    NotFound when the conversation is gone. When a provider first says that the request is too long,
    its window is learned, the conversation compressed, and the model asked again.
    """
    tools = loop or ToolLoop(deps.counter)
    while True:
        offering = deps if tools.offers else replace(deps, tools=no_tools)
        turn = _Round(job, client, catalogue, offering, snapshot)
        snapshot = None
        async with aclosing(turn.steps()) as steps:
            async for step in steps:
                yield step
        deps = replace(turn.deps, tools=deps.tools)
        tools.asked(turn.prepared.tools)
        calls = _to_answer(turn.reply, tools, offered=bool(turn.prepared.tools))
        if not calls:
            yield _ending(turn.reply, offered=bool(turn.prepared.tools))
            return
        made = await tools.made(calls, turn.prepared.tools, taken=_ids(turn.prepared))
        assert turn.reply.finished is not None
        yield ToolsCalled(calls=made, reasoning_field=turn.reply.finished.reasoning_field)
        async with aclosing(tools.answers(made, turn.prepared.sizes.ruler(1.0))) as answers:
            async for answer in answers:
                yield answer
        yield RoundEnded()


class _Round:
    """One reply of the model: its request made to fit, sent, and received."""

    def __init__(
        self,
        job: Job,
        client: LLMClient,
        catalogue: Catalogue,
        deps: FittingDeps,
        snapshot: ConversationSnapshot | None,
    ) -> None:
        self.deps = deps
        self.reply = _Reply()
        self.prepared: Prepared
        self._job = job
        self._client = client
        self._catalogue = catalogue
        self._snapshot = snapshot

    async def steps(self) -> AsyncGenerator[Step, None]:
        """The steps until the reply has ended; raises as :func:`run_turn`."""
        snapshot, self._snapshot = self._snapshot, None
        self.prepared = await prepare(self._job.conversation_id, self.deps, snapshot=snapshot)
        for last_try in (False, True):
            self.reply = _Reply()
            yield self._sent(self.deps.profile)
            try:
                async with aclosing(self._ask()) as steps:
                    async for step in steps:
                        yield step
                break
            except ContextOverflow as overflow:
                if last_try or self.reply.text or self.reply.reasoning:
                    raise
                self.deps = await _after_overflow(
                    overflow, self.prepared, self.deps, self._catalogue
                )
                self.prepared = await prepare(self._job.conversation_id, self.deps, overflowed=True)
        assert self.reply.finished is not None
        await _calibrate(self.reply.finished, self.prepared, self.deps.profile, self._catalogue)
        yield _counted_call(self.reply.finished, self.deps.profile)

    def _sent(self, profile: Profile) -> RequestSent:
        """The request with the options that a model of this profile takes."""
        snapshot = self.prepared.snapshot
        along = sent_along(snapshot, profile, self.deps.counter, self.prepared.sizes)
        manifest = {**self.prepared.request.manifest, **along}
        return RequestSent(manifest=manifest, event_no=snapshot.event_no)

    async def _ask(self) -> AsyncGenerator[Step, None]:
        profile, reply = self.deps.profile, self.reply
        request = profile.request(
            self.prepared.request.messages,
            **self.prepared.snapshot.options.asked(profile.reserve),
            tools=[tool.definition() for tool in self.prepared.tools],
            on_retry=self.deps.on_retry,
        )
        async with self._client.stream(request) as chunks:
            sent = self._sent(profile)
            # What the server has just refused was left out of the request that it accepted.
            accepted = self._sent(
                replace(self._catalogue.known_profile(profile.name), window=profile.window)
            )
            if accepted != sent:
                yield accepted
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    reply.text = reply.text or bool(chunk.text.strip())
                    yield TextDelta(text=chunk.text)
                elif isinstance(chunk, ReasoningChunk):
                    reply.reasoning = True
                    yield ReasoningDelta(text=chunk.text)
                else:
                    reply.finished = chunk


def sent_along(
    snapshot: ConversationSnapshot, profile: Profile, counter: TokenCounter, sized: Sizes
) -> dict[str, Any]:
    """The manifest's account of a person's choices: options, own instructions, the project."""
    options = snapshot.options.as_manifest(
        profile.reserve,
        temperature=profile.supports_temperature,
        effort=profile.supports_reasoning_effort,
    )
    own = {"own_instructions": counter.count(own_part(snapshot.own_instructions))}
    return {**options, **own, **project_in_manifest(snapshot, sized, counter)}


def _to_answer(reply: _Reply, loop: ToolLoop, *, offered: bool) -> tuple[ToolCall, ...]:
    """The calls that are answered, of a reply that has ended properly.

    What counts is the calls that came, not the reason that the server gives for the end. Tools that
    vanish between two rounds are still called, and the model is told of each. Raises the server's
    own complaint, and ToolsWithoutEnd when the model calls although it may no longer.
    """
    finished = reply.finished
    assert finished is not None
    if not finished.tool_calls or reply.status is not TurnStatus.COMPLETE:
        return ()
    if offered or (loop.begun and loop.offers):
        if finished.error is not None:
            raise finished.error
        return finished.tool_calls
    if loop.begun:
        raise ToolsWithoutEnd
    return ()


def _ids(prepared: Prepared) -> set[str]:
    """The ids of calls that the model may be sent; any others differ, since ours are random."""
    return {str(call.get("id")) for one in prepared.snapshot.tail for call in one.tool_calls}


def _counted_call(finished: Finished, profile: Profile) -> CallEnded:
    usage = finished.usage
    if usage is None:
        return CallEnded(prompt_tokens=None, completion_tokens=None, cached_tokens=None, cost=None)
    prompt, completion, cached = usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
    return CallEnded(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost=profile.cost(prompt, completion, cached),
    )


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


def _wordless(reply: _Reply, finished: Finished, *, offered: bool) -> LLMError:
    """The error for a reply without text and without calls that are answered."""
    called = finished.tool_calls or finished.finish_reason == "tool_calls"
    # If tools were offered, it ended as if it had called one, but named none.
    if called and not offered:
        return UnofferedToolCall.of(finished.tool_calls[0].name if finished.tool_calls else "")
    return OnlyReasoning() if reply.reasoning else EmptyReply()


def _why(status: TurnStatus, reply: _Reply, finished: Finished) -> dict[str, Any] | None:
    """The explanation of an ending, if the status alone does not explain it."""
    if finished.finish_reason == "refusal":
        return ModelRefused().as_dict()
    if status is TurnStatus.FILTERED:
        return ContentFiltered().as_dict()
    if status is TurnStatus.INTERRUPTED:
        return {**(finished.error or ReplyCut()).as_dict(), "partial_kept": reply.text}
    if status is TurnStatus.TRUNCATED and finished.error is not None:
        return {**finished.error.as_dict(), "partial_kept": reply.text}
    if status is TurnStatus.TRUNCATED and reply.reasoning and not reply.text:
        return OnlyReasoning(OnlyReasoning.too_long_message).as_dict()
    return None


def _ending(reply: _Reply, *, offered: bool) -> Ending:
    """The end of a reply with its terminal status. Raises an error if it has no text (I6)."""
    finished, status = reply.finished, reply.status
    assert finished is not None
    if status is TurnStatus.COMPLETE and not reply.text:
        raise finished.error or _wordless(reply, finished, offered=offered)
    return Ending(
        status=status,
        finish_reason=finished.finish_reason,
        error=_why(status, reply, finished),
        reasoning_field=finished.reasoning_field,
    )
