"""The root of the error tree, and compression's branch.

::

    UserFacingError                 code, message, retryable, retry_after, fields, partial_kept
    └── CompressionError
        ├── NothingToCompress       nothing_to_compress     422
        ├── CompressionRunning      compression_running     409
        ├── StaleVersion            stale_version           409
        ├── StaleSource             stale_source            409
        ├── NothingToUndo           nothing_to_undo         409
        ├── SummaryInvalid          summary_invalid         422
        ├── SummarizerError         summarizer_failed       502
        │   └── DraftRejected       draft_rejected          502
        ├── CompressionCancelled    compression_cancelled   409
        ├── LeaseLost               lease_lost              409
        └── ToolFailed              tool_failed             502

The chat's branch is in :mod:`chatapp.errors`. Do not raise the two base classes directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from compression.types import Spent


class UserFacingError(Exception):
    """An error with a sentence that its reader understands.

    ``message`` says what happened and what can be done. ``fields`` holds figures or texts that
    belong to it. ``retry_after`` is in seconds.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    default_message: ClassVar[str] = "Something went wrong."

    def __init__(
        self,
        message: str = "",
        *,
        fields: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        partial_kept: bool = False,
    ) -> None:
        self.message = message or self.default_message
        self.fields = dict(fields or {})
        self.retry_after = retry_after
        self.partial_kept = partial_kept
        super().__init__(self.message)

    def as_dict(self) -> dict[str, Any]:
        """The error in the form used everywhere: JSON body, event, card."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "retry_after": self.retry_after,
            "fields": self.fields,
            "partial_kept": self.partial_kept,
        }


class CompressionError(UserFacingError):
    """Root of compression's errors."""


class NothingToCompress(CompressionError):
    """The planner found no span that is worth a call."""

    code = "nothing_to_compress"
    status = 422
    default_message = "There is nothing to compress yet: the conversation is still short."


class CompressionRunning(CompressionError):
    """Another run holds the lease."""

    code = "compression_running"
    status = 409
    retryable = True
    default_message = "This conversation is already being compressed."


class StaleVersion(CompressionError):
    """The summary has changed since it was read; ``fields`` holds both texts."""

    code = "stale_version"
    status = 409
    default_message = "The summary was changed meanwhile. Both texts are shown; nothing was saved."


class StaleSource(CompressionError):
    """A message under the version was superseded or deleted."""

    code = "stale_source"
    status = 409
    default_message = (
        "This version cannot come back: a message that it summarises was changed or removed."
    )


class NothingToUndo(CompressionError):
    """There is no version or mask to undo or redo."""

    code = "nothing_to_undo"
    status = 409
    default_message = "There is nothing to undo."


class SummaryInvalid(CompressionError):
    """A person's text cannot be read, is empty, or is too long; ``fields`` names the line."""

    code = "summary_invalid"
    status = 422
    default_message = "The summary could not be read."


class SummarizerError(CompressionError):
    """A summariser gave no draft; ``spent`` is what its calls used anyway.

    ``transient``: asking again may help. ``too_long``: the factor by which the question was too
    long for the model; 0 if that was not the reason.
    """

    code = "summarizer_failed"
    status = 502
    retryable = True
    default_message = "The summary could not be written. Nothing was lost."
    spent: Spent = Spent()
    transient: bool = False
    too_long: float = 0.0


class DraftRejected(SummarizerError):
    """A draft was given, but is not fit to be applied."""

    code = "draft_rejected"
    transient = True
    default_message = "The model's summary was not usable. Nothing was lost."


class CompressionCancelled(CompressionError):
    """A person cancelled the run."""

    code = "compression_cancelled"
    status = 409
    retryable = True
    default_message = "The compression was cancelled. Nothing was changed."


class LeaseLost(CompressionError):
    """The lease expired or was taken over; the late draft is dropped."""

    code = "lease_lost"
    status = 409
    retryable = True
    default_message = "Another process took this compression over. Nothing was lost."


class ToolFailed(CompressionError):
    """A tool gave no result. The sentence is what the model is told, and a person reads it too."""

    code = "tool_failed"
    status = 502
    default_message = "The tool gave no result."
