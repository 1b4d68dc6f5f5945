"""Pictures of what is long and wide in a reply: code, a formula, a diff, a table, lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.browser.pictures import picture
from tests.browser.screen import Screen
from tests.upstreams import RunningUpstream

REPLY = r'''The totals of a ledger, kept as running sums. With $n$ accounts and $m$ entries each
look-up takes

$$
T(n, m) = \sum_{k=1}^{m} \frac{w_k}{1 + e^{-\lambda (t_k - t_0)}} + O\left(\sqrt{n \log m}\right)
$$

steps, which the index keeps small:

```python
from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, order=True)
class Entry:
    """One line of the ledger, in whole cents."""

    day: date
    account: str = field(compare=False)
    cents: int = field(compare=False)


class Ledger:
    """Entries by account, with a running sum: a look-up is a search and one subtraction."""

    def __init__(self) -> None:
        self._days: dict[str, list[date]] = defaultdict(list)
        self._sums: dict[str, list[int]] = defaultdict(lambda: [0])

    def add(self, entry: Entry) -> None:
        # Days come in order, so the sums stay sorted as they are.
        self._days[entry.account].append(entry.day)
        self._sums[entry.account].append(self._sums[entry.account][-1] + entry.cents)

    def between(self, account: str, first: date, last: date) -> int:
        days, sums = self._days[account], self._sums[account]
        return sums[bisect.bisect_right(days, last)] - sums[bisect.bisect_left(days, first)]
```

The change that made it fast:

```diff
@@ -12,7 +12,8 @@ class Ledger:
-    def between(self, account, first, last):
-        return sum(e.cents for e in self._entries if first <= e.day <= last)
+    def between(self, account: str, first: date, last: date) -> int:
+        days, sums = self._days[account], self._sums[account]
+        return sums[bisect.bisect_right(days, last)] - sums[bisect.bisect_left(days, first)]
     # nothing else changes
```

Measured on three machines:

| machine | entries | before, in ms | after, in ms | memory, in MB | remarks |
| --- | ---: | ---: | ---: | ---: | --- |
| laptop | 10,000 | 48.2 | 0.011 | 3.1 | slower at first: the cache is empty |
| server | 1,000,000 | 3,910.4 | 0.016 | 212.0 | |
| phone | 1,000 | 31.7 | 0.034 | 0.4 | with the screen off |

What is left to do:

1. Give `add` an error for days out of order.
2. Keep the sums on disk:
   - one file for each account,
   - written again once a day.
3. Ask whether **cents** are enough.

> A ledger that cannot be read by a person is not a ledger.

Then it is done.'''


async def of_long_reading(screen: Screen, model: RunningUpstream) -> None:
    """One reply, at the places where something of it may be cut or crowded."""
    await screen.page.goto("/?new")
    model.script({"text": REPLY})
    await screen.ask("How do I add up a ledger quickly?")
    await picture(screen, "reading-end")
    await picture(screen, "reading-code", _at(screen, "math"))
    await picture(screen, "reading-within-code", _at(screen, ".hl-nc"))
    await picture(screen, "reading-table", _at(screen, ".hl-gd"))


def _at(screen: Screen, place: str) -> Callable[[], Awaitable[None]]:
    """Bring the last such element to the top of the view."""

    async def scrolled() -> None:
        await screen.articles.last.locator(place).last.evaluate("one => one.scrollIntoView()")

    return scrolled
