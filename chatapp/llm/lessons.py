"""Lessons from a server's refusals, and for how long they are believed. Pure.

One refusal is a hint: it may have been passing, or its figure misread. It is believed for an hour.
After that the server is asked again as if nothing had been; when it refuses again, the lesson is
confirmed and holds for a week. Whatever speaks against it ends it at once: a longer request that
was answered, the server's own word, the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

#: How long a lesson holds that was taught once, and one that was confirmed later.
TRIAL = timedelta(hours=1)
BELIEVED = timedelta(days=7)

Value = bool | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One figure of a model that differs from what its server or the price data say."""

    value: Value
    first: datetime
    last: datetime
    """When a refusal taught it, the first time and the last."""
    confirmed: bool = False

    def holds(self, now: datetime) -> bool:
        """Whether requests are made by it."""
        return now - self.last < (BELIEVED if self.confirmed else TRIAL)

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "value": self.value,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "confirmed": self.confirmed,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Lesson:
        """As :meth:`as_json` wrote it."""
        return cls(
            value=stored["value"],
            first=datetime.fromisoformat(stored["first"]),
            last=datetime.fromisoformat(stored["last"]),
            confirmed=stored["confirmed"],
        )


def taught(before: Lesson | None, value: Value, now: datetime, *, named: bool = True) -> Lesson:
    """The lesson after one more refusal.

    ``named``: the server said this very figure. Where it says none, any refusal after the trial
    confirms what was thought before.
    """
    if before is None or now - before.last >= BELIEVED:
        return Lesson(value=value, first=now, last=now)
    tried = not before.holds(now) or before.confirmed
    if before.value == value or (not named and tried):
        # What is taught twice in one trial may come from one and the same mistake.
        return replace(before, last=now, confirmed=True) if tried else before
    return Lesson(value=value, first=now, last=now)
