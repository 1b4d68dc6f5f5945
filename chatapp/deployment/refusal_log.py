"""A filter for the log: a request that Django refuses is one line, not a traceback.

Anybody can send what no form of ours does; a traceback is for what somebody has to mend.
"""

from __future__ import annotations

import logging

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import UnreadablePostError
from django.http.multipartparser import MultiPartParserError

#: What Django raises for a request that it does not take, wherever its body is first looked at.
UNREADABLE = (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)


class RefusalFilter(logging.Filter):
    """Takes the traceback of a refused request off its record, which becomes a warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, UNREADABLE):
            record.exc_info = record.exc_text = None
            if record.levelno > logging.WARNING:
                record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
