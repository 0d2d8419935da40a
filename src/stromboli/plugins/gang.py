"""Gang scheduling: a job starts when its minimum can (spec 03 1)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api import names
from stromboli.engine.explanation.diagnosis import missing_pods_remedy, waits
from stromboli.engine.outcome import releasing_with_node, reportable, scheduled_count
from stromboli.engine.plugin import Bound, Eviction, Invalid, Plugin
from stromboli.engine.points import Vote, in_turn
from stromboli.engine.session import Session
from stromboli.model.job import Job, SubJob
from stromboli.model.status import Status
from stromboli.model.task import Task

_MORE_PODS = "create the missing pods or lower spec.minTaskMember"
_MORE_SUB_GROUPS = "create the missing pods or lower minSubGroups of spec.subGroupPolicy"


class Gang(Plugin):
    """Holds a job back until minMember, its role minimums and its sub-group minimums are met."""

    name = "gang"
    counts_gangs = True

    def job_valid(self, job: Job) -> Invalid | None:
        if not job.roles_valid:
            return Invalid(names.NOT_ENOUGH_PODS_OF_TASK, names.TOO_FEW_PODS_OF_TASK, _MORE_PODS)
        if not job.sub_groups_valid:
            return Invalid(names.NOT_ENOUGH_PODS_OF_TASK, names.TOO_FEW_SUB_GROUPS, _MORE_SUB_GROUPS)
        if job.valid_count < job.minimum:
            text = names.TOO_FEW_TASKS.format(valid=job.valid_count, minimum=job.minimum)
            summary = names.TOO_FEW_TASKS_SUMMARY.format(minimum=job.minimum)
            remedy = missing_pods_remedy(job, job.minimum - job.valid_count)
            return Invalid(names.NOT_ENOUGH_TASKS, text, remedy, summary, names.TOO_FEW_TASKS_TITLE)
        return None

    def job_order(self, job: Job) -> int:
        return -1 if self.session.needs.runs_short(job) else job.enough_ready

    def sub_job_order(self, sub_job: SubJob) -> bool:
        return sub_job.enough_ready

    def job_ready(self, job: Job) -> bool:
        return job.enough_ready and job.roles_ready and job.sub_groups_ready

    def job_pipelined(self, job: Job) -> Vote:
        enough = job.enough_pipelined and job.roles_pipelined and job.sub_groups_pipelined
        return Vote.PERMIT if enough else Vote.REJECT

    def tasks_needed(self, unit: Job | SubJob) -> int:
        return unit.minimum - unit.ready_count - unit.waiting_count - unit.pending_best_effort

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        return sub_job.enough_ready

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        return Vote.PERMIT if sub_job.enough_pipelined else Vote.REJECT

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        job = candidates[0].job
        if job is not None and job.minimum <= 1:
            return "its job would have no running pod left"
        return "its gang would fall below its minimum"

    def job_starving(self, job: Job) -> bool:
        return job.starving

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        """The surplus of gangs; native groups limit preemption themselves."""
        return _surplus(candidates, native_too=True)

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return _surplus(candidates)

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        if point == "unified_evictable":
            return None
        return _OF_PREEMPTION if point == "preemptable" else _OF_OTHERS

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        return candidates

    def closing(self, session: Session) -> None:
        guard = session.reporting()
        for job in reportable(session):
            if job.tasks or waits(job):
                with guard:
                    _set_condition(session, job)


_OF_OTHERS = Bound(None, lambda job: job.ready_count > job.minimum, lambda queue: None)
_OF_PREEMPTION = Bound(
    None, lambda job: job.ready_count > job.minimum or job.native is not None, lambda queue: None
)


def _surplus(candidates: list[Task], native_too: bool = False) -> list[Task]:
    """Tasks above the minimum of their jobs, in order; of a group that is disrupted as a whole there are none."""
    left: dict[Job, int] = {}
    surplus = []
    for task in candidates:
        if native_too and task.job is not None and task.job.native is not None:
            surplus.append(task)
        elif task.job is not None and not task.job.disrupted_as_group:
            have = left.setdefault(task.job, task.job.ready_count)
            if have > task.job.minimum:
                left[task.job] = have - 1
                surplus.append(task)
    return surplus


def _set_condition(session: Session, job: Job) -> None:
    if job.enough_ready:
        session.set_condition(job, names.CONDITION_SCHEDULED, names.TASKS_READY)
    elif not _is_leaving(job):
        session.set_condition(job, names.CONDITION_UNSCHEDULABLE, names.NOT_ENOUGH_RESOURCES)


def _is_leaving(job: Job) -> bool:
    """Whether a gang is terminating and has no pending tasks; then it is not called unschedulable."""
    leaving = releasing_with_node(job)
    waiting = job.counts[Status.PENDING] + job.counts[Status.PIPELINED]
    return leaving > 0 and not waiting and scheduled_count(job) + leaving >= job.minimum
