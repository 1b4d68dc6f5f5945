"""Lessons from a server's refusals, and how long they are valid. Pure.

A first refusal may have been temporary, or its figure misread. Its lesson is valid for an hour;
then the server is asked again as before. If it refuses again, the lesson is confirmed and valid for
a week. Evidence against a lesson ends it at once: an answer to a longer request, the server's own
figure, the operator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

#: How long a new lesson is valid, and how long a confirmed one.
TRIAL = timedelta(hours=1)
BELIEVED = timedelta(days=7)

Value = bool | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One figure of a model that differs from the server's or the price data's."""

    value: Value
    first: datetime
    last: datetime
    """The times of the first and the last refusal that taught it."""
    confirmed: bool = False

    def holds(self, now: datetime) -> bool:
        """Whether requests follow the lesson at this time."""
        return now - self.last < (BELIEVED if self.confirmed else TRIAL)

    def as_json(self) -> dict[str, Any]:
        """The lesson in the form that is stored."""
        return {
            "value": self.value,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "confirmed": self.confirmed,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Lesson:
        """The lesson that :meth:`as_json` wrote."""
        return cls(
            value=stored["value"],
            first=datetime.fromisoformat(stored["first"]),
            last=datetime.fromisoformat(stored["last"]),
            confirmed=stored["confirmed"],
        )


def taught(before: Lesson | None, value: Value, now: datetime, *, named: bool = True) -> Lesson:
    """The lesson after one more refusal.

    ``named``: the server named this figure. If it named none, any refusal after the trial confirms
    the earlier figure.
    """
    if before is None or now - before.last >= BELIEVED:
        return Lesson(value=value, first=now, last=now)
    tried = not before.holds(now) or before.confirmed
    if before.value == value or (not named and tried):
        # Two refusals within one trial may come from the same mistake, so they confirm nothing.
        return replace(before, last=now, confirmed=True) if tried else before
    return Lesson(value=value, first=now, last=now)
