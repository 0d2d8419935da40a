"""Moments and spans of time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


class Clock:
    """Moments as people read them: clock time, with the date if it is another day, and how long from now."""

    def __init__(self, now: float, never: str = "never") -> None:
        """`never`: what is written for a moment that does not come in the run."""
        self._now = now
        self._never = never
        self._today = datetime.fromtimestamp(now, UTC).date()

    def time(self, seconds: float | None) -> str:
        """`14:05:00`, or `2026-11-02 14:05:00`."""
        if seconds is None:
            return self._never
        try:
            moment = datetime.fromtimestamp(self._now + seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return "a time beyond the year 9999"
        return moment.strftime("%H:%M:%S" if moment.date() == self._today else "%Y-%m-%d %H:%M:%S")

    def full(self, seconds: float | None) -> str:
        """`14:05:00 (in 2h5m)`."""
        if seconds is None:
            return self._never
        if seconds < 1:
            return f"{self.time(seconds)} (now)"
        return f"{self.time(seconds)} (in {span_text(seconds)})"

    @property
    def now(self) -> str:
        return datetime.fromtimestamp(self._now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span_text(seconds: float) -> str:
    """A span of time by its two largest units: `2h`, `1h20m`, `3d4h`, `45s`."""
    rest = max(0, round(seconds))
    parts = []
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        parts.append((count, unit))
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"
