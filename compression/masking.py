"""The choice of the messages to mask, and what the model is sent of them.

Hosts import from here; the code is in :mod:`compression.planning.masking`.
"""

from compression.planning.masking import (
    BATCH,
    BATCH_AT_COMPRESSION,
    RECENT,
    Batch,
    as_sent,
    batch,
    cut_calls,
    placeholder,
    tokens_masked,
)

__all__ = [
    "BATCH",
    "BATCH_AT_COMPRESSION",
    "RECENT",
    "Batch",
    "as_sent",
    "batch",
    "cut_calls",
    "placeholder",
    "tokens_masked",
]
