"""How fast the leader works: cycles, starts and evictions per minute, and what cycles take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.cli.dashboard.pages.leader.cycle_elements import last_moment, mean_seconds
from stromboli.scheduler.explain.cycle_documents import CycleEntry, CycleList

MINUTE = 60.0
RATE_MINUTES = 5
"""Over so many minutes before the last cycle, or since the leader began."""


class CycleRates(NamedTuple):
    """Of the last minutes."""

    cycles: float
    starts: float
    evictions: float
    """Each per minute."""
    median: float
    """Seconds of a cycle."""
    slowest: CycleEntry | None
    seconds: float
    """The time that the rates are of."""


def cycle_rates(told: CycleList) -> CycleRates:
    """By what the leader remembers; all zero before its first cycle."""
    if not told.cycles:
        return CycleRates(0.0, 0.0, 0.0, 0.0, None, 0.0)
    end = max(map(last_moment, told.cycles))
    begin = max(end - RATE_MINUTES * MINUTE, min(entry.time for entry in told.cycles))
    seconds = max(end - begin, 1.0)
    minutes = seconds / MINUTE
    recent = list(_parts_since(told.cycles, begin))
    entries = [entry for entry, _ in recent]
    return CycleRates(
        sum(cycles for _, cycles in recent) / minutes,
        sum(entry.bound for entry in entries) / minutes,
        sum(entry.evicted for entry in entries) / minutes,
        _median(recent),
        max(entries, key=mean_seconds),
        seconds,
    )


def _parts_since(entries: Sequence[CycleEntry], begin: float) -> Iterator[tuple[CycleEntry, float]]:
    """Entries that are not over before a moment, and how many of their cycles began after it."""
    for entry in entries:
        end = last_moment(entry)
        if end >= begin:
            length = end - entry.time
            share = min((end - begin) / length, 1.0) if length > 0 else 1.0
            yield entry, max(entry.cycles, 1) * share


def _median(recent: Sequence[tuple[CycleEntry, float]]) -> float:
    """Of what cycles took; all of a run took the same."""
    half = sum(cycles for _, cycles in recent) / 2
    passed = 0.0
    for entry, cycles in sorted(recent, key=lambda part: mean_seconds(part[0])):
        passed += cycles
        if passed >= half:
            return mean_seconds(entry)
    return 0.0
