"""How long pods run: by what is said of them, as nobody can know it."""

from __future__ import annotations

import enum
from math import inf
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.durations import longest
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.model.time_limits import queue_limit, time_limit


class Basis(enum.StrEnum):
    """What a run time rests on."""

    RUN_TIME = "run-time"
    """The annotation `stromboli.sh/run-time`, which is the truth on simulated nodes."""
    TIME_LIMIT = "time-limit"
    """Its limit: the longest it may run."""
    ASSUMED = "assumed"
    """What the user assumes of jobs without a limit."""
    UNKNOWN = "unknown"
    """Nothing: it runs for ever."""


class RunTime(NamedTuple):
    """Seconds from the start of a pod to its end, and what they rest on."""

    seconds: float
    basis: Basis


UNKNOWN = RunTime(inf, Basis.UNKNOWN)


class RunTimes:
    """The run times of the pods of a cluster; of jobs without a limit the one that is assumed."""

    def __init__(self, queues: dict[str, Queue], assumed: float | None = None) -> None:
        self._queues = queues
        self._unknown = UNKNOWN if assumed is None else RunTime(assumed, Basis.ASSUMED)
        self._stated: dict[tuple[object, ...], tuple[dict[str, str], RunTime | None]] = {}
        """By all that it follows from; the annotations, which equal pods share, live as long as the entry."""

    def of(self, task: Task) -> RunTime:
        """How long a pod runs that starts now."""
        return self.stated(task) or (self._unknown if task.job is not None else UNKNOWN)

    def end_of(self, task: Task, now: float) -> float:
        """When a pod ends that runs already. Of those over their limit nobody knows it, as of those without."""
        stated = self.stated(task)
        started = now if task.started is None else task.started
        if stated is not None and started + stated.seconds > now:
            return started + stated.seconds
        return inf if task.job is None else now + self._unknown.seconds

    def is_over_limit(self, task: Task, now: float) -> bool:
        """Whether a running pod has run longer than is said of it."""
        stated = self.stated(task)
        return stated is not None and task.started is not None and task.started + stated.seconds <= now

    def stated(self, task: Task) -> RunTime | None:
        """What is said of a pod, by itself, its job or its queue; None if nothing is."""
        job, annotations = task.job, task.annotations
        of_job = (job.queue, job.time_limit) if job is not None else None
        key = (id(annotations), of_job, task.time_limit, task.deadline)
        known = self._stated.get(key)
        if known is None:
            known = self._stated[key] = (annotations, self._read(task))
        return known[1]

    def _read(self, task: Task) -> RunTime | None:
        run_time = longest(task.annotations.get(names.RUN_TIME, ""))
        if run_time is not None:
            ended = inf if task.deadline is None else task.deadline
            return RunTime(min(run_time, ended), Basis.RUN_TIME) if min(run_time, ended) < inf else UNKNOWN
        default = queue_limit(task.job.queue, self._queues) if task.job is not None else None
        limit = time_limit(task, default)
        return None if limit is None else RunTime(limit, Basis.TIME_LIMIT)
