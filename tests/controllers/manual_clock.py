"""A clock for work queues that a test moves."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Time that a test moves; timers fire on the way."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, int, Timer, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        timer = Timer()
        heapq.heappush(self._timers, (self.now + delay, next(self._numbers), timer, lambda: callback(*args)))
        return timer

    def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, timer, fire = heapq.heappop(self._timers)
            if not timer.cancelled:
                fire()
        self.now = end

    @property
    def pending(self) -> int:
        """How many timers are set."""
        return sum(not timer.cancelled for _, _, timer, _ in self._timers)
