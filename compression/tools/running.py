"""Running a tool: within its time and size; whatever happens is a sentence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from compression.exceptions import ToolFailed
from compression.ports import TokenCounter
from compression.tools.calls import UNKNOWN_EFFECT, Checked, error
from compression.tools.texts import is_binary, without_control
from compression.tools.tool import Tool

logger = logging.getLogger(__name__)

#: Seconds that a tool may take.
SECONDS = 30.0
#: Characters of a result; what is beyond is cut before anything else is done with it.
MOST_CHARACTERS = 100_000
#: Shares of the budget: of one result, and of all results of one message.
RESULT_SHARE = 0.2
ROUND_SHARE = 0.4
#: Ruler tokens that any result may have, however small the window.
LEAST_TOKENS = 100

#: Tools that go on after they were cancelled, held until they end.
_abandoned: set[asyncio.Future[Any]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a tool may take, and what its result may be."""

    seconds: float = SECONDS
    characters: int = MOST_CHARACTERS
    tokens: int | None = None
    """Ruler tokens of one result; None: only its characters count."""

    @classmethod
    def of_round(cls, budget: int, calls: int, *, seconds: float = SECONDS) -> Limits:
        """The limits of each of so many calls of one message; ``budget`` in ruler tokens."""
        tokens = min(RESULT_SHARE, ROUND_SHARE / max(1, calls)) * budget
        return cls(seconds=seconds, tokens=max(LEAST_TOKENS, int(tokens)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a call."""

    text: str
    """The result, or a sentence that begins with ``error:``."""
    seconds: float
    """The time that the tool took, without that of an approval."""


async def run(
    call: Checked,
    limits: Limits,
    counter: TokenCounter,
    *,
    approve: Callable[[], Awaitable[bool]] | None = None,
) -> Outcome:
    """Run a call. Raises nothing but CancelledError, and that at once.

    ``approve`` is awaited first, for as long as it takes; it refuses by False or by ToolFailed.
    """
    begun = time.monotonic()
    effect = "" if call.tool.read_only else f" {UNKNOWN_EFFECT}"
    try:
        if approve is not None:
            if not await approve():
                raise ToolFailed("The call was not approved, so it did not run.")
            begun = time.monotonic()
        text = _as_text(await _within(call.tool.run(call.arguments), limits.seconds), call.tool)
    except ToolFailed as failure:
        text = error(failure.message)
    except TimeoutError:
        name, seconds = call.tool.name, limits.seconds
        text = error(f"{name} took longer than {seconds:g} s and was ended.{effect}")
    except Exception as failure:
        # The reason may be anything; the model and the reader get a sentence, the log the rest.
        logger.exception("The tool %s failed.", call.tool.name)
        text = error(f"{call.tool.name} failed ({type(failure).__name__}).{effect}")
    took = round(time.monotonic() - begun, 3)
    most = call.tool.most_tokens if call.tool.most_tokens is not None else limits.tokens
    # Also the words of a failure: they are the server's, and may be as long as a result.
    text = await asyncio.to_thread(shortened, text, limits.characters, most, counter)
    return Outcome(text=text, seconds=took)


async def _within(work: Awaitable[Any], seconds: float) -> Any:
    """The result of ``work``. Raises TimeoutError after so many seconds, and what ``work`` raises.

    Whether it ends or not, ``work`` is waited for no longer than that, and not at all after a
    cancellation: a tool may ignore its own.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_forget)
    if not task.done():
        raise TimeoutError
    if task.cancelled():
        # It cancelled itself; nobody stopped the turn.
        raise ToolFailed
    return task.result()


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (failure := task.exception()) is not None:
        logger.info("A tool that was ended has failed: %r", failure)


def _as_text(found: object, tool: Tool) -> str:
    """The result as text, of any length."""
    if isinstance(found, bytes | bytearray | memoryview):
        size = len(found) if not isinstance(found, memoryview) else found.nbytes
        return error(f"{tool.name} returned {size:,} bytes of binary data, which is no text.")
    if not isinstance(found, str):
        return error(f"{tool.name} returned no text.")
    if is_binary(found):
        return error(f"{tool.name} returned binary data ({len(found):,} characters), not text.")
    return found if found.strip() else "(The tool returned nothing.)"


def shortened(text: str, characters: int, tokens: int | None, counter: TokenCounter) -> str:
    """The text without control characters, and cut with a note if it is too long."""
    clean = without_control(text[:characters])
    kept = clean if tokens is None else _fitting(clean, tokens, counter)
    if len(text) <= characters and len(kept) == len(clean):
        return kept
    return f"{kept}\n[cut here: the first {len(kept):,} of {len(text):,} characters]"


def _fitting(text: str, tokens: int, counter: TokenCounter) -> str:
    """The longest beginning of the text, about, that has at most so many ruler tokens."""
    # Counting takes time, and no text has so many characters a token for long.
    text = text[: tokens * 16]
    while text and (counted := counter.count(text)) > tokens:
        text = text[: min(len(text) - 1, int(len(text) * tokens / counted * 0.98))]
    return text
