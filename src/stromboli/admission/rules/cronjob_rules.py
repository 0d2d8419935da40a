"""CronJobs: a valid schedule, an existing time zone, and a name short enough for the names of its jobs."""

import re

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.job_size_rules import check_job
from stromboli.admission.rules.rule_context import Context
from stromboli.api.cron_schedule import BadSchedule, read_schedule, read_zone
from stromboli.api.name_rules import qualified_name_errors

MAX_NAME_LENGTH = 52
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def check(cron: Field, context: Context) -> None:
    """Report what is wrong with a CronJob."""
    _check_schedule(cron["spec"]["schedule"])
    if cron["spec"]["timeZone"].given:
        _check_zone(cron["spec"]["timeZone"])
    _check_name(cron["metadata"]["name"])
    check_job(cron["spec"]["jobTemplate"]["spec"])


def _check_schedule(field: Field) -> None:
    text = field.text()
    if not text:
        field.wrong("schedule is required, but got empty", '"0 2 * * *" is every day at two')
        return
    if "TZ" in text:
        field.wrong(
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
            "move the zone to spec.timeZone",
        )
        return
    try:
        read_schedule(text)
    except BadSchedule as error:
        field.wrong("schedule is not a valid cron expression", str(error))


def _check_zone(field: Field) -> None:
    zone = field.text()
    if not zone:
        field.wrong("timeZone must be nil or non-empty string, got empty string", "leave it out, or name one")
        return
    if any(not _is_zone_part(part) for part in zone.split("/")):
        field.wrong(" unknown timeZone", "use a name such as Europe/Rome")
    elif zone.lower() == "local":
        field.wrong(
            " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
            "use a name such as Europe/Rome",
        )
    elif read_zone(zone) is None:
        field.wrong(" invalid timeZone", "use a name such as Europe/Rome")


def _is_zone_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and bool(_ZONE_PART.fullmatch(part))


def _check_name(field: Field) -> None:
    name = field.text()
    if len(name) > MAX_NAME_LENGTH:
        field.wrong(
            f"cronJob name must be no more than {MAX_NAME_LENGTH} characters to accommodate job name suffix"
            " (max 63 total)",
            f"it has {len(name)}",
        )
    if errors := qualified_name_errors(name):
        field.wrong(f'invalid cronJob name "{name}": {"; ".join(errors)}')
