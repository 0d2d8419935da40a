"""What a cycle read that may be otherwise in the next one though nothing happened: the time, and what lies outside."""

from __future__ import annotations

from math import inf


class UnrepeatableReads:
    """Notes of what was read; as long as there are none, the same cluster gives the same decisions."""

    def __init__(self, now: float):
        self.time = now
        """The time of the cycle; asking for it here goes unnoticed."""
        self.any = False
        """Whether something was read of which nobody can say when it changes."""
        self.until = inf
        """The earliest moment that somebody waits for."""

    def now(self) -> float:
        """The time itself: answers may change with every second."""
        self.any = True
        return self.time

    def has_come(self, moment: float) -> bool:
        """Whether a moment has come; until it has, this answer stays the same."""
        if self.time >= moment:
            return True
        self.until = min(self.until, moment)
        return False
