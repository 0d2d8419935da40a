"""Jobs that need more capacity than there is: they are parked until there is more, or until they change.

After a cycle in which a job was not placed, it is known how many tasks it needs to start, and how many like these the
limits of its queue and the nodes that it may use could take at most. As long as that is fewer, trying it must fail,
whatever filters and orders decide. This is computed anew before every action, for all jobs of a kind at once: with what
is free, or with what could be evicted for them, whatever the limits are then. A job of which anything changed (pods,
group, priority, queue) is tried at once, and all are when nodes are added, removed or changed.

What is reported about a job that is not tried is what it met when it was last tried.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from stromboli.engine.attribution import SuppressedErrors, take_attribution
from stromboli.engine.placement.node_fit import SlotCount
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.job_reports import TentativePlacement
    from stromboli.engine.pending_tasks import PendingTasks
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Columns
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


POINTS_BY_TASK = ("preemptable", "reclaimable")
"""Where plugins vote on victims of actions that evict for each task."""


class LastAttempt(NamedTuple):
    """What a job met when it was last tried, to explain why it waits."""

    verdicts: dict[Task, Verdict]
    tentative: dict[Task, TentativePlacement]
    allocated_at_once: int | None
    without_domain: Job | SubJob | None


@dataclass(slots=True, eq=False)
class WaitGroup:
    """Jobs of a kind: alike in all that decides whether there could be capacity for them."""

    task: Task
    """A task of a job that is among them, all of whose tasks are like it."""
    needed: int
    """How many tasks each of them needs to start, at least."""
    alike: bool
    """Whether their tasks are alike in all that filters read, and not in what they request alone."""
    within_limits: tuple[bool, bool]
    """Whether they were within the limits of their queue when they were last tried; if it changes, it is reported."""
    jobs: dict[Job, LastAttempt] = field(default_factory=dict)


class Turns(Protocol):
    """The jobs that `allocate` tries, one after the other."""

    def __iter__(self) -> Iterator[Job]: ...

    def pending(self, job: Job) -> PendingTasks | None:
        """What is left to place of the job whose turn it is; none if nothing is, or if it may not be scheduled."""

    def may_start(self, job: Job) -> bool:
        """Whether the job whose turn it is may be placed; if not, plugins may only promise it capacity."""

    def push(self, job: Job, pending: PendingTasks) -> None:
        """Give a job another turn, for the tasks that are left."""


Pending = Callable[["Session", "Job"], "PendingTasks | None"]
"""What there is to place of a job; none if it may not be scheduled."""


class QueueTurns(Turns):
    """Turns in the order of the policy, without the jobs for which there cannot be enough capacity."""

    def __init__(self, session: Session, jobs: Iterable[Job], pending: Pending):
        self._pending = {job: tasks for job in jobs if (tasks := pending(session, job))}
        self._jobs = session.jobs_by_queue(self._pending)
        self._overused = session.rules.overused

    def __iter__(self) -> Iterator[Job]:
        return (job for _, job in self._jobs.turns(skip=self._overused))

    def pending(self, job: Job) -> PendingTasks | None:
        return self._pending[job]

    def may_start(self, job: Job) -> bool:
        return True

    def push(self, job: Job, pending: PendingTasks) -> None:
        self._jobs.push(job)


class Waits(Protocol):
    """The jobs that are not tried because they need more capacity than there is."""

    in_order: bool
    """Whether parked jobs have turns too, so that no engine can take them over from another one."""
    bound: WaitingSlots
    """Slots for the shapes of tasks that wait."""

    def copy(self) -> CapacityWaits:
        """The same jobs, to be unparked independently of these; without the order of their queues."""

    def __contains__(self, job: Job) -> bool: ...

    def __len__(self) -> int: ...

    def unreported(self, session: Session) -> Iterable[Job]:
        """The unsettled jobs of which something new may be known, as they may be tried."""

    def note_unsettled(self, job: Job) -> None:
        """A job became unsettled, or stays so."""

    def open(self, cluster: Cluster) -> None:
        """When a session opens: unpark jobs that changed since the last one, and all jobs if a node changed."""

    def turns(self, session: Session, pending: Pending) -> Turns:
        """The jobs that `allocate` tries."""

    def unparked(self, session: Session) -> list[Job]:
        """The jobs with something to place, less those that are parked."""

    def worth_evicting_for(self, session: Session, may_help: Callable[[WaitGroup], bool]) -> list[Job]:
        """The jobs with something to place, less those of kinds that cannot be helped by evictions.

        What these met when they were last tried still holds, as they were not tried since.
        """

    def unpark(self, jobs: Iterable[Job]) -> None:
        """Try these jobs again."""

    def close(self, session: Session) -> None:
        """When a session closes: park the jobs for which it found no capacity, unless there could be some."""

    def recall(self, session: Session, job: Job) -> None:
        """Let a session know what a job met when it was last tried, if it was not tried in this one."""


class CapacityWaits(Waits):
    """The jobs that need more capacity than there is, kind by kind; no plugin needs to know of them."""

    in_order = False

    def __init__(self) -> None:
        self._groups: dict[Hashable, WaitGroup] = {}
        self._of_job: dict[Job, Hashable] = {}
        self._others: dict[Job, None] | None = None
        """All others of the backlog and of the unsettled jobs, but for those that changed since.

        A cycle with one change walks these, and not the whole backlog. None: not listed.
        """
        self.bound = WaitingSlots()
        self._ledgers_changed = -1
        """The generation of the last change of ledgers that was seen."""

    def copy(self) -> CapacityWaits:
        waits = CapacityWaits()
        waits._groups = {key: replace(group, jobs=dict(group.jobs)) for key, group in self._groups.items()}
        waits._of_job = dict(self._of_job)
        waits._others = dict(self._others) if self._others is not None else None
        waits._ledgers_changed = self._ledgers_changed
        return waits

    def __contains__(self, job: Job) -> bool:
        return job in self._of_job

    def __len__(self) -> int:
        return len(self._of_job)

    def unreported(self, session: Session) -> Iterable[Job]:
        return self._not_waiting(session, session.cluster.unsettled)

    def note_unsettled(self, job: Job) -> None:
        if self._others is not None:
            self._others[job] = None

    # -- jobs that are tried

    def open(self, cluster: Cluster) -> None:
        self._list_others(cluster, self.unpark_changed(cluster))

    def unpark_changed(self, cluster: Cluster) -> bool:
        """Unpark jobs that changed since the last session, and all jobs if a node changed; whether it did."""
        anew, ledgers_changed = cluster.dirty.everything or cluster.dirty.nodes, _ledgers_changed(cluster)
        if anew:
            self._groups.clear()
            self._of_job.clear()
        else:
            self.unpark(cluster.touched)
            if ledgers_changed != self._ledgers_changed:
                self._unpark_concerned(cluster)
        self._ledgers_changed = ledgers_changed
        return anew

    def _unpark_concerned(self, cluster: Cluster) -> None:
        """Unpark jobs that may get grants of ledgers: another reason may keep them out now."""
        for group in list(self._groups.values()):
            if cluster.ledgers_of(group.task.shape):
                self.unpark(list(group.jobs))

    def _list_others(self, cluster: Cluster, anew: bool) -> None:
        backlog, unsettled, waiting = cluster.backlog, cluster.unsettled, self._of_job
        if anew or self._others is None:
            self._others = {**backlog, **unsettled}
        elif cluster.touched or cluster.dirty.jobs:
            known = {**self._others, **cluster.dirty.jobs}
            self._others = {
                job: None for job in known if (job in backlog or job in unsettled) and job not in waiting
            }

    def turns(self, session: Session, pending: Pending) -> Turns:
        for group in self.helped(session, lambda group: self._may_take(session, group)):
            self.unpark(list(group.jobs))
        return QueueTurns(session, self.unparked(session), pending)

    def _may_take(self, session: Session, group: WaitGroup) -> bool:
        if _within_limits(session, group.task) != group.within_limits:
            return True
        if not self.bound.may_take(session, group.task, group.needed, group.alike):
            return False
        queue = session.queue_of(group.task)
        return queue is None or session.rules.may_allocate(queue, group.task, group.needed)

    def worth_evicting_for(self, session: Session, may_help: Callable[[WaitGroup], bool]) -> list[Job]:
        for group in self.helped(session, may_help):
            for job in group.jobs:
                self.recall(session, job)
            self.unpark(list(group.jobs))
        return self._not_waiting(session, session.cluster.backlog)

    def helped(self, session: Session, may_help: Callable[[WaitGroup], bool]) -> list[WaitGroup]:
        """The kinds of jobs that could be helped."""
        return [group for group in self._groups.values() if not self._is_hopeless(session, group, may_help)]

    def unparked(self, session: Session) -> list[Job]:
        return self._not_waiting(session, session.cluster.backlog)

    def _not_waiting(self, session: Session, jobs: dict[Job, None]) -> list[Job]:
        """Those of the backlog, or of the unsettled jobs, that are not parked."""
        known = jobs
        if self._others is not None and len(self._others) < len(jobs):
            known = {**self._others, **session.changed.jobs, **session.cluster.dirty.jobs}
        return [job for job in known if job in jobs and job not in self._of_job]

    def _is_hopeless(self, session: Session, group: WaitGroup, may_help: Callable[[WaitGroup], bool]) -> bool:
        try:
            return not may_help(group)
        except session.confined as error:
            take_attribution(error)
            return False  # a plugin that fails here fails over each of these jobs, and is reported then

    def unpark(self, jobs: Iterable[Job]) -> None:
        changed: dict[Hashable, None] = {}
        for job in jobs:
            key = self._of_job.pop(job, None)
            if self._others is not None:
                self._others[job] = None
            if key is not None:
                del self._groups[key].jobs[job]
                changed[key] = None
        for key in changed:
            group = self._groups[key]
            if group.jobs:  # the first job may have been unparked
                group.task = _first_pending(next(iter(group.jobs)))
            else:
                del self._groups[key]

    # -- jobs that are parked

    def close(self, session: Session) -> None:
        moved = session.cluster.dirty.jobs
        earlier = {job: self._groups[self._of_job[job]].jobs[job] for job in moved if job in self._of_job}
        self.unpark(moved)
        for job in self._not_waiting(session, session.cluster.backlog):
            if needs_capacity_alone(session, job, or_grants=True):
                # a plugin that fails here is reported when the job is tried
                with SuppressedErrors(session.confined):
                    self._note(session, job, earlier.get(job))
        self.bound.keep(group.task.shape for group in self._groups.values())

    def _note(self, session: Session, job: Job, earlier: LastAttempt | None) -> None:
        kind = _kind(session, job)
        if kind is None:
            return
        group = self._groups.get(kind)
        if group is None:
            task, needed = _first_pending(job), session.rules.tasks_needed(job)
            group = WaitGroup(task, needed, _are_alike(job), _within_limits(session, task))
            if self._may_take(session, group):
                return
            self._groups[kind] = group
        self._of_job[job] = kind
        group.jobs[job] = (
            attempt_of(session, job) if earlier is None or job in session.attempts.verdicts else earlier
        )

    def recall(self, session: Session, job: Job) -> None:
        if job in self._of_job:
            recall_attempt(session, job, self.attempt(job))

    def attempt(self, job: Job) -> LastAttempt | None:
        """What a parked job met when it was last tried."""
        key = self._of_job.get(job)
        return self._groups[key].jobs[job] if key is not None else None


def recall_attempt(session: Session, job: Job, attempt: LastAttempt | None) -> None:
    """Let a session know what a job met when it was last tried, if it was not tried in this one."""
    if attempt is None or job in session.attempts.verdicts:
        return
    if attempt.verdicts:
        session.attempts.verdicts[job] = attempt.verdicts
    session.attempts.tentative.update(attempt.tentative)
    if attempt.allocated_at_once is not None:
        session.attempts.allocated_at_once[job] = attempt.allocated_at_once
    if attempt.without_domain is not None:
        session.attempts.without_domain[job] = attempt.without_domain


def needs_capacity_alone(session: Session, job: Job, or_grants: bool = False) -> bool:
    """Whether a job has one kind of task and nothing but capacity could help it, in one go.

    With `or_grants`, its tasks may get grants of ledgers whose changes unpark it, such as exclusive CPUs.
    """
    if job.waits_for_queue or job in session.objections or session.requirements.unmet(job):
        return False
    if job.policies or job.reserved or job.counts[Status.PIPELINED] or job.pending_best_effort:
        return False
    first = _first_pending(job)
    if any(ledger.generation is None or not or_grants for ledger in session.cluster.ledgers_of(first.shape)):
        return False
    return all(
        task.shape is first.shape and _waits_for_amounts(task) for task in job.by_status[Status.PENDING]
    )


def _ledgers_changed(cluster: Cluster) -> int:
    """The generation of the last change of ledgers that jobs are parked for."""
    return max(ledger.generation or 0 for ledger in cluster.ledgers)


def _waits_for_amounts(task: Task) -> bool:
    """Whether a task is neither held at a gate nor promised anything."""
    sub_job = task.sub_job
    return not task.gates and not task.nominated and (sub_job is None or not sub_job.nominated_hyper_node)


def _within_limits(session: Session, task: Task) -> tuple[bool, bool]:
    """Whether the queue of a task has had its share, and whether it may still take the task."""
    queue = session.queue_of(task)
    return queue is not None and session.rules.overused(queue), (
        queue is not None and session.rules.allocatable(queue, task)
    )


def _first_pending(job: Job) -> Task:
    return next(iter(job.by_status[Status.PENDING]))


def _are_alike(job: Job) -> bool:
    """Whether the pending tasks of a job differ in nothing but their names."""
    first = _first_pending(job)
    seen = (first.label_set, first.annotations, first.priority, first.pod_priority, first.preempts)
    return all(
        (task.label_set, task.annotations, task.priority, task.pod_priority, task.preempts) == seen
        for task in job.by_status[Status.PENDING]
    )


def _kind(session: Session, job: Job) -> Hashable | None:
    """All that decides whether there could be capacity for a job, by evictions too.

    None if that differs between its tasks.
    """
    first, alike, rules = _first_pending(job), _are_alike(job), session.rules
    asked = [first] if alike else list(job.by_status[Status.PENDING])
    asked_at = {action.evicts_by for action in session.actions}
    points = [point for point in POINTS_BY_TASK if point in asked_at]
    bounds = {(task.may_preempt, *(rules.bound(point, task).key for point in points)) for task in asked}
    if len(bounds) > 1:
        return None
    read = session.placement.key(first) if alike else first.shape.id
    alone = job if job.allocated_count else None
    return (job.queue, read, alike, rules.tasks_needed(job), job.priority, alone, *bounds)


def attempt_of(session: Session, job: Job) -> LastAttempt:
    """What a job met in this session."""
    tentative = session.attempts.tentative
    return LastAttempt(
        session.attempts.verdicts.get(job, {}),
        {task: tentative[task] for task in job.by_status[Status.PENDING] if task in tentative},
        session.attempts.allocated_at_once.get(job),
        session.attempts.without_domain.get(job),
    )


# -- how many tasks of a shape nodes could take, at most: by what each will have free, kept up while nodes change


class KeptSlots(NamedTuple):
    """The slots for tasks of a shape, and the layout and the clock of the columns for which they were counted."""

    slots: SlotCount
    layout: int
    clock: int


_NO_SLOTS = (None, -1, -1)


class WaitingSlots:
    """Slots once what is leaving has left, for the shapes of tasks that wait."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, KeptSlots] = {}

    def __len__(self) -> int:
        return len(self._by_shape)

    def _current(self, shape: Shape, columns: Columns) -> SlotCount:
        """The slots for tasks of a shape as of now; nodes that changed are counted anew."""
        slots, layout, clock = self._by_shape.get(shape, _NO_SLOTS)
        if slots is not None and clock == columns.clock and layout == columns.layout:
            return slots
        if slots is None or layout != columns.layout:
            slots = SlotCount(shape.request, columns.future_idle)
        else:
            rows = np.flatnonzero(columns.version > clock)
            future = columns.idle[:, rows] + columns.releasing[:, rows] - columns.pipelined[:, rows]
            slots.update(rows, future)
        self._by_shape[shape] = KeptSlots(slots, columns.layout, columns.clock)
        return slots

    def may_take(self, session: Session, task: Task, needed: int, alike: bool) -> bool:
        """Whether nodes could take so many tasks of a shape: if not, whatever is tried must fail.

        For tasks that are `alike` in all that filters read, only the nodes count that such a task may use.
        """
        slots = self._current(task.shape, session.cluster.columns)
        if slots.total < needed or not alike:
            return slots.total >= needed
        return slots.on(session.evaluation(task).allowed) >= needed

    def keep(self, shapes: Iterable[Shape]) -> None:
        """Forget all other shapes."""
        self._by_shape = {shape: self._by_shape[shape] for shape in set(shapes) if shape in self._by_shape}
