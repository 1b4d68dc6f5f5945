"""Changes of masks, which the host stores: one unit of work each."""

from __future__ import annotations

from collections.abc import Mapping

from compression.ports import MaskChange, Masks


def put_on(masks: Masks, conversation_id: int, tokens: Mapping[int, int]) -> MaskChange | None:
    """See :meth:`compression.ports.Masks.put_on`."""
    return masks.put_on(conversation_id, tokens)


def take_off(masks: Masks, conversation_id: int, batch: int) -> MaskChange | None:
    """See :meth:`compression.ports.Masks.take_off`."""
    return masks.take_off(conversation_id, batch)
