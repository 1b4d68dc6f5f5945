"""Fitting a request into the window: mask, compress, truncate or refuse, as the policy decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from chatapp.context.possible_steps import all_items, possible_steps, sent_items
from chatapp.context.request import (
    BuiltRequest,
    ConversationSnapshot,
    StoredMessage,
    build_request,
    request_sizes,
    visible_tail,
)
from chatapp.context.sent_back import SentBack
from chatapp.context.tokens import CachingCounter, definition_tokens
from chatapp.conversations.messages.reading import asnapshot_with_tail, aunlocked_snapshot_with_tail
from chatapp.conversations.turns.progress import adrop_reasoning, aset_truncated
from chatapp.conversations.turns.spending import aconversation_within_limit
from chatapp.errors import ContextBlocked
from chatapp.live.view_models import MessageView
from chatapp.llm import activity_log
from chatapp.llm.profiles import Profile
from chatapp.tools.excerpts import add_excerpts
from chatapp.tools.registry import ToolSource, no_tools
from compression import conf, services, store
from compression.exceptions import CompressionError, CompressionRunning, UserFacingError
from compression.planning.policy import PolicySettings, PolicyState, breaker_open, decide
from compression.planning.projection import Report
from compression.planning.truncation import shorten_giant, truncate
from compression.ports import TokenCounter
from compression.services import Engine
from compression.tools.calls import offerable
from compression.tools.tool import Tool
from compression.types import ContextAction, Decision, Item, Sizes, Trigger

# Rounds of masking, applying, compressing and truncating; more would not help.
MAX_ROUNDS = 8
# Messages above which a request is built in a thread, so that it does not delay other streams.
INLINE_MESSAGES = 200
# Seconds between two looks at a compression in another process.
LOOK_AGAIN = 0.25
# A step besides those of the policy, before any words are left out.
REASONING_DROPPED = {
    "action": "drop_reasoning",
    "reason": "There was no room for what the model had thought earlier.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingDeps:
    """Dependencies of :func:`prepare`: model, ruler, tools, summarisers, callbacks to viewers."""

    profile: Profile
    counter: TokenCounter
    changed: Callable[[], Awaitable[None]]
    """Announces that what the model sees has changed."""
    added: Callable[[int, MessageView], Awaitable[None]] | None = None
    """Announces a message with which excerpts were stored, and its event number."""
    begun: Callable[[], Awaitable[None]] | None = None
    """Announces the turn, before its request is made to fit."""
    on_retry: Callable[[UserFacingError, float], object] | None = None
    """Called before each retry with the reason and the seconds until then."""
    engine_for: Callable[[Profile], Engine]
    tools: ToolSource = no_tools
    """The tools that a request offers."""
    wind_down: Callable[[StoredMessage], Awaitable[None]] | None = None
    """Stores with a result the notice that the window is nearly full; None: nobody is told."""
    refused: Report | None = None
    """The token counts of a request that the provider has just refused as too long."""

    def engine(self, sized: Sizes) -> Engine:
        """Compression's engine for this model, with this conversation's calibration."""
        return self.engine_for(replace(self.profile, calibration=sized.calibration))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that fits, with the decision that led to it."""

    request: BuiltRequest
    decision: Decision
    snapshot: ConversationSnapshot
    sizes: Sizes
    tools: tuple[Tool, ...] = ()
    """The tools that the request offers."""
    rests: bool = False
    """Automatic compression is paused after too many failures."""
    extractable: bool = False
    """An extract may still replace the model."""


@dataclass(slots=True)
class _Attempts:
    """The steps already taken for this request."""

    compression_failed: bool = False
    decisions: list[dict[str, str]] = field(default_factory=list)
    """Earlier decisions, in order, which the manifest also records."""


async def prepare(
    conversation_id: int,
    deps: FittingDeps,
    *,
    overflowed: bool = False,
    snapshot: ConversationSnapshot | None = None,
) -> Prepared:
    """The next request of a conversation, made to fit its model's window.

    ``snapshot``: what it is made of, if that was read just now. ``overflowed``: the provider
    refused the last request as too long, so compress at any projected usage. Raises ContextBlocked
    when nothing fits, and NotFound when the conversation is gone.
    """
    tried = _Attempts()
    if overflowed:
        await _tell_beginning(deps)
        await _compress(conversation_id, deps, await _read(conversation_id, deps), tried, True)
    for _ in range(MAX_ROUNDS):
        undecided = await _read_unlocked(conversation_id, deps, snapshot)
        snapshot, prepared = None, await _with_decision(undecided, deps, tried)
        action = prepared.decision.action
        if action is ContextAction.WIND_DOWN and deps.wind_down is not None:
            await deps.wind_down(visible_tail(prepared.snapshot)[-1])
            continue
        if action in {ContextAction.CONTINUE, ContextAction.PREPARE, ContextAction.WIND_DOWN}:
            if await _look_up(deps, prepared):
                continue
            return prepared
        await _tell_beginning(deps)
        if action is ContextAction.MASK:
            await _mask(conversation_id, deps, prepared)
        elif action is ContextAction.COMPRESS:
            await _compress(conversation_id, deps, prepared, tried, False)
        elif any(one.reasoning for one in _sent(prepared, deps)):
            await _drop_reasoning(conversation_id, deps, tried)
        elif action is ContextAction.TRUNCATE:
            await _truncate(conversation_id, deps, prepared)
        else:
            return await asyncio.to_thread(_shortened, prepared, deps)
    raise ContextBlocked


async def _tell_beginning(deps: FittingDeps) -> None:
    """Announce the turn first: events out of order would make viewers fetch the whole state."""
    if deps.begun is not None:
        await deps.begun()


def sizes_for(snapshot: ConversationSnapshot, counter: TokenCounter, profile: Profile) -> Sizes:
    """The tokens of the next request besides its messages, for a model of this profile."""
    return request_sizes(
        snapshot,
        CachingCounter(counter),
        window=profile.window,
        reserve=profile.reserve,
        calibration=profile.calibration,
        model=profile.name,
        recall=profile.supports_tools,
    )


def sent_back(profile: Profile) -> SentBack:
    """What a model of this profile gets back of its own messages."""
    return SentBack(model=profile.name, reasoning=profile.reasoning_back)


def policy_settings(snapshot: ConversationSnapshot) -> PolicySettings:
    """The policy of one conversation: its own settings, else the defaults."""
    defaults = conf.settings().policy
    return PolicySettings(
        threshold=snapshot.threshold or defaults.threshold,
        soft_threshold=defaults.soft_threshold,
        ask_first=snapshot.preview_first,
        off=snapshot.compression_off,
    )


def compression_settings(snapshot: ConversationSnapshot) -> conf.CompressionSettings:
    """Compression's settings for one conversation."""
    defaults = conf.settings()
    return replace(
        defaults,
        threshold=snapshot.threshold or defaults.threshold,
        keep_turns=snapshot.keep_turns or defaults.keep_turns,
    )


async def _read_unlocked(
    conversation_id: int, deps: FittingDeps, snapshot: ConversationSnapshot | None
) -> Prepared:
    """The undecided request, once no compression locks the conversation."""
    while snapshot is None:
        snapshot = await aunlocked_snapshot_with_tail(conversation_id)
        if snapshot is None:
            await _wait_for_lock(conversation_id)
    return await _as_request(snapshot, deps)


async def _read(conversation_id: int, deps: FittingDeps) -> Prepared:
    """The undecided request as it is now."""
    return await _as_request(await asnapshot_with_tail(conversation_id), deps)


async def _as_request(snapshot: ConversationSnapshot, deps: FittingDeps) -> Prepared:
    tools: tuple[Tool, ...] = ()
    if deps.profile.supports_tools:
        tools = await deps.tools(snapshot, deps.profile.sizes)
    # The schemas of tools come from anywhere, and may be hard to check.
    if tools or len(snapshot.tail) > INLINE_MESSAGES:
        return await asyncio.to_thread(_built, snapshot, deps, tools)
    return _built(snapshot, deps, tools)


def _built(snapshot: ConversationSnapshot, deps: FittingDeps, tools: tuple[Tool, ...]) -> Prepared:
    profile = deps.profile
    tools = offerable(tools)
    snapshot = replace(
        snapshot, tools=definition_tokens(deps.counter, [one.definition() for one in tools])
    )
    counted = (
        replace(snapshot, reports=((profile.name, deps.refused),)) if deps.refused else snapshot
    )
    sized = sizes_for(counted, deps.counter, profile)
    built = build_request(snapshot, sized, back=sent_back(profile), recall=profile.supports_tools)
    nothing = Decision(action=ContextAction.CONTINUE, reason="", usage=built.usage.share)
    return Prepared(request=built, decision=nothing, snapshot=snapshot, sizes=sized, tools=tools)


async def _with_decision(prepared: Prepared, deps: FittingDeps, tried: _Attempts) -> Prepared:
    """The request with the policy's decision, which the manifest records."""
    snapshot, sized = prepared.snapshot, prepared.sizes
    settings = policy_settings(snapshot)
    state = PolicyState()
    looks = settings.off or conf.settings().prepare_messages
    if looks or prepared.request.usage.share >= settings.soft:
        state = await asyncio.to_thread(
            possible_steps,
            snapshot,
            sized,
            compression_settings(snapshot).planner,
            sent_back(deps.profile),
            failed=tried.compression_failed,
        )
        state = await _with_stored_state(state, snapshot, sized, tried)
    decision = decide(prepared.request.usage, settings, state)
    decided = {"action": str(decision.action), "reason": decision.reason}
    manifest = {**prepared.request.manifest, "decision": decided, "before": [*tried.decisions]}
    tried.decisions.append(decided)
    return replace(
        prepared,
        decision=decision,
        request=replace(prepared.request, manifest=manifest),
        rests=state.breaker_open,
        extractable=state.extractable,
    )


async def _with_stored_state(
    state: PolicyState, snapshot: ConversationSnapshot, sized: Sizes, tried: _Attempts
) -> PolicyState:
    """The state with what the store knows: a ready draft, unsuccessful runs, an Undo."""
    ready = await store.aready(snapshot.conversation_id)
    past = await store.abreaker(snapshot.conversation_id)
    grown = sum(one.token_count for one in snapshot.tail) - past.tail_tokens
    frees = None
    if ready is not None:
        frees = sized.share(ready.source_tokens - ready.summary_tokens + sized.summary)
    return replace(
        state,
        # After a failed attempt to apply anything, the ready draft is not tried again.
        ready=ready is not None and not tried.compression_failed,
        ready_frees=frees,
        extractable=not past.waited,
        breaker_open=breaker_open(past.fruitless, past.failures, sized.share(grown)),
        undone=await store.aundone(snapshot.conversation_id),
    )


def _sent(prepared: Prepared, deps: FittingDeps) -> tuple[Item, ...]:
    """The messages of a request."""
    return sent_items(prepared.snapshot, sent_back(deps.profile))


async def _wait_for_lock(conversation_id: int) -> None:
    """Wait for a compression that locks the conversation; a crashed one's lease expires."""
    # Polling, because the run may live in another process.
    while (await store.aread_state(conversation_id)).locks_input:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_AGAIN)


async def _compress(
    conversation_id: int, deps: FittingDeps, prepared: Prepared, tried: _Attempts, overflowed: bool
) -> None:
    engine, shown = deps.engine(prepared.sizes), prepared.snapshot.preview_first
    waiting = services.apply_waiting if shown else services.apply_ready
    applied = await waiting(conversation_id, engine=engine, sizes=prepared.sizes)
    if applied is not None and applied.success:
        return
    if prepared.rests and not prepared.extractable:
        # Only a ready draft could have been applied, and there is none any more.
        tried.compression_failed = True
        return
    before = await store.abreaker(conversation_id)  # What is waited for may be cancelled at once.
    try:
        outcome = await services.compress(
            conversation_id,
            engine=engine,
            sizes=prepared.sizes,
            trigger=Trigger.OVERFLOW if overflowed else Trigger.THRESHOLD,
            extract_only=prepared.rests,
            settings=compression_settings(prepared.snapshot),
        )
        tried.compression_failed = not outcome.success
    except CompressionRunning:
        # Another run is under way, or a background run was promoted for this request.
        await services.settled(conversation_id)
        after = await store.abreaker(conversation_id)
        tried.compression_failed = after.cancelled > before.cancelled
    except CompressionError:
        tried.compression_failed = True


async def _mask(conversation_id: int, deps: FittingDeps, prepared: Prepared) -> None:
    """Mask a batch; viewers learn of it through :mod:`compression.signals`."""
    engine, items = deps.engine(prepared.sizes), _sent(prepared, deps)
    await services.mask(conversation_id, engine=engine, sizes=prepared.sizes, items=items)


async def _look_up(deps: FittingDeps, prepared: Prepared) -> bool:
    """Whether excerpts were stored with the message that this request answers."""
    used = prepared.request.usage.share
    added = await add_excerpts(
        prepared.snapshot,
        prepared.sizes,
        deps.counter,
        has_tools=deps.profile.supports_tools,
        room=policy_settings(prepared.snapshot).threshold - used,
    )
    if added is not None and deps.added is not None:
        await _tell_beginning(deps)
        await deps.added(*added)
    return added is not None


async def _drop_reasoning(conversation_id: int, deps: FittingDeps, tried: _Attempts) -> None:
    """Leave the model's reasoning so far out of this request and all later ones."""
    tried.decisions[-1] = REASONING_DROPPED
    await adrop_reasoning(conversation_id)
    await deps.changed()


async def _truncate(conversation_id: int, deps: FittingDeps, prepared: Prepared) -> None:
    snapshot, back = prepared.snapshot, sent_back(deps.profile)
    before = snapshot.truncated_through
    through = await asyncio.to_thread(
        lambda: truncate(all_items(snapshot, back), prepared.sizes, truncated_through=before)
    )
    await aset_truncated(conversation_id, through)
    await deps.changed()


def _shortened(prepared: Prepared, deps: FittingDeps) -> Prepared:
    """The last resort for one huge turn: its oldest texts cut to head and tail."""
    items = _sent(prepared, deps)
    if (replaced := shorten_giant(items, prepared.sizes)) is None:
        raise ContextBlocked(fields=prepared.request.manifest["tokens"])
    originals = {item.seq: item.text for item in items}
    changed = [item for item in replaced if item.text != originals.get(item.seq)]
    back, recall = sent_back(deps.profile), deps.profile.supports_tools
    built = build_request(
        prepared.snapshot, prepared.sizes, replaced=changed, back=back, recall=recall
    )
    if built.usage.share > 1.0:
        raise ContextBlocked(fields=built.manifest["tokens"])
    decided = {name: prepared.request.manifest[name] for name in ("decision", "before")}
    return replace(prepared, request=replace(built, manifest={**built.manifest, **decided}))


async def prepare_in_background(conversation_id: int, deps: FittingDeps) -> None:
    """After a turn, mask what is worth it, and prepare the next summary, however full it is."""
    prepared = await _with_decision(await _read(conversation_id, deps), deps, _Attempts())
    if prepared.decision.action is ContextAction.MASK:
        await _mask(conversation_id, deps, prepared)
        prepared = await _with_decision(await _read(conversation_id, deps), deps, _Attempts())
    engine, shown = deps.engine(prepared.sizes), prepared.snapshot.preview_first
    # Beyond the threshold too, where a long reply may lead at once: the next message waits less.
    due = prepared.decision.action in {ContextAction.PREPARE, ContextAction.COMPRESS}
    wanted = due and not prepared.rests and (shown or engine.summarizers)
    if wanted and await aconversation_within_limit(conversation_id):
        with activity_log.about(conversation=conversation_id):
            await (services.preview_ahead if shown else services.prepare)(
                conversation_id,
                engine=engine,
                sizes=prepared.sizes,
                settings=compression_settings(prepared.snapshot),
            )
