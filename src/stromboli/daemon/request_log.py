"""The log of our HTTP servers: a line about a request that cannot be read, where aiohttp would write a traceback."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError

PAUSE = 1.0
"""Seconds between two lines; requests in between are counted."""
_LONGEST = 200


class MalformedRequests(logging.Filter):
    """Replaces tracebacks about malformed requests and drops those about clients that left; our errors keep theirs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_line = 0.0
        self._untold = 0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            return False  # the client left: there is nobody to answer
        if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
            return True
        if self._clock() < self._next_line:
            self._untold += 1
            return False
        self._next_line = self._clock() + PAUSE
        sender = f" from {record.args[0]}" if isinstance(record.args, tuple) and record.args else ""
        others = f" (and {self._untold} others before)" if self._untold else ""
        record.msg = "malformed request%s%s: %s"
        record.args = (sender, others, " ".join(str(error).split())[:_LONGEST])
        record.exc_info, self._untold = None, 0
        if record.levelno > logging.WARNING:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


request_log = logging.getLogger(__name__)
"""For the servers of aiohttp."""
request_log.addFilter(MalformedRequests())
