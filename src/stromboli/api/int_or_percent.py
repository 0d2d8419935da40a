"""Numbers that may also be percentages of a total, as `maxSurge: 25%`."""

from __future__ import annotations

IntOrPercent = int | str


def scaled_value(value: object, total: int, round_up: bool) -> int:
    """A number, or a percentage of the total; 0 for what is neither."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal():
        percent = int(value[:-1]) if len(value) <= 10 else 10**9
        return -(-percent * total // 100) if round_up else percent * total // 100
    return value if isinstance(value, int) else 0
