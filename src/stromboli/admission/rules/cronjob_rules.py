"""CronJobs: a schedule that can be read, in a time zone that exists, under a name that leaves room for its jobs'."""

import re

from stromboli.admission.rules.field import Place
from stromboli.admission.rules.rule_context import Context
from stromboli.api.cron_schedule import BadSchedule, read_schedule, read_zone
from stromboli.api.name_rules import against_qualified

LONGEST_NAME = 52
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def check(cron: Place, context: Context) -> None:
    """Report what is wrong with a CronJob."""
    _check_schedule(cron["spec"]["schedule"])
    if cron["spec"]["timeZone"].given:
        _check_zone(cron["spec"]["timeZone"])
    _check_name(cron["metadata"]["name"])


def _check_schedule(place: Place) -> None:
    text = place.text()
    if not text:
        place.wrong("schedule is required, but got empty", '"0 2 * * *" is every day at two')
        return
    if "TZ" in text:
        place.wrong(
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
            "move the zone to spec.timeZone",
        )
        return
    try:
        read_schedule(text)
    except BadSchedule as error:
        place.wrong("schedule is not a valid cron expression", str(error))


def _check_zone(place: Place) -> None:
    zone = place.text()
    if not zone:
        place.wrong("timeZone must be nil or non-empty string, got empty string", "leave it out, or name one")
        return
    if any(not _is_zone_part(part) for part in zone.split("/")):
        place.wrong(" unknown timeZone", "use a name such as Europe/Rome")
    elif zone.lower() == "local":
        place.wrong(
            " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
            "use a name such as Europe/Rome",
        )
    elif read_zone(zone) is None:
        place.wrong(" invalid timeZone", "use a name such as Europe/Rome")


def _is_zone_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and bool(_ZONE_PART.fullmatch(part))


def _check_name(place: Place) -> None:
    name = place.text()
    if len(name) > LONGEST_NAME:
        place.wrong(
            f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix"
            " (max 63 total)",
            f"it has {len(name)}",
        )
    if reasons := against_qualified(name):
        place.wrong(f'invalid cronJob name "{name}": {"; ".join(reasons)}')
