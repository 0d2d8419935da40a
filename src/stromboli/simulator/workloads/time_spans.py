"""Times as people write them: seconds, or `90s`, `30m`, `1h30m`, `7d`, `2w`."""

from __future__ import annotations

import re

from stromboli.api.errors import quoted

LONGEST_SPAN = 1e11
"""Of a workload and of all times in it, in seconds: some 3,000 years."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ms|[smhdw])", re.ASCII)


def seconds(span: float | str) -> float:
    """Seconds of a time that is not negative; a `ValueError` says what is wrong."""
    value = _parse(span) if isinstance(span, str) else float(span)
    if not 0 <= value <= LONGEST_SPAN:
        raise ValueError(f"{quoted(span)} is not from 0 to {LONGEST_SPAN:.0f} seconds")
    return value


def _parse(text: str) -> float:
    parts = list(_PART.finditer(text[:200]))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError(f"{quoted(text)} is no time; expected seconds, or a text such as 90s, 1h30m or 7d")
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
