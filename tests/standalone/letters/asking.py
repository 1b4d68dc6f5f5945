"""The host's own model: here one that always reports the same, without any network."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from compression.types import Completion


async def ask(
    *,
    system: str,
    user: str,
    schema: Mapping[str, Any] | None,
    max_tokens: int,
    on_tokens: Callable[[int], Awaitable[None]],
) -> Completion:
    """See :class:`compression.ports.Complete`."""
    await on_tokens(3)
    answer = {"narrative": "Letters were exchanged.", "add": []}
    return Completion(text=json.dumps(answer), finish_reason="stop", model="a-model")
