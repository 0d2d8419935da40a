"""When the next cycle starts: a moment after news, later while news keeps coming, and by the period at the latest.

A cycle costs little more for ten changes than for one, so changes are gathered before it. How long is a trade of
latency against work: a lone pod waits some milliseconds, and a storm has few cycles, in proportion to what they cost.
"""

from __future__ import annotations

import math

NOW = 0.0
"""Seconds that news may wait which could let a pod start; other changes may wait longer."""
GATHER = 0.010
"""Seconds from the first news to its cycle, when nothing else happens."""
PAUSE = 0.005
"""Seconds without further news after which there is nothing more to gather."""
STORM = 4.0
"""News that keeps coming is gathered for so many times what the last cycle cost."""
REST = 1.0
"""Between two cycles lies at least this many times what the last one cost, or they would leave no time to write."""


class Gathering:
    """A pure function of times: it neither waits nor reads a clock."""

    def __init__(self, period: float, on_change: bool = True) -> None:
        """`period` is the longest rest after a cycle. Without `on_change` it is every rest, as in Volcano."""
        self._period = period
        self._on_change = on_change
        self.cycle_ended(-math.inf, cost=0.0)

    def cycle_ended(self, now: float, cost: float) -> None:
        """A cycle that took so many seconds of processor time has ended; it has seen all that was gathered."""
        self._ended, self._cost = now, cost
        self._news_since = math.inf
        self._last_news = -math.inf
        self._deadline = math.inf

    def note(self, since: float, now: float, patience: float) -> None:
        """Changes that have come since some time are known now; the most urgent of them may wait so long."""
        if patience <= NOW:
            self._news_since = min(self._news_since, since)
            self._last_news = now
        else:
            self._deadline = min(self._deadline, since + patience)

    @property
    def due(self) -> float:
        """When the next cycle starts, as far as is known."""
        latest = self._ended + self._period
        if not self._on_change:
            return latest
        longest = self._news_since + max(GATHER, STORM * self._cost)
        gathered = max(self._news_since + GATHER, self._last_news + PAUSE)
        rested = self._ended + REST * self._cost
        return min(latest, max(rested, min(self._deadline, longest, gathered)))
