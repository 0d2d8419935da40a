"""Booleans, durations and times as Go reads and writes them in labels and annotations."""

import re
from datetime import UTC, datetime
from functools import lru_cache

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MAX_LENGTH = 64


def boolean(text: str) -> bool | None:
    """True, false, or none for what is neither."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def rfc3339(moment: datetime) -> str:
    """A time as Kubernetes writes it, to the second, in the zone it is in."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def timestamp(now: float) -> str:
    """Seconds since 1970 as a `metav1.Time`, to the second."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(now: float) -> str:
    """Seconds since 1970 as a `metav1.MicroTime`, to the microsecond."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


MAX_DURATION = 2.0**63 / 1e9
"""Seconds in Go's longest duration, some 292 years."""


def duration(text: str) -> float | None:
    """Seconds of a duration such as `1h2m3s`; none for what is no duration."""
    return _seconds(text) if len(text) <= _MAX_LENGTH else None


@lru_cache(maxsize=512)
def _seconds(text: str) -> float | None:
    sign = -1.0 if text.startswith("-") else 1.0
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0.0
    if not body or not re.fullmatch(f"(?:{_PART.pattern})+", body):
        return None
    return sign * sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(body))
