"""A person's choices for the replies of a conversation besides the words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: What a person may choose: the temperature, the reasoning efforts that most servers know, and the
#: tokens of the longest reply.
MOST_TEMPERATURE = 2
EFFORTS = ("low", "medium", "high")
LEAST_ANSWER, MOST_ANSWER = 16, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """Temperature, reasoning effort and length of replies; None and empty: the model's choice."""

    temperature: float | None = None
    reasoning_effort: str = ""
    answer_tokens: int | None = None
    """The longest reply, in the provider's tokens."""

    def asked(self, reserve: int) -> dict[str, Any]:
        """The options as arguments of a request; ``reserve`` is the room for a reply."""
        return {
            "max_tokens": min(reserve, self.answer_tokens or reserve),
            "temperature": self.temperature,
            "reasoning_effort": self.reasoning_effort,
        }

    def as_manifest(self, reserve: int, *, temperature: bool, effort: bool) -> dict[str, Any]:
        """The options that are sent, and the names of those that the model does not take.

        ``temperature`` and ``effort`` say whether it takes these two.
        """
        sent = self.asked(reserve)
        takes = {"max_tokens": True, "temperature": temperature, "reasoning_effort": effort}
        chosen = {name: value for name, value in sent.items() if value not in (None, "")}
        return {
            "options": {name: value for name, value in chosen.items() if takes[name]},
            "not_taken": [name for name in chosen if not takes[name]],
        }


#: Everything as the model has it.
DEFAULT_OPTIONS = ReplyOptions()
