"""A token bucket for requests, and exponential backoff after failures."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]
Jitter = Callable[[], float]
"""A number from 0 to 1."""


class RateLimiter:
    """A token bucket: `qps` requests a second, with bursts of `burst`; first come, first served."""

    def __init__(
        self, qps: float, burst: int, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        """Without a positive `qps` there is no limit."""
        self._interval = 1.0 / qps if qps > 0 else 0.0
        self._slack = self._interval * max(0, burst - 1)
        self._clock = clock
        self._sleep = sleep
        self._due = clock()
        """When the next request is due if requests are evenly spaced."""

    async def take(self) -> None:
        """Wait for a token; a cancelled wait gives it back."""
        if not self._interval:
            return
        now = self._clock()
        due = max(self._due, now)
        self._due = due + self._interval
        wait = due - self._slack - now
        if wait > 0:
            try:
                await self._sleep(wait)
            except asyncio.CancelledError:
                self._due -= self._interval
                raise


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from `first` to `longest`, each shortened by up to half at random."""

    first: float = 0.25
    longest: float = 30.0
    jitter: Jitter = random.random

    def pause(self, failures: int, retry_after: float | None = None) -> float:
        """Seconds to wait after so many failures in a row; at least `retry_after`, within bounds."""
        full = min(self.longest, self.first * 2.0 ** min(max(failures, 1) - 1, 40))
        pause = full * (0.5 + 0.5 * self.jitter())
        return pause if retry_after is None else max(pause, min(retry_after, 2 * self.longest))
