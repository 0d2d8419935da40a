"""CronJobs."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.batch.cronjob_spec_rules import cronjob_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import IN_ALL, STATUS, Content, builtin
from stromboli.embedded.kinds.pod_owners import ControllerStrategy, image_cells
from stromboli.embedded.tables.age_text import age, ago
from stromboli.embedded.tables.table_printer import NONE, Cells, name_of, nested_map, printer, selector_text


def _row(cron_job: Content, now: float) -> Cells:
    spec, status = nested_map(cron_job, "spec"), nested_map(cron_job, "status")
    last = status.get("lastScheduleTime")
    return [
        name_of(cron_job),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        ago(last, now) if last else NONE,
        age(cron_job, now),
        *image_cells(cron_job, "spec", "jobTemplate", "spec"),
        selector_text(nested_map(spec, "jobTemplate", "spec").get("selector")),
    ]


class CronJobStrategy(ControllerStrategy):
    kind_name = "CronJob"
    template = ("spec", "jobTemplate", "spec", "template", "spec")
    restart_policies = ("OnFailure", "Never")
    printer = printer(
        "Name | Schedule | Timezone | Suspend | Active# | Last Schedule | Age | Containers+ | Images+ | Selector+",
        _row,
    )

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        """What is wrong with a CronJob that is new or whose spec has changed; its status says nothing of that."""
        return () if old is not None and old["spec"] == content["spec"] else cronjob_problems(content, old)


KIND = builtin("batch", "cronjobs", "CronJob", "cj", STATUS, strategy=CronJobStrategy(), **IN_ALL)
