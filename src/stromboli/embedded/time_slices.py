"""Long work on the event loop, cut into slices between which everybody else is served."""

from __future__ import annotations

import asyncio
import logging
import time

log = logging.getLogger(__name__)

SLICE = 0.01
"""Seconds of work between two pauses."""
LARGE = 64 * 1024
"""Bytes of a body from which on a request pauses between its steps."""


LAG_INTERVAL = 0.5
"""Seconds between two looks at the event loop."""
LAG_WARNING = 1.0
"""Seconds without a turn of the event loop that are told in the log."""


class TimeSlices:
    """For loops over many objects: `if slices.due: await slices.pause()`."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SLICE

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._end

    async def pause(self) -> None:
        await asyncio.sleep(0)
        self._end = time.monotonic() + SLICE


async def pause_if_large(size: int) -> None:
    """Between two steps of a request with a body of this many bytes."""
    if size >= LARGE:
        await asyncio.sleep(0)


async def warn_of_lag() -> None:
    """Tell in the log when nobody was served for long, since clients notice it and cannot say why."""
    while True:
        start = time.monotonic()
        await asyncio.sleep(LAG_INTERVAL)
        lag = time.monotonic() - start - LAG_INTERVAL
        if lag >= LAG_WARNING:
            log.warning(
                "the event loop served nobody for %.1f s: the machine is busy, or a request is too large", lag
            )
