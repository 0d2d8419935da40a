"""Durations and ages as kubectl prints them: `38s`, `5m12s`, `3h`, `2d4h`, `400d`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

UNKNOWN = "<unknown>"
INVALID = "<invalid>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400


def duration_text(seconds: float) -> str:
    """A duration, finer the shorter it is, as kubectl writes it."""
    if seconds < -1:
        return INVALID
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two_units(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two_units(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two_units(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    return _two_units(whole, YEAR, "y", DAY, "d") if whole < 8 * YEAR else f"{whole // YEAR}y"


def _two_units(seconds: int, large: int, unit: str, small: int, small_unit: str) -> str:
    count, rest = divmod(seconds, large)
    return f"{count}{unit}{rest // small}{small_unit}" if rest // small else f"{count}{unit}"


def instant(text: Any) -> float | None:
    """A timestamp in seconds; None if it is missing or malformed."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def ago(text: Any, now: float) -> str:
    """How long ago a timestamp was."""
    moment = instant(text)
    return UNKNOWN if moment is None else duration_text(now - moment)


def age(content: dict[str, Any], now: float) -> str:
    """How old an object is."""
    meta = content.get("metadata")
    return ago(meta.get("creationTimestamp") if isinstance(meta, dict) else None, now)
