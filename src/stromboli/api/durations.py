"""Durations as users write them: fixed, uniform in a range, or exponential; sampled the same for the same pod."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from stromboli.api.go_scalars import duration

_MAX_SHOWN = 64
_EXPONENTIAL = re.compile(r"exp\(([^()]+)\)")
_SYNTAX = "expected a time like 30s or 1h30m, a range like 10s..60s, exp(30s), or forever"


class BadDuration(ValueError):
    """Not a duration; says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds, uniform between two bounds, or exponential around a mean; infinite for ever."""

    low: float
    high: float
    exponential: bool = False

    def sample(self, seed: str) -> float:
        """Always the same for the same seed."""
        if self.low == self.high and not self.exponential:
            return self.low
        generator = random.Random(seed)
        if self.exponential:
            return generator.expovariate(1 / self.low)
        return generator.uniform(self.low, self.high)


FOREVER = Duration(math.inf, math.inf)


def parse_duration(text: str) -> Duration:
    plain = text.strip()
    if plain == "forever":
        return FOREVER
    exponential = _EXPONENTIAL.fullmatch(plain)
    if exponential is not None:
        mean = _seconds(exponential[1], text)
        return Duration(mean, mean, exponential=mean > 0)
    low, dots, high = plain.partition("..")
    first = _seconds(low, text)
    last = _seconds(high, text) if dots else first
    if last < first:
        raise BadDuration(f"{text[:_MAX_SHOWN]!r}: the range ends before it begins")
    return Duration(first, last)


def longest(text: str) -> float | None:
    """The most seconds that a duration may come to; none if it is exponential, or cannot be read."""
    try:
        parsed = parse_duration(text)
    except BadDuration:
        return None
    return None if parsed.exponential else parsed.high


def _seconds(text: str, whole: str) -> float:
    plain = text.strip()
    seconds = float(plain) if plain.isdecimal() and len(plain) < 10 else duration(plain)
    if seconds is None or seconds < 0 or not math.isfinite(seconds):
        raise BadDuration(f"{whole[:_MAX_SHOWN]!r}: {_SYNTAX}")
    return seconds
