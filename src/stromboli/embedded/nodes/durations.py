"""How long things take: a fixed time, or one drawn by chance, the same for the same pod every time."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from stromboli.api.go_scalars import duration

LONGEST = 64
_EXPONENTIAL = re.compile(r"exp\(([^()]+)\)")
_WAYS = "expected a time like 30s or 1h30m, a range like 10s..60s, exp(30s), or forever"


class BadDuration(ValueError):
    """No span of time."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Evenly between two times; around a mean, if that is what is given; for ever if that is infinite."""

    low: float
    high: float
    exponential: bool = False

    def draw(self, seed: str) -> float:
        """Seconds; always the same for the same seed."""
        if self.low == self.high and not self.exponential:
            return self.low
        dice = random.Random(seed)
        return dice.expovariate(1 / self.low) if self.exponential else dice.uniform(self.low, self.high)


FOREVER = Duration(math.inf, math.inf)


def parse_duration(text: str) -> Duration:
    """A span from what a user wrote; `BadDuration` says what is wrong and what would be right."""
    plain = text.strip()
    if plain == "forever":
        return FOREVER
    drawn = _EXPONENTIAL.fullmatch(plain)
    if drawn is not None:
        mean = _seconds(drawn[1], text)
        return Duration(mean, mean, exponential=mean > 0)
    low, dots, high = plain.partition("..")
    first = _seconds(low, text)
    last = _seconds(high, text) if dots else first
    if last < first:
        raise BadDuration(f"{text[:LONGEST]!r}: the range ends before it begins")
    return Duration(first, last)


def _seconds(text: str, whole: str) -> float:
    plain = text.strip()
    seconds = float(plain) if plain.isdecimal() and len(plain) < 10 else duration(plain)
    if seconds is None or seconds < 0 or not math.isfinite(seconds):
        raise BadDuration(f"{whole[:LONGEST]!r}: {_WAYS}")
    return seconds
