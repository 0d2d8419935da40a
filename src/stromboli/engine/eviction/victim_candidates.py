"""Which tasks an action considers as victims, in which order they leave, and what they could free on each node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


@dataclass(frozen=True, slots=True)
class VictimCandidates:
    """The tasks that an action considers as victims for a given task, before plugins vote on them."""

    point: str
    """Where plugins vote on them: `preemptable` or `reclaimable`."""
    statuses: tuple[Status, ...]
    may_take_from: Callable[[Task, Job], bool]
    accepts: Callable[[Task, Task], bool] = field(default=lambda task, victim: True)
    required: bool = False
    """Whether nodes without any candidate are passed over even if the task fits there."""
    key: Callable[[Task], Hashable] = field(default=lambda task: None)
    """All that the answer reads of a task, besides its queue and whether it is best-effort."""

    def has_any(self, job: Job) -> bool:
        """Whether any task of a job could be a candidate by its status."""
        return any(job.counts[status] for status in self.statuses)

    def on_node(self, task: Task, node: Node) -> list[Task]:
        return [
            victim for victim in node.tasks if victim.status in self.statuses and self.includes(task, victim)
        ]

    def includes(self, task: Task, victim: Task) -> bool:
        """Whether a task that holds room is a candidate, whatever its status."""
        return (
            victim.preemptable
            and victim.job is not None
            and victim.job.visible
            and self.may_take_from(task, victim.job)
            and self.accepts(task, victim)
        )


class JobRanks:
    """The sort keys of jobs, each made again once the job has changed."""

    def __init__(self, session: Session):
        self._session = session
        self._ranks: dict[Job, tuple[Any, ...]] = {}
        self._seen = 0

    def current(self) -> Callable[[Task], tuple[Any, ...]]:
        """The sort key of a victim's job, as long as nothing moves."""
        touched = self._session.cluster.touched
        if self._session.rules.job_order_follows_all:
            self._ranks.clear()
        for job in touched[self._seen :]:
            self._ranks.pop(job, None)
        self._seen = len(touched)
        return self._of

    def _of(self, victim: Task) -> tuple[Any, ...]:
        job = victim.job
        if job is None:
            return ()
        rank = self._ranks.get(job)
        if rank is None:
            rank = self._ranks[job] = self._session.rules.job_order(job)
        return rank


def in_victim_order(
    session: Session, task: Task, victims: Iterable[Task], ranks: JobRanks | None = None
) -> list[Task]:
    """In the order of eviction: by queue, then the last job first, then the last task first (spec 02 0.4)."""
    ordered = sorted(victims, key=session.task_key, reverse=True)
    ordered.sort(key=(ranks or JobRanks(session)).current(), reverse=True)
    if task.job is not None and task.job.queue is not None:
        preemptor = task.job.queue
        queues = {victim.job.queue for victim in ordered if victim.job and victim.job.queue}

        def compare(left: Queue, right: Queue) -> int:
            return session.compare_victim_queues(left, right, preemptor)

        rank = {queue: place for place, queue in enumerate(sorted(queues, key=cmp_to_key(compare)))}
        ordered.sort(key=lambda victim: rank[victim.job.queue] if victim.job and victim.job.queue else -1)
    return ordered


@dataclass(slots=True)
class FreeableRoom:
    """An upper bound on what each node could free for tasks of one kind, as of a position in the session's journal."""

    freed: Ints
    preemptor: Task
    """One of the tasks for which it was summed up."""
    victims: set[Task]
    """The candidates that count in `freed`."""
    journal_length: int
    rollbacks_seen: int
    candidate_counts: Ints | None = None
    """How many candidates each node has, whether plugins could allow them or not; counted when first needed."""

    def is_valid(self, session: Session) -> bool:
        """Whether it is still an upper bound: not if an eviction that it counts as done was rolled back."""
        if any(start < self.journal_length for start in session.rollbacks[self.rollbacks_seen :]):
            return False
        self.rollbacks_seen = len(session.rollbacks)
        return True

    def remove(self, victim: Task, row: int, journal_length: int) -> None:
        """A candidate was evicted: it can free nothing again."""
        if self.candidate_counts is not None:
            self.candidate_counts[row] -= 1
        self.journal_length = journal_length
        if victim in self.victims:
            self.victims.discard(victim)
            self.freed[:, row] -= victim.shape.dense(len(self.freed))
