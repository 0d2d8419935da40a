"""`maxUnavailable` and `maxSurge` of rollouts: numbers, or percentages of the pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.schema_problems import Problem, invalid

_LARGEST = 2**31 - 1


def limit_problems(value: Any, field: str, capped: bool = True) -> Iterator[Problem]:
    """Of a limit that is set; one that is capped is 100% at most."""
    if isinstance(value, int) and not 0 <= value <= _LARGEST:
        yield invalid(field, value, f"must be greater than or equal to 0, and at most {_LARGEST}")
    elif isinstance(value, str):
        percentage = _percentage(value)
        if percentage is None:
            yield invalid(field, value, "must be an integer or a percentage (e.g. '5%')")
        elif capped and percentage > 100:
            yield invalid(field, value, "must not be greater than 100%")


def is_zero(value: Any) -> bool:
    """Whether a limit allows nothing."""
    return _percentage(value) == 0 if isinstance(value, str) else not value


def _percentage(text: str) -> int | None:
    """More digits than anybody needs stand for a large number."""
    digits = text.removesuffix("%")
    if digits == text or not digits.isascii() or not digits.isdecimal():
        return None
    return int(digits[:10])
