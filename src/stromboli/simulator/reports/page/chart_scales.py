"""Scales of charts: values to places between 0 and 1, and ticks that read well."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from stromboli.simulator.reports.measure_titles import DAY, HOUR, MINUTE, duration
from stromboli.simulator.reports.record_columns import Floats

Ticks = list[tuple[float, str]]
_TIME_STEPS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 5, 10, 20, 30, 50, 100, 200, 365)),
)
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s"))
_WAIT_TICKS = (0.0, 1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, DAY, 10 * DAY, 100 * DAY)


@dataclass(frozen=True, slots=True)
class Scale:
    """From the lowest to the highest value; `log` places by the logarithm of 1 + the value."""

    low: float
    high: float
    ticks: Ticks
    log: bool = False

    def place(self, values: Floats | float) -> Floats:
        placed: Floats = np.asarray(values, np.float64)
        low, high = self.low, self.high
        if self.log:
            placed, low, high = np.log1p(np.maximum(placed, 0)), float(np.log1p(low)), float(np.log1p(high))
        return np.clip((placed - low) / (high - low if high > low else 1.0), 0.0, 1.0)


def amounts(high: float, unit: str = "") -> Scale:
    """From nothing to a round number above the highest."""
    step = _round_step(high / 4 if high > 0 else 0.25)
    top = max(ceil(high / step - 1e-9), 1) * step
    count = round(top / step)
    return Scale(0.0, top, [(step * i, f"{_plain(step * i)}{unit}") for i in range(count + 1)])


def shares(high: float = 1.0) -> Scale:
    """Shares of 1 as percent: up to 100 %, or to what is needed where that is less than half."""
    scale = amounts(100.0 if high > 0.5 else max(high, 0.001) * 100, " %")
    return Scale(0.0, scale.high / 100, [(value / 100, text) for value, text in scale.ticks])


def clock(begin: float, end: float) -> Scale:
    """Virtual time, in the unit that suits its steps."""
    step = next((step for step in _TIME_STEPS if (end - begin) / step <= 8), None)
    if step is None:
        step = _round_step((end - begin) / DAY / 6) * DAY
    length, unit = next((size, unit) for size, unit in _UNITS if step % size == 0)
    first = ceil(begin / step)
    moments = (step * i for i in range(first, first + 10) if step * i <= end)
    return Scale(
        begin, end, [(moment, f"{_plain(moment / length)} {unit}" if moment else "0") for moment in moments]
    )


def clock_text(seconds: float) -> str:
    for length, unit in _UNITS[:3]:
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:,.0f} {unit}"
    return "0" if seconds == 0 else duration(seconds)


def waits(high: float) -> Scale:
    """Waiting times from 0 to the longest, by their logarithm."""
    ticks = [(wait, clock_text(wait)) for wait in _WAIT_TICKS if wait <= max(high, 1.0)]
    return Scale(0.0, max(high, 1.0), ticks, log=True)


def slowdowns(high: float) -> Scale:
    """Slowdowns from 1 to the largest, by their logarithm."""
    top = 10.0 ** max(ceil(log10(max(high, 1.0)) - 1e-9), 1)
    ticks = [(10.0**power, f"{10**power:,}") for power in range(round(log10(top)) + 1)]
    return Scale(1.0, top, ticks[:: max(1, len(ticks) // 7)], log=True)


def _round_step(step: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power: float = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= step * (1 - 1e-9))


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
