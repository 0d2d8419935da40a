"""When a schedule was last due and when it is due next, in its time zone (spec 06 9).

Times are seconds since 1970, so that they compare across daylight saving changes; `api/cron_schedule.py` says what
happens to local times that such a change skips or repeats.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from stromboli.api.cron_schedule import Schedule, read_schedule, read_zone

LOCAL = Path("/etc/localtime")
PREFIXES = ("TZ=", "CRON_TZ=")


class BadZone(ValueError):
    """An unknown time zone."""


@dataclass(frozen=True, slots=True)
class ScheduleTimes:
    """The times of a schedule after `since`: its last scheduled time, or when it was created."""

    schedule: Schedule
    zone: tzinfo
    since: float

    def next(self, now: float) -> float | None:
        """The first time after now."""
        if self.schedule.interval is not None:
            every = self.schedule.interval.total_seconds()
            return float(
                math.floor(self.since + (max(0, math.floor((now - self.since) / every)) + 1) * every)
            )
        return self._after(max(now, self.since))

    def last(self, now: float) -> float | None:
        """The last time up to now; None if there was none."""
        if self.schedule.interval is not None:
            every = self.schedule.interval.total_seconds()
            passed = math.floor((now - self.since) / every)
            return float(math.floor(self.since + passed * every)) if passed > 0 else None
        begin, end = math.floor(self.since), math.floor(now)
        if not self._has_time(begin, now):
            return None
        while end - begin > 1:  # a time lies between begin and now, none between end and now
            middle = (begin + end) // 2
            begin, end = (middle, end) if self._has_time(middle, now) else (begin, middle)
        return self._after(begin)

    def missed(self, now: float) -> int:
        """About how many times have passed, at the interval of the first two."""
        first = self.next(self.since)
        second = self.next(first) if first is not None else None
        if first is None or second is None or now < first:
            return 0
        return math.floor((now - first) / max(second - first, 1.0)) + 1

    def _has_time(self, moment: float, now: float) -> bool:
        """Whether a time lies after a moment and up to now."""
        following = self._after(moment)
        return following is not None and following <= now

    def _after(self, moment: float) -> float | None:
        try:
            following = self.schedule.after(datetime.fromtimestamp(moment, self.zone))
            return following.timestamp() if following is not None else None
        except (OverflowError, ValueError):  # past the last year that datetime has
            return None


def read_times(text: str, zone: str, since: float) -> ScheduleTimes:
    """`BadSchedule` or `BadZone` if it cannot be parsed. A zone in the schedule wins over `zone`."""
    prefix = next((prefix for prefix in PREFIXES if text.startswith(prefix)), None)
    if prefix is not None:
        zone, _, text = text.removeprefix(prefix).partition(" ")
    return ScheduleTimes(read_schedule(text.strip()), _zone(zone), since)


def _zone(name: str) -> tzinfo:
    if not name:
        return local_zone()
    zone = read_zone(name)
    if zone is None:
        raise BadZone(f"unknown time zone {name[:100]}")
    return zone


def local_zone() -> tzinfo:
    """The zone of this process: that of $TZ, else the machine's, else UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name and LOCAL.is_symlink():
        name = str(LOCAL.readlink()).partition("zoneinfo/")[2]
    return read_zone(name) or UTC if name else UTC
