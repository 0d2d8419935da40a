"""Kills processes until none of them is left, however long that takes."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

from stromboli.embedded.nodes.real.process_guardian import END_TIMEOUT

log = logging.getLogger(__name__)

ATTEMPT = 0.1
"""Seconds that a thread kills and waits: threads are few, and a process that a driver holds up may take for ever."""
RETRY = 0.2
"""Seconds between two attempts."""


async def kill_until_gone(kill: Callable[[float], bool], owner: str) -> None:
    """`kill` tells whether the owner's processes are gone within these seconds."""
    late = time.monotonic() + END_TIMEOUT
    while not await asyncio.to_thread(kill, ATTEMPT):
        if time.monotonic() > late:
            log.warning("%s: killed processes do not end", owner)
            late = math.inf
        await asyncio.sleep(RETRY)
