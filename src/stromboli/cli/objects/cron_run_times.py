"""When a CronJob runs next, and when it ran."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stromboli.api.go_scalars import timestamp
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.objects.common_columns import nested
from stromboli.embedded.tables.age_text import duration_text, instant

if TYPE_CHECKING:
    from stromboli.controllers.cronjob.schedule_times import ScheduleTimes

UPCOMING = 5
"""Times that a description lists."""


class RunTimes:
    """The times of CronJobs. Without a time zone they mean that of the controllers: ours if they run here, else UTC."""

    def __init__(self, controllers_are_here: bool) -> None:
        self._zone = "" if controllers_are_here else "UTC"

    def schedule(self, cron: Manifest) -> ScheduleTimes | str:
        """The times of a schedule, or why there are none."""
        from stromboli.api.cron_schedule import BadSchedule
        from stromboli.controllers.cronjob.schedule_times import BadZone, read_times

        spec: dict[str, Any] = cron.get("spec") or {}
        moments = (nested(cron, "status", "lastScheduleTime"), nested(cron, "metadata", "creationTimestamp"))
        since = next((moment for moment in map(instant, moments) if moment is not None), time.time())
        try:
            return read_times(str(spec.get("schedule") or ""), str(spec.get("timeZone") or self._zone), since)
        except (BadSchedule, BadZone) as error:
            return str(error)

    def next_run(self, cron: Manifest) -> str:
        """How long until the next run: `in 5m`; `-` while it is suspended, `never` if there are no more times."""
        if nested(cron, "spec", "suspend") is True:
            return "-"
        times = self.schedule(cron)
        if isinstance(times, str):
            return "bad schedule"
        now = time.time()
        due = times.next(now)
        return "never" if due is None else f"in {duration_text(due - now)}"

    def upcoming(self, cron: Manifest) -> list[str]:
        """The next runs in the time zone of the schedule, with how long until then; why there are none."""
        times = self.schedule(cron)
        if isinstance(times, str):
            return [times]
        now = moment = time.time()
        lines = []
        for _ in range(UPCOMING):
            due = times.next(moment)
            if due is None:
                break
            local = datetime.fromtimestamp(due, times.zone)
            lines.append(f"{local:%a %Y-%m-%d %H:%M:%S %Z}  in {duration_text(due - now)}")
            moment = due
        return lines or ["never: the schedule has no more times"]


def now_text() -> str:
    """This moment as annotations have it."""
    return timestamp(time.time())
