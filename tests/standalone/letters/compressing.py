"""How the letters are compressed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from compression import conf, masking, planner, services, store
from compression.database import in_database_thread
from compression.engine import Engine
from compression.exceptions import CompressionRunning, NothingToCompress
from compression.policy import PolicyState, decide
from compression.summarizer import PromptSummarizer
from compression.tokens import default_counter
from compression.types import ContextAction, Item, Sizes, Trigger

from .asking import ask
from .masks import LetterMasks
from .models import Letter

COUNTER = default_counter()
SIZES = Sizes(window=8192, reserve=1024, fixed=200)


class Letters:
    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> list[Item]:
        rows = Letter.objects.filter(thread=conversation_id, number__gt=after_seq, withdrawn=False)
        if through_seq is not None:
            rows = rows.filter(number__lte=through_seq)
        return [
            Item(
                seq=row.number,
                role=row.role,
                text=row.text,
                tokens=row.tokens,
                masked=row.masked,
                unmasked=row.mask_batch is not None and not row.masked,
            )
            for row in rows.order_by("number")
        ]


MODEL = PromptSummarizer(ask, COUNTER, window=8192, max_output_tokens=1024, label="a-model")
ENGINE = Engine(transcript=Letters(), masks=LetterMasks(), counter=COUNTER, summarizers=(MODEL,))


async def what_to_do(thread_id: int) -> tuple[ContextAction, Sizes]:
    base = await store.aread_base(thread_id)
    letters = await in_database_thread(ENGINE.transcript.items)(thread_id, after_seq=base.boundary)
    sizes = replace(SIZES, summary=COUNTER.count(base.text))
    ready = await store.aready(thread_id) is not None
    masks = masking.batch(letters, sizes)
    state = PolicyState(
        compressible=True,
        ready=ready,
        maskable=masks.frees if masks else 0,
        masking_pays=masks is not None and masks.pays,
    )
    return decide(planner.usage(letters, sizes), conf.settings().policy, state).action, sizes


async def make_room(thread_id: int) -> None:
    """Before each request to the model."""
    action, sizes = await what_to_do(thread_id)
    if action is ContextAction.MASK:
        await services.mask(thread_id, engine=ENGINE, sizes=sizes)
        action, sizes = await what_to_do(thread_id)
    if action is not ContextAction.COMPRESS:
        return
    if await services.apply_ready(thread_id, engine=ENGINE, sizes=sizes) is not None:
        return
    try:
        await services.compress(thread_id, engine=ENGINE, sizes=sizes, trigger=Trigger.THRESHOLD)
    except CompressionRunning:
        await services.settled(thread_id)
    except NothingToCompress:
        pass


async def get_ready(thread_id: int) -> None:
    """After each reply, in the background."""
    action, sizes = await what_to_do(thread_id)
    if action in {ContextAction.PREPARE, ContextAction.COMPRESS}:
        with suppress(NothingToCompress, CompressionRunning):
            await services.prepare(thread_id, engine=ENGINE, sizes=sizes)
