"""The tail in the form that is sent: alternating roles, each call with its result. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from chatapp.context.messages import StoredMessage
from chatapp.context.sent_back import NOTHING, SentBack, SentBackNow
from compression.tools.calls import UNKNOWN_EFFECT, error

# For a call that was made and not answered, because of Stop or the end of its process.
NO_RESULT = error(f"No result came. {UNKNOWN_EFFECT}")


@dataclass(frozen=True, slots=True)
class Wire:
    """One message in the form that is sent, with its ruler tokens."""

    message: dict[str, Any]
    tokens: int
    seq: int = 0
    """Seq of the stored message; 0 for one that the program inserted."""


# For "[no reply: interrupted]" and the like, and for NO_RESULT; overhead included.
_SYNTHETIC_TOKENS = 12
_NO_RESULT_TOKENS = 28


def _synthetic(role: str, content: str) -> Wire:
    return Wire({"role": role, "content": content}, _SYNTHETIC_TOKENS)


def _assistant(
    message: StoredMessage, following: Iterable[StoredMessage], back: SentBackNow
) -> Iterable[Wire]:
    """An assistant message and the results of its calls; a call without a result gets a notice.

    ``following`` are the messages after it, of which the tool messages that follow at once are its
    results.
    """
    reasoning, tokens = back.reasoning_of(message)
    if not message.tool_calls:
        if message.text.strip():
            content = {"role": "assistant", "content": message.content, **reasoning}
            yield Wire(content, message.token_count + tokens, message.seq)
        return
    calls = [back.call(message, call) for call in message.calls]
    yield Wire(
        {
            "role": "assistant",
            "content": message.content or None,
            **reasoning,
            "tool_calls": calls,
        },
        message.token_count + tokens,
        message.seq,
    )
    results = _results(following)
    for identity in dict.fromkeys(str(call.get("id")) for call in calls):
        result = results.get(identity)
        if result is None:
            missing = {"role": "tool", "tool_call_id": identity, "content": NO_RESULT}
            yield Wire(missing, _NO_RESULT_TOKENS)
            continue
        answer = {"role": "tool", "tool_call_id": identity, "content": result.content}
        yield Wire(answer, result.token_count, result.seq)


def _results(following: Iterable[StoredMessage]) -> dict[str, StoredMessage]:
    """The tool messages that follow at once, the first of each call id.

    Only those, because servers number the calls of each reply anew, so that an id may occur again
    many messages later.
    """
    results: dict[str, StoredMessage] = {}
    for one in takewhile(lambda message: message.role == "tool", following):
        results.setdefault(one.tool_call_id, one)
    return results


def wire_of(tail: Sequence[StoredMessage], back: SentBack = NOTHING) -> list[Wire]:
    """The tail in the form that is sent: it begins with a user message, every result has its call.

    A turn without a reply contributes ``[no reply: <status>]``. Results without a call are left
    out.
    """
    wire: list[Wire] = []
    now = SentBackNow.of(tail, back)
    # The status of the last user message's turn, until something answers it.
    unanswered: str | None = None
    for index, one in enumerate(tail):
        if one.role == "user":
            if unanswered is not None:
                wire.append(_synthetic("assistant", f"[no reply: {unanswered}]"))
            wire.append(Wire({"role": "user", "content": one.content}, one.token_count, one.seq))
            unanswered = one.turn_status
        elif one.role == "assistant":
            following = (tail[place] for place in range(index + 1, len(tail)))
            parts = list(_assistant(one, following, now))
            if not parts:
                continue
            # Imported conversations may begin with the assistant, or let it speak twice.
            if not wire:
                wire.append(_synthetic("user", "[the conversation begins here]"))
            elif wire[-1].message["role"] == "assistant":
                wire.append(_synthetic("user", "[the assistant goes on]"))
            wire.extend(parts)
            # A turn that ended between two rounds has called tools, but has answered nothing.
            unanswered = one.turn_status if one.tool_calls else None
    return wire
