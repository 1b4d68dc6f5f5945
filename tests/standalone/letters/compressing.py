"""How the letters are compressed."""

from __future__ import annotations

from compression import services
from compression.engine import Engine
from compression.summarizer import PromptSummarizer
from compression.tokens import default_counter
from compression.types import Item, Sizes, Trigger
from tests.standalone.letters.asking import ask
from tests.standalone.letters.models import Letter

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
            Item(seq=row.number, role=row.role, text=row.text, tokens=row.tokens) for row in rows
        ]


MODEL = PromptSummarizer(ask, COUNTER, window=8192, max_output_tokens=1024, label="a-model")
ENGINE = Engine(transcript=Letters(), counter=COUNTER, summarizers=(MODEL,))


async def make_room(thread_id: int) -> None:
    await services.compress(thread_id, engine=ENGINE, sizes=SIZES, trigger=Trigger.THRESHOLD)
