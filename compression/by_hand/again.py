"""A summary written anew, because a person found the present one wanting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compression import conf
from compression.conf import CompressionSettings
from compression.engine import Engine, Request
from compression.exceptions import CompressionRunning
from compression.runs.run import claimed
from compression.types import Outcome, Sizes, Trigger


async def compress_again(
    conversation_id: int,
    version: int,
    *,
    engine: Engine,
    sizes: Sizes,
    settings: CompressionSettings | None = None,
    on_started: Callable[[], object] | None = None,
) -> Outcome:
    """Write the active ``version`` anew, of the messages that it took in, input unlocked.

    The present one stays active until a fit draft takes its place, as a version that can be undone;
    what a person wrote or took out since is kept. With an ``engine`` without ``extract`` a failure
    changes nothing.

    Raises StaleVersion when ``version`` is not active, StaleSource when a message before its span
    has changed, NothingToCompress when it was not made from messages, and CompressionRunning.
    """
    request = Request(
        conversation_id=conversation_id,
        engine=engine,
        # Those of the summary before are counted when it is read.
        sizes=replace(sizes, summary=0),
        trigger=Trigger.MANUAL,
        settings=settings or conf.settings(),
        again=version,
        on_started=on_started,
    )
    run = await claimed(request)
    if run is None:
        raise CompressionRunning(fields={"promoted": False})
    return await run.outcome()
