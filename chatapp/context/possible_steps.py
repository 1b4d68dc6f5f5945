"""The steps by which a request could be made smaller, as far as its messages alone tell. Pure."""

from __future__ import annotations

from dataclasses import replace

from chatapp.context.request import ConversationSnapshot, visible_tail
from chatapp.context.sent_back import SentBack, items_of
from compression.exceptions import NothingToCompress
from compression.planning import planner
from compression.planning.masking import batch
from compression.planning.planner import PlannerSettings
from compression.planning.policy import PolicyState
from compression.planning.truncation import truncate
from compression.tools.rounds import WIND_DOWN
from compression.types import Item, Sizes, Trigger


def sent_items(snapshot: ConversationSnapshot, back: SentBack) -> tuple[Item, ...]:
    """The messages of the next request."""
    return items_of(visible_tail(snapshot), back)


def all_items(snapshot: ConversationSnapshot, back: SentBack) -> tuple[Item, ...]:
    """The whole tail, with truncated messages, which the next compression covers."""
    return items_of(visible_tail(replace(snapshot, truncated_through=0)), back)


def possible_steps(
    snapshot: ConversationSnapshot,
    sized: Sizes,
    settings: PlannerSettings,
    back: SentBack,
    *,
    failed: bool,
) -> PolicyState:
    """The state that the policy decides by; ``failed``: compressing this request has failed."""
    sent, everything = sent_items(snapshot, back), all_items(snapshot, back)
    through = snapshot.truncated_through
    masks = batch(sent, sized)
    return PolicyState(
        in_tool_loop=sent[-1].role == "tool" if sent else False,
        wound_down=any(one.turn_open and one.added_context == WIND_DOWN for one in snapshot.tail),
        failed=failed,
        compressible=not failed and _span(everything, sized, settings, Trigger.THRESHOLD) > 0,
        due=bool(settings.prepare_messages)
        and _span(everything, sized, settings, Trigger.BACKGROUND) >= settings.prepare_messages,
        maskable=masks.frees if masks else 0.0,
        masking_pays=masks is not None and masks.pays,
        truncatable=truncate(everything, sized, truncated_through=through) > through,
    )


def _span(
    items: tuple[Item, ...], sized: Sizes, settings: PlannerSettings, trigger: Trigger
) -> int:
    """The number of messages that a run with this trigger would compress; 0 for no run."""
    try:
        return len(planner.plan(items, sized, settings, trigger=trigger).items)
    except NothingToCompress:
        return 0
