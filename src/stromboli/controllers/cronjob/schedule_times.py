"""When a schedule was last due and when it is due next, in its time zone (spec 06 9).

Moments are seconds since 1970, so that they can be compared across a change of clocks. What happens to times that a
change of clocks leaves out or repeats is said in `api/cron_schedule.py`.
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
    """A time zone that nobody knows."""


@dataclass(frozen=True, slots=True)
class Times:
    """The moments of a schedule after `since`, when it was last carried out or else made."""

    schedule: Schedule
    zone: tzinfo
    since: float

    def next(self, now: float) -> float | None:
        """The first moment after now."""
        if self.schedule.interval is not None:
            every = self.schedule.interval.total_seconds()
            return self._whole(self.since + (max(0, math.floor((now - self.since) / every)) + 1) * every)
        return self._after(max(now, self.since))

    def last(self, now: float) -> float | None:
        """The last moment up to now; None if there was none."""
        if self.schedule.interval is not None:
            passed = math.floor((now - self.since) / self.schedule.interval.total_seconds())
            return (
                self._whole(self.since + passed * self.schedule.interval.total_seconds())
                if passed > 0
                else None
            )
        begin, end = math.floor(self.since), math.floor(now)
        if not self._comes(begin, now):
            return None
        while end - begin > 1:  # a moment comes between begin and now, none between end and now
            middle = (begin + end) // 2
            begin, end = (middle, end) if self._comes(middle, now) else (begin, middle)
        return self._after(begin)

    def missed(self, now: float) -> int:
        """How many moments have passed, about: as if they came as evenly as the first two."""
        first = self.next(self.since)
        second = self.next(first) if first is not None else None
        if first is None or second is None or now < first:
            return 0
        return math.floor((now - first) / max(second - first, 1.0)) + 1

    def _comes(self, moment: float, now: float) -> bool:
        """Whether there is one after a moment and up to now."""
        found = self._after(moment)
        return found is not None and found <= now

    def _after(self, moment: float) -> float | None:
        try:
            found = self.schedule.after(datetime.fromtimestamp(moment, self.zone))
            return found.timestamp() if found is not None else None
        except (OverflowError, ValueError):  # past the end of all calendars
            return None

    @staticmethod
    def _whole(moment: float) -> float:
        return float(math.floor(moment))


def read_times(text: str, zone: str, since: float) -> Times:
    """`BadSchedule` or `BadZone` for what makes no sense. A zone within the schedule counts before any other."""
    prefix = next((one for one in PREFIXES if text.startswith(one)), None)
    if prefix is not None:
        zone, _, text = text.removeprefix(prefix).partition(" ")
    return Times(read_schedule(text.strip()), _zone(zone), since)


def _zone(name: str) -> tzinfo:
    if not name:
        return local_zone()
    found = read_zone(name)
    if found is None:
        raise BadZone(f"unknown time zone {name[:100]}")
    return found


def local_zone() -> tzinfo:
    """The zone of this process: that of $TZ, else the machine's, else UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name and LOCAL.is_symlink():
        name = str(LOCAL.readlink()).partition("zoneinfo/")[2]
    return read_zone(name) or UTC if name else UTC
