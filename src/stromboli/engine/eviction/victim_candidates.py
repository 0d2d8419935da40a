"""Which tasks an action considers as victims, in which order they leave, and what they could free on each node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from stromboli.engine.plugin import Bound
from stromboli.model.feed import TouchedJobs
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.node_columns import Columns, Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


K = TypeVar("K")
MAX_KINDS = 64
"""For how many kinds of tasks sums by node are kept at once."""


@dataclass(frozen=True, slots=True)
class VictimCandidates:
    """The tasks that an action considers as victims for a given task, before plugins vote on them."""

    point: str
    """Where plugins vote on them: `preemptable` or `reclaimable`."""
    statuses: tuple[Status, ...]
    may_take_from: Callable[[Task, Job], bool]
    may_take_from_queue: Callable[[Task, Queue | None], bool | None] = field(default=lambda task, queue: None)
    """Whether a task may take from every job of a queue, or from none; None: `may_take_from` decides for each job."""
    accepts: Callable[[Task, Task], bool] = field(default=lambda task, victim: victim.preemptable)
    required: bool = False
    """Whether nodes without any candidate are passed over even if the task fits there."""
    key: Callable[[Task], Hashable] = field(default=lambda task: None)
    """All that the answer reads of a task, besides its queue and whether it is best-effort."""
    scope: Callable[[Task], Queue | Job | None] = field(default=lambda task: None)
    """The queue or the job in which all candidates for a task are; None: they may be anywhere."""
    one_by_one: bool = False
    """Whether each task of a job may be served by itself."""

    def of_any_job(self) -> VictimCandidates:
        """The same from all jobs, for an index that tasks share which may take from different jobs."""
        return replace(self, may_take_from=lambda task, job: True)

    def all_of(self, task: Task, queue: Queue | None, jobs: dict[Job, K]) -> dict[Job, K]:
        """Those of some jobs, all of one queue, from which a task may take."""
        answer = self.may_take_from_queue(task, queue)
        if answer is None:
            return {job: value for job, value in jobs.items() if self.may_take_from(task, job)}
        return jobs if answer else {}

    def has_any(self, job: Job) -> bool:
        """Whether any task of a job could be a candidate by its status."""
        return any(map(job.counts.__getitem__, self.statuses))

    def on_node(self, task: Task, node: Node) -> list[Task]:
        """The candidates on a node."""
        return [
            victim
            for victim in node.tasks
            if victim.status in self.statuses
            and victim.job is not None
            and victim.job.visible
            and self.may_take_from(task, victim.job)
            and self.accepts(task, victim)
        ]

    def of_job(self, task: Task, job: Job) -> list[Task]:
        """The candidates among the tasks of a job."""
        if not self.may_have(task, job):
            return []
        return [member for member in self.members(job) if self.accepts(task, member)]

    def may_have(self, task: Task, job: Job) -> bool:
        """Whether any task of a job could be a candidate for a task."""
        return job.visible and self.has_any(job) and self.may_take_from(task, job)

    def members(self, job: Job) -> Iterator[Task]:
        """The tasks of a job that could be candidates by their status."""
        for status in self.statuses:
            for member in job.by_status[status]:
                if member.node is not None and member.node.row >= 0:
                    yield member


class JobVictims(NamedTuple):
    """The candidates of a job, and the nodes that they are on."""

    tasks: dict[Task, None]
    rows: dict[Shape, list[int]]
    """By shape, the row of the node of each of them."""
    allowed: bool
    """Whether plugins might allow any of them."""


NO_BOUND = Bound(None, lambda job: True, lambda queue: None)


class VictimIndex:
    """Candidates for tasks of one kind by job, with sums by node; jobs that moves touched are listed again.

    Jobs of which plugins allow no victim are not listed before `list_all`. With `whole_queues`, they are asked again
    about all jobs of a queue that moves touched, if what their answers read of the queue changed.
    """

    def __init__(
        self,
        session: Session,
        candidates: VictimCandidates,
        scope: Queue | Job | None = None,
        whole_queues: bool = False,
    ):
        self._session = session
        self._candidates = candidates
        self._scope = scope
        self._whole_queues = whole_queues
        self._queues = dict.fromkeys(session.cluster.queues.values() if whole_queues else ())
        """With `whole_queues`, the queues whose jobs are not listed yet, as no task could take from them."""
        self._touched = TouchedJobs(session.cluster.feed, from_now=True)
        self._task: Task | None = None
        self._read_of: dict[Queue, object] = {}
        """What answers of plugins read of queues when all jobs there were last asked about."""
        self._unlisted: dict[Job, None] = {}
        """Jobs that may have candidates, but none that plugins allow."""
        self.by_job: dict[Job, JobVictims] = {}
        """Jobs with candidates; the entry of a job is replaced, never changed."""
        self.by_queue: dict[Queue | None, dict[Job, JobVictims]] = {}
        """The same by queue."""
        self.has_refused = False
        """Whether any of these jobs may be one of which plugins allow no victim."""
        columns = session.cluster.columns
        self.held: Ints = np.zeros_like(columns.idle)
        """What the candidates that plugins might allow hold on each node."""
        self._counts: Ints = np.zeros(len(columns), dtype=np.int64)
        """How many candidates each node has."""

    def __contains__(self, task: Task) -> bool:
        return _has(self.by_job, task)

    def update(self, task: Task, bound: Bound = NO_BOUND) -> list[Job]:
        """List the candidates of jobs that changed, and of the jobs of this task and the last one.

        The bound names the jobs whose tasks plugins might allow. Returns the jobs that were listed again, or left out.
        """
        jobs = list(self._changed(task, bound))
        self._task = task
        before, allowed = [], []
        for job in jobs:
            self._unlisted.pop(job, None)
            if job in self.by_job:
                before.append(self.by_job.pop(job))
                self._of_queue(job).pop(job)
            if not self._candidates.may_have(task, job):
                continue
            if bound.may(job):
                allowed.append(job)
            else:
                self._unlisted[job] = None
        self._sum_up(-1, before)
        self._list(task, allowed, True)
        return jobs

    def list_all(self) -> None:
        """List the other jobs as well, of which plugins allow no victim."""
        if self._task is not None and self._unlisted:
            self.has_refused = True
            self._list(self._task, self._unlisted, False)
            self._unlisted = {}

    def _list(self, task: Task, jobs: Iterable[Job], allowed: bool) -> None:
        listed = []
        for job in jobs:
            if tasks := self._candidates.of_job(task, job):
                victims = JobVictims(dict.fromkeys(tasks), rows_by_shape(tasks), allowed)
                self.by_job[job] = self._of_queue(job)[job] = victims
                listed.append(victims)
        self._sum_up(1, listed)

    def _sum_up(self, sign: int, listed: list[JobVictims]) -> None:
        if listed:
            self.held += sign * self._held_by(listed)
            self._counts += sign * self._number_of(listed)

    def _of_queue(self, job: Job) -> dict[Job, JobVictims]:
        return self.by_queue.setdefault(job.queue, {})

    def _changed(self, task: Task, bound: Bound) -> Iterable[Job]:
        jobs, last = self._touched.take(), self._task
        if last is None and not self._whole_queues:
            return (job for job in jobs_within(self._session, self._scope) if job.ready_count)
        if last is not None and last.job is not task.job:
            jobs |= dict.fromkeys(job for job in (last.job, task.job) if job is not None)
        if self._whole_queues:
            for queue in dict.fromkeys(job.queue for job in jobs if job.queue is not None):
                if queue not in self._queues and self._reads_anew(queue, bound):
                    jobs |= dict.fromkeys(queue.jobs)
            jobs |= self._jobs_of_new_queues(task)
        return [job for job in jobs if self._scope is None or self._scope in (job, job.queue)]

    def _jobs_of_new_queues(self, task: Task) -> dict[Job, None]:
        """The jobs of queues from which this task may take, and no task before it could."""
        may_take_from_queue = self._candidates.may_take_from_queue
        new = [queue for queue in self._queues if may_take_from_queue(task, queue) is not False]
        for queue in new:
            del self._queues[queue]
        return {job: None for queue in new for job in queue.jobs if job.ready_count}

    def _reads_anew(self, queue: Queue, bound: Bound) -> bool:
        """Whether answers of plugins about all jobs of a queue may have changed; they are asked again if so."""
        reads = bound.of_queue(queue) if bound.of_queue is not None else object()
        known, self._read_of[queue] = self._read_of.get(queue, self), reads
        return known != reads

    def freeable(self, freeing: dict[Job, JobVictims]) -> FreeableCapacity:
        """What nodes could free if some jobs may have victims that plugins allow."""
        journal = self._session.journal
        return FreeableCapacity(freeing, self.held_by(freeing), len(journal), len(journal.rollbacks))

    def counts_by(self, jobs: Mapping[Job, JobVictims]) -> Ints:
        """How many candidates each node has, of some jobs."""
        return self._part(jobs, self._counts, self._number_of)

    def held_by(self, jobs: Mapping[Job, JobVictims]) -> Ints:
        """What the candidates of some jobs that plugins might allow hold on each node."""
        return self._part(jobs, self.held, self._held_by)

    def _part(
        self, jobs: Mapping[Job, JobVictims], whole: Ints, sum_up: Callable[[Iterable[JobVictims]], Ints]
    ) -> Ints:
        """A sum over some of the jobs; over the others, and taken off the whole, if those are fewer."""
        if len(jobs) == len(self.by_job):
            return whole.copy()
        if 2 * len(jobs) < len(self.by_job):
            return sum_up(jobs.values())
        return whole - sum_up(self.by_job[job] for job in self.by_job.keys() - jobs.keys())

    def _held_by(self, listed: Iterable[JobVictims]) -> Ints:
        rows: dict[Shape, list[int]] = {}
        for victims in listed:
            if victims.allowed:
                for shape, of_shape in victims.rows.items():
                    rows.setdefault(shape, []).extend(of_shape)
        return held_by_node(self._session.cluster.columns, rows)

    def _number_of(self, listed: Iterable[JobVictims]) -> Ints:
        rows = [row for victims in listed for of_shape in victims.rows.values() for row in of_shape]
        return count_by_node(self._session.cluster.columns, rows)


def remember(known: dict[Hashable, K], kind: Hashable, value: K) -> K:
    """Keep what was summed up for a kind of tasks, and forget what was kept first if there are too many kinds."""
    known[kind] = value
    if len(known) > MAX_KINDS:
        del known[next(iter(known))]
    return value


def rows_by_shape(tasks: Iterable[Task]) -> dict[Shape, list[int]]:
    """The row of the node of each task, by shape."""
    rows: dict[Shape, list[int]] = {}
    for task in tasks:
        if task.node is not None:
            rows.setdefault(task.shape, []).append(task.node.row)
    return rows


def held_by_node(columns: Columns, rows: Mapping[Shape, list[int]]) -> Ints:
    """What tasks hold on each node, given the rows of their nodes by shape."""
    held = np.zeros_like(columns.idle)
    for shape, of_shape in rows.items():
        held += shape.dense(len(held))[:, None] * count_by_node(columns, of_shape)
    return held


def count_by_node(columns: Columns, rows: list[int]) -> Ints:
    """How often each node is named."""
    return np.bincount(np.array(rows, dtype=np.int64), minlength=len(columns))


def jobs_within(session: Session, scope: Queue | Job | None) -> Iterable[Job]:
    """All jobs of a queue, a single job, or all jobs that take part in cycles."""
    if isinstance(scope, Queue):
        return scope.jobs
    return session.jobs() if scope is None else (scope,)


class JobRanks:
    """The sort keys of jobs, each made again once the job has changed."""

    def __init__(self, session: Session):
        self._session = session
        self._ranks: dict[Job, tuple[Any, ...]] = {}
        self._touched = TouchedJobs(session.cluster.feed)

    def current(self) -> Callable[[Task], tuple[Any, ...]]:
        """The sort key of a victim's job, as long as nothing moves."""
        if self._session.rules.job_order_follows_all:
            self._ranks.clear()
        for job in self._touched.take():
            self._ranks.pop(job, None)
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
    queues = {victim.job.queue if victim.job is not None else None for victim in ordered}
    if len(queues) > 1 and task.job is not None and task.job.queue is not None:
        places = queue_ranks(session, queues, task.job.queue)
        ordered.sort(key=lambda victim: places[victim.job.queue] if victim.job is not None else -1)
    return ordered


def queue_ranks(
    session: Session, queues: Iterable[Queue | None], preemptor: Queue
) -> dict[Queue | None, int]:
    """The places of queues in the order in which they lose to another one; what is in no queue comes first."""

    def compare(left: Queue, right: Queue) -> int:
        """Below zero if the left queue loses before the right one."""
        order = session.rules.victim_queue_order(left, right, preemptor)
        return order or (keys[left] < keys[right]) - (keys[left] > keys[right])

    known = list(dict.fromkeys(queue for queue in queues if queue is not None))
    if len(known) > 1:
        keys = {queue: session.queue_key(queue) for queue in known}
        known.sort(key=keys.__getitem__, reverse=True)
        if session.rules.has("victim_queue_order"):
            known.sort(key=cmp_to_key(compare))
    return {None: -1, **{queue: place for place, queue in enumerate(known)}}


@dataclass(slots=True)
class FreeableCapacity:
    """An upper bound on what each node could free for tasks of one kind, as of a position in the session's journal."""

    freeing: dict[Job, JobVictims]
    """The jobs of which victims count in `freed`."""
    freed: Ints
    journal_length: int
    rollbacks_seen: int
    taken: dict[Job, JobVictims] = field(default_factory=dict)
    """The jobs of which candidates count in `counts`."""
    counts: Ints | None = None
    """How many candidates each node has, whether plugins could allow them or not; None before it is asked."""

    def is_valid(self, session: Session) -> bool:
        """Whether it is still an upper bound: not if an eviction that it counts as done was rolled back."""
        if any(start < self.journal_length for start in session.journal.rollbacks[self.rollbacks_seen :]):
            return False
        self.rollbacks_seen = len(session.journal.rollbacks)
        return True

    def remove(self, victim: Task, row: int, journal_length: int) -> None:
        """A task was evicted: it can free nothing again."""
        self.journal_length = journal_length
        if self.counts is not None and _has(self.taken, victim):
            self.counts[row] -= 1
        if _has(self.freeing, victim):
            self.freed[:, row] -= victim.shape.dense(len(self.freed))


def _has(jobs: Mapping[Job, JobVictims], victim: Task) -> bool:
    return victim.job is not None and victim.job in jobs and victim in jobs[victim.job].tasks
