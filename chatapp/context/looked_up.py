"""The older messages that a request quotes because they were looked up. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from chatapp.context.messages import StoredMessage
from compression.recall.quoting import numbers as quoted_numbers
from compression.recall.tools import NAMES as RECALL_TOOLS


def ranges(seqs: Iterable[int]) -> list[list[int]]:
    """Ascending numbers as closed ranges: 1, 2, 3, 7 → [[1, 3], [7, 7]]."""
    result: list[list[int]] = []
    for seq in seqs:
        if result and seq == result[-1][1] + 1:
            result[-1][1] = seq
        else:
            result.append([seq, seq])
    return result


def looked_up_texts(tail: Iterable[StoredMessage]) -> list[str]:
    """The texts of this tail that quote older messages, as the model is sent them."""
    texts = [one.added_context for one in tail if one.added_context]
    return texts + [one.text for one in tail if one.tool_name in RECALL_TOOLS and not one.masked]


def looked_up(tail: Iterable[StoredMessage]) -> list[list[int]]:
    """The messages that results of recall in this tail quote, as closed ranges."""
    texts = looked_up_texts(tail)
    return ranges(sorted({seq for text in texts for seq in quoted_numbers(text)}))
