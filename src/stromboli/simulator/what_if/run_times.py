"""How long pods run: by what is said of them, as nobody can know it."""

from __future__ import annotations

import enum
from math import inf
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.model.job import Job
from stromboli.model.task import Task

FOREVER = "forever"


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
    """The run times of pods; of those without a limit the one that is assumed."""

    def __init__(self, assumed: float | None = None) -> None:
        self._unknown = UNKNOWN if assumed is None else RunTime(assumed, Basis.ASSUMED)

    def of(self, task: Task) -> RunTime:
        """How long a pod runs that starts now."""
        return _stated(task) or (self._unknown if task.job is not None else UNKNOWN)

    def end_of(self, task: Task, now: float) -> float:
        """When a pod ends that runs already. Of those over their limit nobody knows it, as of those without."""
        stated = _stated(task)
        started = now if task.started is None else task.started
        if stated is not None and started + stated.seconds > now:
            return started + stated.seconds
        return inf if task.job is None else now + self._unknown.seconds


def is_over_limit(task: Task, now: float) -> bool:
    """Whether a running pod has run longer than it may."""
    stated = _stated(task)
    return stated is not None and task.started is not None and task.started + stated.seconds <= now


def _stated(task: Task) -> RunTime | None:
    """What is said of it, if anything."""
    text = task.annotations.get(names.RUN_TIME, "")
    if text == FOREVER:
        return UNKNOWN
    seconds = duration(text.rpartition("..")[2])
    if seconds is not None and seconds >= 0:
        return RunTime(seconds, Basis.RUN_TIME)
    limit = time_limit(task.job) if task.job is not None else None
    return None if limit is None else RunTime(limit, Basis.TIME_LIMIT)


def time_limit(job: Job) -> float | None:
    for stated in (job.annotations, *(task.annotations for task in job.tasks.values())):
        if (seconds := duration(stated.get("stromboli.sh/time-limit", ""))) is not None:
            return seconds
    return None
