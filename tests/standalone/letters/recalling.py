"""Looking things up in older letters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compression import store
from compression.database import in_database_thread
from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import History
from compression.recall.tools import SHARE, recall_tools
from compression.tools.tool import Tool

from .compressing import COUNTER, SIZES, Letters


def read_letters(thread_id: int, work: Callable[[History], str]) -> str:
    """One unit of work on the letters that the digest stands for."""
    boundary = store.read_base(thread_id).boundary
    letters = Letters().items(thread_id, after_seq=0, through_seq=boundary)
    return work(ItemsHistory(letters, through=boundary))


def tools(thread_id: int) -> tuple[Tool, ...]:
    """What a model is offered besides the digest."""
    look_up = partial(in_database_thread(read_letters), thread_id)
    return recall_tools(look_up, COUNTER, most_tokens=SIZES.ruler(SHARE))
