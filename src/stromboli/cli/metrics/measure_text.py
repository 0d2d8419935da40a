"""Numbers of metrics as people read them: counts, durations, shares, with their units."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from stromboli.cli.metrics.metric_samples import Quantile
from stromboli.cli.status.resource_columns import short_bytes

UNLIMITED = "no limit"
_LARGEST = 1e15
"""Beyond it, digits tell nobody anything."""


def count_text(count: float, seconds: float | None = None) -> str:
    """`1,234`; with the seconds in which it was counted `1,234 (5.2/s)`."""
    text = f"{count:,.0f}" if abs(count) < _LARGEST else f"{count:.3g}"
    return text if not seconds or not count else f"{text} ({count / seconds:.2g}/s)"


def noun_text(count: float, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """Three digits and a unit: `12 ms`, `3.4 s`, `5.6 min`, `7.8 h`, `9 d`."""
    if 0 < seconds < 0.0009995:
        return f"{max(seconds * 1e6, 0.001):.3g} µs"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    for unit, size, up_to in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 48 * 3600)):
        if seconds < up_to:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:,.0f} d" if seconds < _LARGEST else "forever"


def quantile_text(quantile: Quantile) -> str:
    """Of milliseconds, for a cell."""
    return f"{'>' if quantile.is_more else ''}{duration_text(quantile.value / 1000)}"


def within_text(part: str, quantile: Quantile) -> str:
    """`99 of 100 within 12 ms`, as far as the buckets tell."""
    bound = duration_text(quantile.value / 1000)
    return f"fewer than {part} within {bound}" if quantile.is_more else f"{part} within {bound}"


def share_text(share: float) -> str:
    """In percent."""
    return f"{share * 100:.3g} %" if abs(share) < 9.995 else f"{share * 100:,.0f} %" if share < 1e6 else "∞"


def cpu_text(milli: float | None) -> str:
    return _amount(milli, lambda amount: f"{amount / 1000:.6g}")


def bytes_text(amount: float | None) -> str:
    return _amount(amount, short_bytes)


def _amount(amount: float | None, text: Callable[[float], str]) -> str:
    if amount is None:
        return "-"
    return UNLIMITED if math.isinf(amount) else text(amount)


def counts_by(counts: Mapping[str, float], seconds: float | None = None) -> str:
    """`12 by preempt, 3 by reclaim`, the largest first."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{count_text(count, seconds)} {name}" for name, count in ordered if count)


def number(value: float) -> float | str | None:
    """For JSON, which has no infinity."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return int(value) if value == int(value) else value
