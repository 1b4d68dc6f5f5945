"""A summary written by a model.

Hosts import from here; the code is in :mod:`compression.summarizers.prompt`.
"""

from compression.summarizers.prompt import (
    FRAMING,
    JOINT,
    LONGEST_FOCUS,
    LONGEST_TOOL_RESULT,
    NOTES_A_PART,
    PROBLEMS,
    PROMPT_VERSION,
    RETRIES,
    SERVER_RETRIES,
    SMALLEST_CHUNK,
    PromptSummarizer,
    instructions,
    prompt_version,
)

__all__ = [
    "FRAMING",
    "JOINT",
    "LONGEST_FOCUS",
    "LONGEST_TOOL_RESULT",
    "NOTES_A_PART",
    "PROBLEMS",
    "PROMPT_VERSION",
    "RETRIES",
    "SERVER_RETRIES",
    "SMALLEST_CHUNK",
    "PromptSummarizer",
    "instructions",
    "prompt_version",
]
