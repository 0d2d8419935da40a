"""Many timers in one heap with one timer of the event loop: a thousand running pods cost nothing until one is due."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)


class TimerHeap:
    """One timer per key; setting it again moves it. Times are wall-clock seconds, as in objects."""

    MAX_WAIT = 60.0
    """The clock is read at least this often while timers are set: wall clocks jump, laptops sleep."""

    def __init__(self, expired: Callable[[str], None], clock: Callable[[], float] = time.time) -> None:
        self._expired = expired
        self._clock = clock
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """Also has times of timers that were moved or cancelled since."""
        self._handle: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: str, when: float) -> None:
        if self._due.get(key) != when:
            self._due[key] = when
            heapq.heappush(self._heap, (when, key))
            if self._heap[0] == (when, key):
                self._arm()

    def shift(self, seconds: float) -> None:
        """Move all timers, since the clock was set."""
        self._due = {key: when + seconds for key, when in self._due.items()}
        self._heap = [(when + seconds, key) for when, key in self._heap]

    def cancel(self, key: str) -> None:
        self._due.pop(key, None)
        if not self._due:
            self.clear()

    def clear(self) -> None:
        self._due.clear()
        self._heap.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        now = self._clock()
        wait = min(max(0.0, self._heap[0][0] - now), self.MAX_WAIT)
        self._handle = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now = self._clock()
        while self._heap:
            when, key = self._heap[0]
            is_set = self._due.get(key) == when
            if is_set and when > now:
                self._arm()
                return
            heapq.heappop(self._heap)
            if is_set:
                del self._due[key]
                try:
                    self._expired(key)
                except Exception:  # the timers of all others go on
                    log.exception("%s: what was due could not be done", key)
