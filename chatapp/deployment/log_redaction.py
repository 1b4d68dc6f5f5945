"""Redaction of the tokens of sign-in links and shared links in log records.

Django logs the path of a refused request, other servers that of every request. With an unused token
a reader of the log could sign in, or read a shared conversation. So it is removed from the record
itself, before any handler sees it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

# Up to the end of the path; also when quoted, as in a `next` parameter.
_TOKEN = re.compile(
    r"((?:/|%2F)(?:link(?:/|%2F)[^/%\s]*|s)(?:/|%2F))(?!\[token])[^/%?&\s\"'<>,;)]+",
    re.IGNORECASE,
)
_REPLACEMENT = r"\1[token]"


def without_tokens(text: str) -> str:
    """The text with the token of each sign-in link and shared link replaced by a word."""
    return _TOKEN.sub(_REPLACEMENT, text)


def redact_records() -> None:
    """Remove tokens from every log record of this process; a second call does nothing."""
    made = logging.getLogRecordFactory()
    if not isinstance(made, _Factory):
        logging.setLogRecordFactory(_Factory(made))


class _Factory:
    def __init__(self, made: Callable[..., logging.LogRecord]) -> None:
        self._made = made

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._made(*args, **kwargs)
        if isinstance(record.args, tuple):
            # One by one, since some formatters need the same number of arguments.
            record.args = tuple(
                without_tokens(one) if isinstance(one, str) else one for one in record.args
            )
        message = _message(record)
        if _TOKEN.search(message):
            # The token was in the format, or in an argument that is no text.
            record.msg, record.args = without_tokens(message), None
        if record.exc_info:
            # Formatters use this text instead of formatting the traceback themselves.
            traceback = logging.Formatter().formatException(record.exc_info)
            if _TOKEN.search(traceback):
                record.exc_text = without_tokens(traceback)
        return record


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The arguments do not fit the format; the handler reports that.
        return ""
