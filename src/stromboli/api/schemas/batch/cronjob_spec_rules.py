"""The spec of a CronJob of `batch/v1`: its schedule, its time zone, and the template of its jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stromboli.api.cron_schedule import BadSchedule, read_schedule, read_zone
from stromboli.api.schemas.batch.job_spec_rules import job_spec_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, unsupported

Content = dict[str, Any]
_NAME_LENGTH = 52
"""A job has 11 characters more in its name."""
_is_zone_part = re.compile(r"(?![-])[A-Za-z.\-_0-9+]{1,14}").fullmatch


def cronjob_problems(cron: Content, old: Content | None) -> Iterator[Problem]:
    """What is wrong with a CronJob; a schedule with a time zone in it may stay where it is."""
    spec, before, name = cron["spec"], (old or {}).get("spec") or {}, cron["metadata"].get("name", "")
    if old is None and len(name) > _NAME_LENGTH:
        yield invalid("metadata.name", name, f"must be no more than {_NAME_LENGTH} characters")
    yield from _schedule_problems(spec, "TZ" in before.get("schedule", ""))
    if old is None or before.get("timeZone") != spec.get("timeZone"):
        yield from _zone_problems(spec.get("timeZone"))
    template = spec["jobTemplate"].get("spec") or {}
    if "template" not in template:
        return
    path = "spec.jobTemplate.spec"
    yield from job_spec_problems(template, path)
    if "selector" in template:
        yield invalid(f"{path}.selector", template["selector"], "`selector` will be auto-generated")
    if template.get("manualSelector"):
        yield unsupported(f"{path}.manualSelector", True, ("nil", "false"))


def _schedule_problems(spec: Content, had_zone: bool) -> Iterator[Problem]:
    schedule = spec.get("schedule", "")
    zone, _, rest = schedule.partition(" ")
    try:
        if schedule:
            read_schedule(rest.strip() if zone.startswith(("TZ=", "CRON_TZ=")) else schedule)
    except BadSchedule as error:
        yield invalid("spec.schedule", schedule, str(error))
    if "TZ" in schedule and had_zone and "timeZone" in spec:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield invalid("spec.schedule", schedule, detail)
    elif "TZ" in schedule and not had_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, detail)


def _zone_problems(zone: str | None) -> Iterator[Problem]:
    if zone is None:
        return
    if not zone:
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid("spec.timeZone", zone, detail)
    elif not all(_is_zone_part(part) and part not in (".", "..") for part in zone.split("/")) or not (
        read_zone(zone)
    ):
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone[:100]}")
