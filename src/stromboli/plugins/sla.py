"""Jobs that wait longer than their SLA come first (spec 03 12)."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from stromboli.api.go_scalars import duration
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.model.job import Job
from stromboli.model.requirements.placement_requirement import WAITING_TIME
from stromboli.model.task import Task
from stromboli.policy.argument_checks import duration_like
from stromboli.policy.arguments import arg

NEVER = sys.float_info.max
"""The deadline of a job without a waiting time: later than any other, and finite as every key of an order."""


@dataclass(frozen=True, slots=True)
class SlaArguments:
    """The waiting time of jobs without their own."""

    waiting_time: str = arg(
        "sla-waiting-time",
        "",
        "Maximum waiting time of jobs without the annotation, such as 1h30m.",
        check=duration_like("1h30m", above_zero=True),
    )


class Sla(Plugin):
    """Orders jobs by deadline and admits those that are past it."""

    # quirk: spec 03 12: it cannot overrule a plugin of the same or an earlier tier that objects.

    name = "sla"
    honours = frozenset({WAITING_TIME.name})
    Arguments = SlaArguments
    arguments: SlaArguments

    def __init__(self, arguments: SlaArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._default = duration(arguments.waiting_time)

    def job_order(self, job: Job) -> float:
        return self._deadline(job)

    def job_enqueueable(self, job: Job) -> Vote:
        return self._vote(job)

    def job_pipelined(self, job: Job) -> Vote:
        return self._vote(job)

    def backfill_victim(self, beneficiary: Task, victim: Task) -> bool:
        """Tasks of a job past its deadline are no victims."""
        return victim.job is None or not self.session.has_come(self._deadline(victim.job))

    def _vote(self, job: Job) -> Vote:
        return Vote.PERMIT if self.session.has_come(self._deadline(job)) else Vote.ABSTAIN

    def _deadline(self, job: Job) -> float:
        """When a job's waiting time ends; `NEVER` where there is none."""
        waiting = self._default if job.waiting_time is None else job.waiting_time
        return NEVER if waiting is None else job.created + waiting
