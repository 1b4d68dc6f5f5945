"""The first load of a conversation: bytes over the wire, as the benchmark counts them."""

from __future__ import annotations

import pytest

from tests.benchmarks.browser import OURS, TRANSFER, first_load
from tests.browser.screen import Screen, imported
from tests.servers import RunningServer

pytestmark = pytest.mark.browser


async def test_the_first_load_keeps_its_budget(screen: Screen, product: RunningServer) -> None:
    """Breaks when: ``app.js`` imports a module at once that few pages need."""
    await screen.page.goto(imported(product, *["A message.", "An answer."] * 5))
    _, transferred, ours = await first_load(screen.page)
    assert 0 < ours <= OURS
    assert ours < transferred <= TRANSFER
