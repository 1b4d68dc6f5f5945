"""Making the next request fit: decide, then mask, compress, truncate, or refuse, until it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from chatapp.context import build
from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages.masks import Masked, amask
from chatapp.conversations.messages.reading import abasis, aunlocked_basis
from chatapp.conversations.turns.progress import aset_truncated
from chatapp.conversations.turns.spending import aconversation_within_limit
from chatapp.errors import ContextBlocked
from chatapp.llm import activity_log
from chatapp.llm.profiles import Profile
from compression import conf, services, store
from compression.exceptions import (
    CompressionError,
    CompressionRunning,
    NothingToCompress,
    UserFacingError,
)
from compression.planning import planner
from compression.planning.masking import maskable, maskable_share, placeholder
from compression.planning.policy import PolicySettings, PolicyState, breaker_open, decide
from compression.planning.projection import Report
from compression.planning.truncation import shorten_giant, truncate
from compression.ports import TokenCounter
from compression.services import Engine
from compression.types import ContextAction, Decision, Item, Sizes, Trigger

# Mask, apply, compress, truncate a few times: more rounds mean that nothing helps.
MAX_ROUNDS = 8
# Above this many messages a request is made in a thread, so that nobody's stream waits for it.
INLINE_MESSAGES = 200
# Seconds between two looks at a compression that another process runs.
LOOK_AGAIN = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What making room takes."""

    profile: Profile
    counter: TokenCounter
    changed: Callable[[], Awaitable[None]]
    """Tells viewers that what the model sees has changed."""
    masked: Callable[[Masked], Awaitable[None]] | None = None
    """Tells them of tool results that the model sees no more."""
    begun: Callable[[], Awaitable[None]] | None = None
    """Has them told that the turn begins, before what is done to make its request fit."""
    waits: Callable[[UserFacingError, float], object] | None = None
    """Tells them that the model server is busy and asked again in so many seconds."""
    engine_for: Callable[[Profile], Engine]
    refused: Report | None = None
    """What is known of the request that the provider has just refused as too long."""

    def engine(self, sized: Sizes) -> Engine:
        """What compression works with, for this model and as it counts this conversation."""
        return self.engine_for(replace(self.profile, calibration=sized.calibration))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that fits, and why it looks as it does."""

    request: build.BuiltRequest
    decision: Decision
    basis: build.Basis
    sizes: Sizes
    rests: bool = False
    """Summarising failed so often that no model is asked."""
    extractable: bool = False
    """But an extract may stand in for one."""


@dataclass(slots=True)
class _Tried:
    """What has been tried for this request already."""

    compression_failed: bool = False
    decisions: list[dict[str, str]] = field(default_factory=list)
    """What was decided before, in order; the manifest tells the way and not only its end."""


async def prepare(conversation_id: int, means: Means, *, overflowed: bool = False) -> Prepared:
    """The next request of a conversation, made to fit its model's window.

    ``overflowed``: the provider said that the last request was too long, so compress whatever
    the projection says. Raises ContextBlocked when nothing fits, NotFound when the conversation
    is gone.
    """
    tried = _Tried()
    if overflowed:
        await _tell_beginning(means)
        await _compress(conversation_id, means, await _read(conversation_id, means), tried, True)
    for _ in range(MAX_ROUNDS):
        prepared = await _judged(await _read_unlocked(conversation_id, means), means, tried)
        action = prepared.decision.action
        if action in {ContextAction.CONTINUE, ContextAction.PREPARE, ContextAction.WIND_DOWN}:
            return prepared
        await _tell_beginning(means)
        if action is ContextAction.MASK:
            await _mask(conversation_id, means, prepared)
        elif action is ContextAction.COMPRESS:
            await _compress(conversation_id, means, prepared, tried, False)
        elif action is ContextAction.TRUNCATE:
            await _truncate(conversation_id, means, prepared)
        else:
            return await asyncio.to_thread(_shortened, prepared, means)
    raise ContextBlocked


async def _tell_beginning(means: Means) -> None:
    """Events out of their order would be a gap, which viewers fill by one ``state``."""
    if means.begun is not None:
        await means.begun()


def policy_settings(basis: build.Basis) -> PolicySettings:
    """The policy of one conversation: its own settings over the defaults."""
    defaults = conf.settings().policy
    return PolicySettings(
        threshold=basis.threshold or defaults.threshold,
        soft_threshold=defaults.soft_threshold,
        off=basis.compression_off,
    )


def compression_settings(basis: build.Basis) -> conf.CompressionSettings:
    """Compression's settings for one conversation."""
    defaults = conf.settings()
    return replace(
        defaults,
        threshold=basis.threshold or defaults.threshold,
        keep_turns=basis.keep_turns or defaults.keep_turns,
    )


def _items(basis: build.Basis) -> tuple[Item, ...]:
    return tuple(one.as_item() for one in build.visible_tail(basis))


async def _read_unlocked(conversation_id: int, means: Means) -> Prepared:
    """The same once no compression is under way that the conversation waits for."""
    while True:
        basis = await aunlocked_basis(conversation_id)
        if basis is not None:
            return await _as_request(basis, means)
        await _wait_for_lock(conversation_id)


async def _read(conversation_id: int, means: Means) -> Prepared:
    """The request as it would be now, not judged yet."""
    return await _as_request(await abasis(conversation_id), means)


async def _as_request(basis: build.Basis, means: Means) -> Prepared:
    if len(basis.tail) > INLINE_MESSAGES:
        return await asyncio.to_thread(_built, basis, means)
    return _built(basis, means)


def _built(basis: build.Basis, means: Means) -> Prepared:
    profile = means.profile
    sized = build.sizes(
        replace(basis, reports=((profile.name, means.refused),)) if means.refused else basis,
        means.counter,
        window=profile.window,
        reserve=profile.reserve,
        calibration=profile.calibration,
        model=profile.name,
    )
    built = build.build_request(basis, sized, system_role=profile.supports_system_role)
    nothing = Decision(action=ContextAction.CONTINUE, reason="", usage=built.usage.share)
    return Prepared(request=built, decision=nothing, basis=basis, sizes=sized)


async def _judged(prepared: Prepared, means: Means, tried: _Tried) -> Prepared:
    """The same with the policy's decision, which is recorded in the manifest."""
    basis, sized = prepared.basis, prepared.sizes
    settings = policy_settings(basis)
    state = PolicyState()
    looks = settings.off or conf.settings().prepare_messages
    if looks or prepared.request.usage.share >= settings.soft:
        state = await asyncio.to_thread(_pure_state, basis, sized, tried)
        state = await _with_standing(state, basis, sized, tried)
    decision = decide(prepared.request.usage, settings, state)
    told = {"action": str(decision.action), "reason": decision.reason}
    manifest = {**prepared.request.manifest, "decision": told, "before": [*tried.decisions]}
    tried.decisions.append(told)
    return replace(
        prepared,
        decision=decision,
        request=replace(prepared.request, manifest=manifest),
        rests=state.breaker_open,
        extractable=state.extractable,
    )


async def _with_standing(
    state: PolicyState, basis: build.Basis, sized: Sizes, tried: _Tried
) -> PolicyState:
    """The state with what the store knows: a ready draft, unsuccessful runs, an Undo."""
    ready = await store.aready(basis.conversation_id)
    past = await store.abreaker(basis.conversation_id)
    grown = sum(one.token_count for one in basis.tail) - past.tail_tokens
    frees = None
    if ready is not None:
        frees = sized.share(ready.source_tokens - ready.summary_tokens + sized.summary)
    return replace(
        state,
        # Where nothing could be applied, the ready draft was tried too.
        ready=ready is not None and not tried.compression_failed,
        ready_frees=frees,
        extractable=not past.waited,
        breaker_open=breaker_open(past.fruitless, past.failures, sized.share(grown)),
        undone=await store.aundone(basis.conversation_id),
    )


def _pure_state(basis: build.Basis, sized: Sizes, tried: _Tried) -> PolicyState:
    """What could be done, found out without a database."""
    items = _items(basis)
    settings = compression_settings(basis)
    compressible = not tried.compression_failed
    if compressible:
        try:
            planner.plan(_all_items(basis), sized, settings.planner, trigger=Trigger.THRESHOLD)
        except NothingToCompress:
            compressible = False
    through = basis.truncated_through
    return PolicyState(
        failed=tried.compression_failed,
        compressible=compressible,
        due=_due(basis, sized),
        maskable=maskable_share(items, sized),
        truncatable=truncate(_all_items(basis), sized, truncated_through=through) > through,
    )


def _due(basis: build.Basis, sized: Sizes) -> bool:
    """Whether so many messages lie beyond the tail that a summary is prepared for that alone."""
    settings = compression_settings(basis)
    if not settings.prepare_messages:
        return False
    try:
        span = planner.plan(_all_items(basis), sized, settings.planner, trigger=Trigger.BACKGROUND)
    except NothingToCompress:
        return False
    return len(span.items) >= settings.prepare_messages


def _all_items(basis: build.Basis) -> tuple[Item, ...]:
    """The whole tail, truncated messages included: the next compression takes them in."""
    visible = build.visible_tail(replace(basis, truncated_through=0))
    return tuple(one.as_item() for one in visible)


async def _wait_for_lock(conversation_id: int) -> None:
    """Let a compression that the conversation waits for come to its end; its lease expires."""
    # An event cannot tell: the run may live in another process.
    while (await store.aread_state(conversation_id)).locks_input:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_AGAIN)


async def _compress(
    conversation_id: int, means: Means, prepared: Prepared, tried: _Tried, overflowed: bool
) -> None:
    settings = compression_settings(prepared.basis)
    engine = means.engine(prepared.sizes)
    applied = await services.apply_ready(conversation_id, engine=engine, sizes=prepared.sizes)
    if applied is not None and applied.success:
        return
    if prepared.rests and not prepared.extractable:
        # It was for the ready draft's sake alone, which cannot be applied.
        tried.compression_failed = True
        return
    try:
        outcome = await services.compress(
            conversation_id,
            engine=engine,
            sizes=prepared.sizes,
            trigger=Trigger.OVERFLOW if overflowed else Trigger.THRESHOLD,
            extract_only=prepared.rests,
            settings=settings,
        )
        tried.compression_failed = not outcome.success
    except CompressionRunning:
        # Another run compresses already, or one in the background has become ours.
        before = await store.abreaker(conversation_id)
        await services.settled(conversation_id)
        after = await store.abreaker(conversation_id)
        tried.compression_failed = after.cancelled > before.cancelled
    except CompressionError:
        tried.compression_failed = True


async def _mask(conversation_id: int, means: Means, prepared: Prepared) -> None:
    def batch() -> dict[int, int]:
        items = _items(prepared.basis)
        seqs = set(maskable(items, prepared.sizes))
        return {
            item.seq: message_tokens(means.counter, placeholder(item))
            for item in items
            if item.seq in seqs
        }

    masked = await amask(conversation_id, await asyncio.to_thread(batch))
    if means.masked is not None:
        await means.masked(masked)
    await means.changed()


async def _truncate(conversation_id: int, means: Means, prepared: Prepared) -> None:
    basis = prepared.basis
    through = await asyncio.to_thread(
        lambda: truncate(
            _all_items(basis), prepared.sizes, truncated_through=basis.truncated_through
        )
    )
    await aset_truncated(conversation_id, through)
    await means.changed()


def _shortened(prepared: Prepared, means: Means) -> Prepared:
    """The last resort for one giant turn: its oldest texts cut to head and tail."""
    replaced = shorten_giant(_items(prepared.basis), prepared.sizes)
    if replaced is None:
        raise ContextBlocked(fields=prepared.request.manifest["tokens"])
    originals = {item.seq: item.text for item in _items(prepared.basis)}
    changed = [item for item in replaced if item.text != originals.get(item.seq)]
    built = build.build_request(
        prepared.basis,
        prepared.sizes,
        system_role=means.profile.supports_system_role,
        replaced=changed,
    )
    if built.usage.share > 1.0:
        raise ContextBlocked(fields=built.manifest["tokens"])
    told = {name: prepared.request.manifest[name] for name in ("decision", "before")}
    return replace(prepared, request=replace(built, manifest={**built.manifest, **told}))


async def prepare_in_background(conversation_id: int, means: Means) -> None:
    """After a turn: mask what is worth it, and write the next summary before it is needed."""
    prepared = await _judged(await _read(conversation_id, means), means, _Tried())
    if prepared.decision.action is ContextAction.MASK:
        await _mask(conversation_id, means, prepared)
        prepared = await _judged(await _read(conversation_id, means), means, _Tried())
    engine = means.engine(prepared.sizes)
    wanted = prepared.decision.action is ContextAction.PREPARE and engine.summarizers
    if wanted and await aconversation_within_limit(conversation_id):
        with activity_log.about(conversation=conversation_id):
            await services.prepare(
                conversation_id,
                engine=engine,
                sizes=prepared.sizes,
                settings=compression_settings(prepared.basis),
            )
