"""What an answer rests on: how much is known of when those end who run now."""

from __future__ import annotations

from msgspec import Struct

from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.what_if.future_world import HOLDING
from stromboli.simulator.what_if.run_times import Basis, RunTimes


class Assumptions(Struct):
    """Jobs of the present, by what is known of their ends."""

    limited: int = 0
    """Running jobs that end at their time limit."""
    known: int = 0
    """Running jobs whose run time is stated (`stromboli.sh/run-time`)."""
    unlimited: list[str] = []
    """Running jobs without a limit."""
    over_limit: list[str] = []
    """Running jobs that have run longer than they may."""
    waiting_unlimited: list[str] = []
    """Waiting jobs without a limit, those submitted included."""
    unknown_start: int = 0
    """Running jobs that do not say since when; they count as started now."""
    other_pods: int = 0
    """Pods on nodes that belong to no job: of other schedulers, and of DaemonSets. They stay."""
    leaving: int = 0
    """Pods that are being deleted; they are taken to be gone after Kubernetes' grace period."""
    assumed: float | None = None
    """Seconds that jobs without a limit run, as the user assumes; None: for ever."""

    @property
    def lacks_limits(self) -> bool:
        """Whether there are jobs of whose end nothing is known, so that what comes after them is not known either."""
        return self.assumed is None and bool(self.unlimited or self.over_limit or self.waiting_unlimited)


def assumptions(cluster: Cluster, now: float, assumed: float | None) -> Assumptions:
    """Look at all jobs before virtual time begins."""
    result, run_times = Assumptions(assumed=assumed), RunTimes(cluster.queues)
    tasks = cluster.tasks.values()
    result.other_pods = sum(task.job is None and task.status in HOLDING for task in tasks)
    result.leaving = sum(task.status is Status.RELEASING for task in tasks)
    for job in cluster.jobs.values():
        running = [task for status in HOLDING for task in job.by_status[status]]
        if running:
            _count_running(result, job, running, run_times, now)
        elif any(run_times.of(task).basis is Basis.UNKNOWN for task in job.by_status[Status.PENDING]):
            result.waiting_unlimited.append(job.key)
    return result


def _count_running(
    result: Assumptions, job: Job, running: list[Task], run_times: RunTimes, now: float
) -> None:
    bases = {run_times.of(task).basis for task in running}
    result.unknown_start += any(task.started is None for task in running)
    if any(run_times.is_over_limit(task, now) for task in running):
        result.over_limit.append(job.key)
    elif Basis.UNKNOWN in bases:
        result.unlimited.append(job.key)
    elif Basis.TIME_LIMIT in bases:
        result.limited += 1
    else:
        result.known += 1
