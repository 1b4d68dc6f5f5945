"""A time as the distance to now, for the pages that scripts may later put into the reader's words.

Pure. ``static/js/ago.js`` has the same steps.
"""

from __future__ import annotations

from datetime import datetime, timedelta

#: Each unit, and the distance from which on the next one is used.
_UNITS = (
    ("minute", timedelta(minutes=1), timedelta(hours=1)),
    ("hour", timedelta(hours=1), timedelta(days=1)),
    ("day", timedelta(days=1), timedelta(days=7)),
)


def ago(moment: datetime, now: datetime) -> str:
    """ "just now", "5 minutes ago", "yesterday", "3 days ago"; after a week, the date."""
    passed = now - moment
    if passed < timedelta(minutes=1):
        return "just now"
    for name, unit, until in _UNITS:
        count = passed // unit
        if passed >= until:
            continue
        if name == "day" and count == 1:
            return "yesterday"
        return f"{count} {name}{'' if count == 1 else 's'} ago"
    return f"{moment:%-d %b}" if moment.year == now.year else f"{moment:%-d %b %Y}"
