"""A log filter that reduces a request refused by Django to one line without a traceback.

Anybody can send malformed requests; a traceback is for errors that somebody must fix.
"""

from __future__ import annotations

import logging

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import UnreadablePostError
from django.http.multipartparser import MultiPartParserError

#: The errors that Django raises for a malformed request when its body is first read.
UNREADABLE = (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)


class RefusalFilter(logging.Filter):
    """Removes the traceback of a refused request and makes its record a warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if necessary, and let it through."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, UNREADABLE):
            record.exc_info = record.exc_text = None
            if record.levelno > logging.WARNING:
                record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
