"""What an answer rests on: how much is known of when those end who run now."""

from __future__ import annotations

from msgspec import Struct

from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.what_if.future_world import HOLDING
from stromboli.simulator.what_if.run_times import Basis, RunTimes, is_over_limit


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
    assumed: float | None = None
    """Seconds that jobs without a limit run, as the user assumes; None: for ever."""


def assumptions(cluster: Cluster, now: float, assumed: float | None) -> Assumptions:
    """Look at all jobs before virtual time begins."""
    result = Assumptions(assumed=assumed)
    tasks = cluster.tasks.values()
    result.other_pods = sum(task.job is None and task.status in HOLDING for task in tasks)
    for job in cluster.jobs.values():
        running = [task for status in HOLDING for task in job.by_status[status]]
        if running:
            _count_running(result, job, running, now)
        elif (waiting := job.by_status[Status.PENDING]) and _is_unlimited(next(iter(waiting))):
            result.waiting_unlimited.append(job.key)
    return result


def _count_running(result: Assumptions, job: Job, running: list[Task], now: float) -> None:
    result.unknown_start += any(task.started is None for task in running)
    if any(is_over_limit(task, now) for task in running):
        result.over_limit.append(job.key)
    elif any(map(_is_unlimited, running)):
        result.unlimited.append(job.key)
    elif RunTimes().of(running[0]).basis is Basis.RUN_TIME:
        result.known += 1
    else:
        result.limited += 1


def _is_unlimited(task: Task) -> bool:
    return RunTimes().of(task).basis is Basis.UNKNOWN
