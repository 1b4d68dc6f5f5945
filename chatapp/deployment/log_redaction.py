"""Log lines without the tokens of sign-in links.

Django names the path of what it refuses, and other servers that of every request. A token that has
not been used lets whoever reads the log in, so it is taken out of the record itself, before any
handler of anybody sees it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

# As far as a path goes; quoted as in a `next` parameter, too.
_TOKEN = re.compile(
    r"((?:/|%2F)link(?:/|%2F)[^/%\s]*(?:/|%2F))(?!\[token])[^/%?&\s\"'<>,;)]+", re.IGNORECASE
)
_REPLACEMENT = r"\1[token]"


def without_tokens(text: str) -> str:
    """The text with each sign-in link's token replaced by a word."""
    return _TOKEN.sub(_REPLACEMENT, text)


def redact_records() -> None:
    """Have every log record of this process made without tokens; a second time does nothing."""
    made = logging.getLogRecordFactory()
    if not isinstance(made, _Factory):
        logging.setLogRecordFactory(_Factory(made))


class _Factory:
    def __init__(self, made: Callable[..., logging.LogRecord]) -> None:
        self._made = made

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._made(*args, **kwargs)
        if isinstance(record.args, tuple):
            # One by one: there are formatters that count them.
            record.args = tuple(
                without_tokens(one) if isinstance(one, str) else one for one in record.args
            )
        message = _message(record)
        if _TOKEN.search(message):
            # It stood in the format, or in something that is no text.
            record.msg, record.args = without_tokens(message), None
        if record.exc_info:
            # Formatters take what is there instead of making it themselves.
            traceback = logging.Formatter().formatException(record.exc_info)
            if _TOKEN.search(traceback):
                record.exc_text = without_tokens(traceback)
        return record


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The arguments do not fit the format: the handler says so.
        return ""
