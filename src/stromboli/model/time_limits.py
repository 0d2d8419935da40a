"""Time limits of tasks, as users state them, by which a scheduler can expect when resources are released.

The limit is that of the annotation `stromboli.sh/time-limit` of the PodGroup, else that of the pod by the same
annotation or by `activeDeadlineSeconds`, else that of the annotation of the queue or the nearest queue above it. A node
always stops a pod at `activeDeadlineSeconds`, so the shorter limit counts. Invalid limits are ignored.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.go_scalars import MAX_DURATION, duration
from stromboli.model.queue import lineage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.model.cluster import Cluster, Dirty
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

MAX_TEXT_LENGTH = 63
"""Maximum characters of an annotation that is read as a time limit."""
EXAMPLE = "a duration such as 1h30m, or seconds such as 5400, above zero"
"""Valid values of the annotation, for messages."""


def usable_limit(seconds: float | None) -> float | None:
    """A limit in seconds; none if it is not above zero, or longer than any duration in Go."""
    return float(seconds) if seconds is not None and 0 < seconds <= MAX_DURATION else None


def limit_in(text: str) -> float | None:
    """The seconds of a time limit, `1h30m` or `5400`; none if it is invalid."""
    return _limit_in(text) if len(text) <= MAX_TEXT_LENGTH else None


@lru_cache(maxsize=1024)
def _limit_in(text: str) -> float | None:
    return usable_limit(duration(f"{text}s" if text.isascii() and text.isdigit() else text))


def annotated_limit(annotations: Mapping[str, str]) -> float | None:
    """The time limit of annotations, in seconds; none without a valid one."""
    text = annotations.get(names.TIME_LIMIT)
    return None if text is None else limit_in(text)


def unreadable_limit(annotations: Mapping[str, str]) -> str | None:
    """The text of an invalid time limit; none if it is valid or missing."""
    text = annotations.get(names.TIME_LIMIT)
    return text if text is not None and limit_in(text) is None else None


def queue_limit(queue: Queue | None, queues: dict[str, Queue]) -> float | None:
    """The time limit of jobs without their own, by their queue or the nearest above it."""
    for member in lineage(queue, queues) if queue is not None else ():
        limit = annotated_limit(member.annotations)
        if limit is not None:
            return limit
    return None


class QueueLimits:
    """The time limits of jobs without their own, by queue, kept up to date."""

    def __init__(self) -> None:
        self._stated: dict[str, tuple[str, float | None]] = {}
        self._known: dict[Queue, float | None] = {}
        self._queues: dict[str, Queue] = {}

    def update(self, cluster: Cluster, dirty: Dirty) -> bool:
        """Follow changes since the last session; true if the limit of a job may have changed."""
        self._queues = cluster.queues
        changed = False
        for queue in cluster.queues.values() if dirty.everything else dirty.queues:
            stated = (queue.parent, annotated_limit(queue.annotations))
            changed |= self._stated.get(queue.name) != stated
            self._stated[queue.name] = stated
        if changed:
            self._known.clear()
        return changed

    def of(self, queue: Queue | None) -> float | None:
        """The limit of a queue, or of the nearest above it that has one."""
        if queue is None:
            return None
        if queue not in self._known:
            self._known[queue] = queue_limit(queue, self._queues)
        return self._known[queue]


def time_limit(task: Task, default: float | None) -> float | None:
    """Seconds that a task runs at most; the default is that of its queue. None: there is no limit."""
    job = task.job
    stated = task.time_limit if job is None or job.time_limit is None else job.time_limit
    if task.deadline is not None:
        return task.deadline if stated is None else min(stated, task.deadline)
    return default if stated is None else stated


def job_time_limit(job: Job, queues: dict[str, Queue]) -> float | None:
    """Seconds that a job runs at most, all of its tasks; none if one of them has no limit, or there are no tasks."""
    return longest_limit(job, queue_limit(job.queue, queues))


def longest_limit(job: Job, default: float | None) -> float | None:
    """The same for a job whose queue has this default."""
    limits = [time_limit(task, default) for task in job.tasks.values()]
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None
