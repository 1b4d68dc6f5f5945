"""A person's changes of single lines of the active summary; each makes a new version."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from compression import conf, signals, store
from compression.conf import CompressionSettings
from compression.exceptions import StaleVersion, SummaryInvalid
from compression.ledger.lines import LineChange, change_lines
from compression.ledger.markdown import render
from compression.planning.planner import PlannerSettings, cap_tokens
from compression.ports import TokenCounter
from compression.types import Ledger, Sizes

_OUTDATED = "The summary has changed meanwhile. This is the present one; nothing was done."


async def edit_lines(
    conversation_id: int,
    changes: Sequence[LineChange],
    *,
    expected_version: int,
    author_id: int | None,
    counter: TokenCounter,
    sizes: Sizes | None,
    settings: CompressionSettings | None = None,
) -> int:
    """Change lines of the active summary. Returns the new version.

    ``sizes`` as in :func:`compression.services.edit`. Raises StaleVersion when
    ``expected_version`` is not the active one, and SummaryInvalid when a line is not there, is
    blank, or the summary would be too long or empty.
    """
    base = await store.aread_base(conversation_id)
    if base.version != expected_version:
        raise outdated(base.version)
    planned = (settings or conf.settings()).planner
    limit = limit_tokens(sizes, planned)
    ledger, text, tokens = await asyncio.to_thread(
        with_changes, base.ledger, changes, counter, limit_tokens=limit
    )
    try:
        version = await store.aedit(base, text, ledger, author_id=author_id, summary_tokens=tokens)
    except StaleVersion as error:
        # The texts of both would say nothing about a line.
        raise outdated(error.fields.get("current_version", base.version)) from error
    await signals.send(signals.summary_changed, conversation_id=conversation_id, version=version)
    return version


def outdated(version: int) -> StaleVersion:
    """The refusal of a change of another version than ``version``, which is active."""
    return StaleVersion(_OUTDATED, fields={"current_version": version})


def limit_tokens(sizes: Sizes | None, planned: PlannerSettings) -> int:
    """Ruler tokens that a person's summary may have: twice the cap."""
    return 2 * (planned.summary_tokens if sizes is None else cap_tokens(sizes, planned))


def with_changes(
    ledger: Ledger, changes: Sequence[LineChange], counter: TokenCounter, *, limit_tokens: int
) -> tuple[Ledger, str, int]:
    """The changed ledger, its text, and the text's tokens. Slow: call it in a thread.

    A summary that is too long already may be made shorter.
    """
    changed = change_lines(ledger, changes)
    text = render(changed)
    tokens = counter.count(text)
    if tokens > limit_tokens and tokens > counter.count(render(ledger)):
        raise SummaryInvalid(
            f"The summary would have {tokens:,} tokens; at most {limit_tokens:,} are allowed.",
            fields={"tokens": tokens, "limit": limit_tokens},
        )
    return changed, text, tokens
