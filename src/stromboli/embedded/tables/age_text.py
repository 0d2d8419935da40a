"""Times as people say them: `38s`, `5m12s`, `3h`, `2d4h`, `400d`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stromboli.embedded.tables.table_printer import INVALID, UNKNOWN, Content, nested_map

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400


def duration_text(seconds: float) -> str:
    """A span, finer the shorter it is, as kubectl writes it."""
    if seconds < -1:
        return INVALID
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    return _two(whole, YEAR, "y", DAY, "d") if whole < 8 * YEAR else f"{whole // YEAR}y"


def _two(seconds: int, large: int, mark: str, small: int, rest_mark: str) -> str:
    count, rest = divmod(seconds, large)
    return f"{count}{mark}{rest // small}{rest_mark}" if rest // small else f"{count}{mark}"


def instant(text: Any) -> float | None:
    """A timestamp in seconds; None where there is none, or it is none."""
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


def age(thing: Content, now: float) -> str:
    """How old an object is."""
    return ago(nested_map(thing, "metadata").get("creationTimestamp"), now)


def between(begin: Any, end: Any) -> str:
    """The span from one timestamp to another; empty unless both are there."""
    first, last = instant(begin), instant(end)
    return "" if first is None or last is None else duration_text(last - first)
