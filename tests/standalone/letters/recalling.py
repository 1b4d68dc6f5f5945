"""Looking things up in older letters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compression import store
from compression.database import in_database_thread
from compression.ledger.lines import forgotten
from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import History
from compression.recall.tools import SHARE, recall_tools
from compression.tools.tool import Tool

from .compressing import COUNTER, SIZES, Letters


def read_letters(thread_id: int, work: Callable[[History], str]) -> str:
    """One unit of work on the letters that the digest stands for."""
    base = store.read_base(thread_id)
    letters = Letters().items(thread_id, after_seq=0, through_seq=base.boundary)
    known = [one for one in letters if one.seq not in forgotten(base.ledger)]
    return work(ItemsHistory(known, through=base.boundary))


def tools(thread_id: int) -> tuple[Tool, ...]:
    """What a model is offered besides the digest."""
    look_up = partial(in_database_thread(read_letters), thread_id)
    return recall_tools(look_up, COUNTER, most_tokens=SIZES.ruler(SHARE))
