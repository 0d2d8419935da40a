"""Cron schedules: five fields, `@daily` and the like, `@every 90m`; and the times that they mean.

The grammar is Volcano's: day of week 0-6, names, `?` for `*`, no seconds and none of the extensions (`L`, `#`) that
cronsim also knows. When clocks are put forward, a time that is left out runs at once; when they are put back, it runs
once (Debian's rule).
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from stromboli.api.go_scalars import duration

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELDS = (
    ("minute", 0, 59, ""),
    ("hour", 0, 23, ""),
    ("day", 1, 31, ""),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_DAY, _WEEKDAY = 2, 4
_MAX_LENGTH = 256


class BadSchedule(ValueError):
    """A text that is no schedule; says why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times at which a cron job is due."""

    _expression: str
    interval: timedelta | None
    """Of `@every`: the rest from one time to the next, whenever the first one was."""

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in its time zone; None if there is none in fifty years."""
        if self.interval is not None:
            return (moment + self.interval).replace(microsecond=0)
        try:
            return next(CronSim(self._expression, moment))
        except (StopIteration, OverflowError):
            return None


def read_schedule(text: str) -> Schedule:
    """Parse a schedule."""
    if len(text) > _MAX_LENGTH:
        raise BadSchedule(f"longer than {_MAX_LENGTH} characters")
    if text.startswith(_EVERY):
        return Schedule("", _interval(text.removeprefix(_EVERY)))
    fields = _DESCRIPTORS.get(text, text).upper().split()
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise BadSchedule(f"{text} is none of {', '.join(_DESCRIPTORS)} and {_EVERY}DURATION")
    if len(fields) != len(_FIELDS):
        raise BadSchedule(f"{len(fields)} fields, expected minute, hour, day, month and day of week")
    expression = " ".join(_field(field, position) for position, field in enumerate(fields))
    try:
        CronSim(expression, datetime(2000, 1, 1))
    except CronSimError as error:
        raise BadSchedule(str(error)) from None
    return Schedule(expression, None)


def read_zone(name: str) -> ZoneInfo | None:
    """The time zone of that name, or None."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _interval(text: str) -> timedelta:
    """Whole seconds, at least one."""
    seconds = duration(text.strip())
    if seconds is None:
        raise BadSchedule(f"{text!r} is no duration such as 90m")
    try:
        return timedelta(seconds=max(1, math.floor(seconds)))
    except OverflowError:
        raise BadSchedule(f"{text!r} is too long") from None


def _field(text: str, position: int) -> str:
    """A field as cronsim writes it."""
    name, first, last, alternatives = _FIELDS[position]
    value = rf"(?:[0-9]{{1,3}}{'|' + alternatives if alternatives else ''})"
    term = re.compile(rf"(\*|\?|{value}(?:-{value})?)(/[0-9]{{1,3}})?")
    terms = []
    for part in text.split(","):
        matched = term.fullmatch(part)
        if matched is None:
            raise BadSchedule(f"{part!r} is no {name}, which is {first} to {last}, a range, a list or *")
        if any(not first <= int(number) <= last for number in re.findall("[0-9]+", matched[1])):
            raise BadSchedule(f"{name} must be {first} to {last}, not {part}")
        span, step = matched[1].replace("?", "*"), matched[2] or ""
        if span == "*" and step not in ("", "/1") and position in (_DAY, _WEEKDAY):
            span = f"{first}-{last}"  # with a step it is a choice of days, no longer "any day"
        terms.append(span + step)
    return ",".join(terms)
