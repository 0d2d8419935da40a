"""Many timers in one heap with one timer of the event loop: a thousand running pods cost nothing until one is due."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Hashable


class TimerHeap:
    """One timer per key; setting it again moves it. Times are wall-clock seconds, as in objects."""

    MAX_WAIT = 60.0
    """The clock is read at least this often while timers are set: wall clocks jump, laptops sleep."""

    def __init__(self, expired: Callable[[Hashable], None], clock: Callable[[], float] = time.time) -> None:
        self._expired = expired
        self._clock = clock
        self._heap: list[tuple[float, int, Hashable]] = []
        self._due: dict[Hashable, tuple[float, int]] = {}
        self._serial = 0
        self._handle: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Hashable, when: float) -> None:
        if key in self._due and self._due[key][0] == when:
            return
        self._serial += 1
        self._due[key] = when, self._serial
        heapq.heappush(self._heap, (when, self._serial, key))
        if self._heap[0][1] == self._serial:
            self._arm()

    def cancel(self, key: Hashable) -> None:
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
        wait = min(max(0.0, self._heap[0][0] - self._clock()), self.MAX_WAIT)
        self._handle = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            _, serial, key = heapq.heappop(self._heap)
            due = self._due.get(key)
            if due is not None and due[1] == serial:
                del self._due[key]
                self._expired(key)
        while self._heap and self._due.get(self._heap[0][2], (0, 0))[1] != self._heap[0][1]:
            heapq.heappop(self._heap)  # moved or cancelled since
        if self._heap:
            self._arm()
