"""Higher priority first (spec 03 2)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.engine.plugin import Bound, Eviction, Plugin
from stromboli.engine.points import in_turn
from stromboli.model.job import Job, SubJob
from stromboli.model.task import Task


class Priority(Plugin):
    """Orders jobs and tasks by priority; only lower priorities are evicted for higher ones."""

    name = "priority"
    orders_jobs_by_priority = True

    def task_order(self, task: Task) -> int:
        return -task.priority

    def job_order(self, job: Job) -> int:
        return -job.priority

    def sub_job_order(self, sub_job: SubJob) -> int:
        return -sub_job.priority

    def job_starving(self, job: Job) -> bool:
        return job.ready_count + job.waiting_count < len(job.tasks)

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        if task.job is None:
            return []
        return [candidate for candidate in candidates if task.outranks(candidate)]

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        job, holder = task.job, candidates[0].job
        if job is None or holder is None:
            return ""
        return f"its priority {holder.priority} is not lower than {job.priority}"

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        job = task.job
        if job is None or point != "preemptable":
            return None
        return Bound(
            (job.priority, task.priority),
            lambda other: other is job or other.priority < job.priority,
            lambda queue: None,
        )

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        if eviction.kind == "reclaim":
            return candidates
        most = eviction.job.priority - (eviction.kind == "preempt")  # moved tasks may have the same priority
        return [task for task in candidates if task.job is not None and task.job.priority <= most]
