"""Source numbers of a summary's lines that are another conversation's. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

_LAST = re.compile(r" \[(?=[\d, –-]+\]$)")


def mark_earlier(text: str, lines: Collection[str]) -> str:
    """The summary's Markdown with the sources of these lines marked, ``[earlier 12]``.

    The lines were carried over from the conversation that this one continues, and their sources are
    its messages.
    """
    return "\n".join(
        _LAST.sub(" [earlier ", line) if line in lines else line for line in text.split("\n")
    )
