"""Measures as people read them: a title, a unit, and whether more of it is better."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
NONE = "-"
BYTES = ("memory", "ephemeral-storage")


class Unit(enum.Enum):
    COUNT = enum.auto()
    SHARE = enum.auto()
    SECONDS = enum.auto()
    FACTOR = enum.auto()


class Measure(NamedTuple):
    """A measure of a run, by its key in the summary."""

    key: str
    title: str
    unit: Unit
    better: int = 0
    """1: more is better; -1: less is; 0: neither."""
    main: bool = False
    """Whether it is among those that are always shown."""


MEASURES = (
    Measure("gpu_allocation", "GPU allocation", Unit.SHARE, 1, main=True),
    Measure("fragmentation", "Fragmentation", Unit.SHARE, -1, main=True),
    Measure("jobs", "Jobs", Unit.COUNT, main=True),
    Measure("finished", "Finished", Unit.COUNT, 1),
    Measure("running", "Still running", Unit.COUNT),
    Measure("waiting", "Still waiting", Unit.COUNT, -1),
    Measure("dropped", "Dropped, as they fitted nowhere", Unit.COUNT, -1),
    Measure("not_submitted", "Not submitted yet", Unit.COUNT, -1),
    Measure("makespan_s", "Makespan", Unit.SECONDS, -1, main=True),
    Measure("throughput_per_hour", "Jobs finished per hour", Unit.FACTOR, 1),
    Measure("utilisation", "Utilisation", Unit.SHARE, 1, main=True),
    Measure("useful_utilisation", "Utilisation less what was lost", Unit.SHARE, 1),
    Measure("mean_wait_s", "Mean wait", Unit.SECONDS, -1, main=True),
    Measure("median_wait_s", "Median wait", Unit.SECONDS, -1, main=True),
    Measure("p95_wait_s", "95 % wait at most", Unit.SECONDS, -1, main=True),
    Measure("p99_wait_s", "99 % wait at most", Unit.SECONDS, -1),
    Measure("max_wait_s", "Longest wait", Unit.SECONDS, -1, main=True),
    Measure("longest_still_waiting_s", "Longest of those that still wait", Unit.SECONDS, -1),
    Measure("mean_first_wait_s", "Mean wait until the first start", Unit.SECONDS, -1),
    Measure("mean_response_s", "Mean response", Unit.SECONDS, -1),
    Measure("mean_bounded_slowdown", "Mean bounded slowdown", Unit.FACTOR, -1, main=True),
    Measure("median_bounded_slowdown", "Median bounded slowdown", Unit.FACTOR, -1),
    Measure("p95_bounded_slowdown", "95 % bounded slowdown at most", Unit.FACTOR, -1),
    Measure("p99_bounded_slowdown", "99 % bounded slowdown at most", Unit.FACTOR, -1),
    Measure("max_bounded_slowdown", "Largest bounded slowdown", Unit.FACTOR, -1),
    Measure("mean_slowdown", "Mean slowdown", Unit.FACTOR, -1),
    Measure("evictions", "Evictions", Unit.COUNT, -1, main=True),
    Measure("evicted_jobs", "Jobs evicted", Unit.COUNT, -1),
    Measure("lost_work_s", "Work lost, pod-time", Unit.SECONDS, -1, main=True),
    Measure("cycles", "Cycles", Unit.COUNT),
)


def value_text(value: Any, unit: Unit) -> str:
    """A value with its unit, to three or four digits."""
    if value is None:
        return NONE
    if unit is Unit.SHARE:
        return f"{100 * value:.1f} %"
    if unit is Unit.SECONDS:
        return duration(value)
    if unit is Unit.COUNT:
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return factor(value)


def spread_text(mean: float, deviation: float, unit: Unit) -> str:
    """A mean and its standard deviation in the unit of the mean: 2.9 ± 1.7 h."""
    if unit is Unit.SHARE:
        return f"{100 * mean:.1f} ± {100 * deviation:.1f} %"
    if unit is Unit.SECONDS:
        length, name = _time_unit(mean)
        return f"{_digits(mean / length)} ± {_digits(deviation / length)} {name}"
    return f"{value_text(mean, unit)} ± {value_text(deviation, unit)}"


def amount_text(resource: str, amount: float) -> str:
    """What a cluster has of a resource: 256 cpu, 1.5 TiB memory."""
    unit = ""
    if resource in BYTES:
        for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
            if amount < 1024:
                break
            amount, unit = amount / 1024, f" {larger}"
    return f"{_digits(amount)}{unit} {resource}"


def factor(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) >= 100 else f"{value:.2f}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits: 45.2 s, 34.5 min, 5.2 h, 12.3 d."""
    length, unit = _time_unit(seconds)
    return f"{_digits(seconds / length)} {unit}"


def _time_unit(seconds: float) -> tuple[float, str]:
    size = abs(seconds)
    for limit, length, unit in ((2 * MINUTE, 1.0, "s"), (2 * HOUR, MINUTE, "min"), (2 * DAY, HOUR, "h")):
        if size < limit:
            return length, unit
    return DAY, "d"


def _digits(number: float) -> str:
    if number == 0 or float(number).is_integer():
        return f"{number:,.0f}"
    return f"{number:.2g}" if abs(number) < 1 else f"{number:,.1f}"
