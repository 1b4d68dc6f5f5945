"""The rounds of a turn: how often a model may call tools before it has to answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: Requests of one turn that offer tools; then one that offers none.
MOST_ROUNDS = 8
#: Added once to the last result when the window is nearly full inside a tool loop.
WIND_DOWN = (
    "[The context window is nearly full. Call no more tools unless it is essential, and answer "
    "with what you have.]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The rounds of one turn. A round is a request that offers tools."""

    most: int = MOST_ROUNDS
    begun: int = 0

    @property
    def offers(self) -> bool:
        """Whether the next request offers tools."""
        return self.begun < self.most

    def after(self, *, offered: bool) -> Rounds:
        """The rounds after one more request, which has ``offered`` tools or not."""
        return Rounds(most=self.most, begun=self.begun + offered)
