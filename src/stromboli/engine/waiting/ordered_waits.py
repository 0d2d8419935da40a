"""Jobs that are parked in the order of their queues, where plugins hold some back for the sake of others.

There it matters which job is the first that finds no capacity, so no job may be passed over. Jobs that need capacity
alone are parked until something about them changes: sorted by queue, and as columns. In `allocate` the first of each
queue has its turn, then the next; once plugins report which jobs may overtake, only those that may and could fit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.engine.attribution import SuppressedErrors
from stromboli.engine.waiting.capacity_waits import (
    CapacityWaits,
    LastAttempt,
    Turns,
    Waits,
    attempt_of,
    needs_capacity_alone,
    recall_attempt,
)
from stromboli.model.status import Status
from stromboli.model.time_limits import QueueLimits, longest_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stromboli.engine.order import JobsByQueue
    from stromboli.engine.pending_tasks import PendingTasks
    from stromboli.engine.rules import Rules
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.capacity_waits import Pending, WaitGroup
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Entry = tuple[tuple[Any, ...], int]
FIRST_SLOTS = 64
SPARE_SHAPES = 64
"""So many shapes more than parked jobs are remembered before those without parked jobs are forgotten."""
SLACK = 1 + 1e-12
"""Sums are floats here: a job may seem to fit that does not, never the other way round."""


def waits_under(rules: Rules) -> type[Waits]:
    """How jobs wait: in the order of their queues where plugins need to know of each that finds no capacity."""
    return OrderedWaits if rules.has("no_room") else CapacityWaits


class OrderedWaits(Waits):
    """The parked jobs, by queue and order, and those that are not parked; for evicting actions also kind by kind."""

    in_order = True

    def __init__(self) -> None:
        self._kinds = CapacityWaits()
        self.bound = self._kinds.bound
        self.columns = WaitingColumns()
        self._entries: dict[Queue, list[Entry]] = {}
        self._keys: dict[Job, tuple[Queue, Entry]] = {}
        self._attempts: dict[Job, LastAttempt] = {}
        self._unparked: dict[Job, None] = {}
        self._had_turn: set[Job] = set()
        """The jobs that had a turn in this session."""
        self._limits = QueueLimits()

    def __contains__(self, job: Job) -> bool:
        return job in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def copy(self) -> CapacityWaits:
        """The same jobs as far as they wait kind by kind; without the order of their queues."""
        return self._kinds.copy()

    def recall(self, session: Session, job: Job) -> None:
        recall_attempt(session, job, self._attempts.get(job) or self._kinds.attempt(job))

    def unreported(self, session: Session) -> Iterable[Job]:
        return [job for job in session.cluster.unsettled if job not in self._keys]

    def note_unsettled(self, job: Job) -> None:
        """All unsettled jobs are looked at, but for those that are parked."""

    def worth_evicting_for(self, session: Session, may_help: Callable[[WaitGroup], bool]) -> list[Job]:
        for group in self._kinds.helped(session, may_help):
            for job in group.jobs:
                self.recall(session, job)
            self._kinds.unpark(list(group.jobs))
        return self._kinds.unparked(session)

    # -- parking

    def open(self, cluster: Cluster) -> None:
        self._kinds.unpark_changed(cluster)
        self._had_turn.clear()
        if self._limits.update(cluster, cluster.dirty) or cluster.dirty.everything or cluster.dirty.nodes:
            self.columns, self._entries, self._keys, self._attempts = WaitingColumns(), {}, {}, {}
            self._unparked = {
                job: None for job in cluster.jobs.values() if job in cluster.backlog or lacks_pods(job)
            }
        else:
            for job in cluster.touched:
                self._unpark(job)

    def unpark(self, jobs: Iterable[Job]) -> None:
        """Try these jobs again, as far as they wait kind by kind."""
        self._kinds.unpark(jobs)

    def _unpark(self, job: Job) -> None:
        self._unparked[job] = None
        known = self._keys.pop(job, None)
        if known is not None:
            queue, entry = known
            entries = self._entries[queue]
            del entries[bisect_left(entries, entry)]
            if not entries:
                del self._entries[queue]
            self.columns.remove(job)
            self._attempts.pop(job, None)

    def close(self, session: Session) -> None:
        cluster = session.cluster
        for job in [job for job in cluster.dirty.jobs if job in self._keys]:
            self._unpark(job)
        if any(action.evicts_by for action in session.actions):
            self._kinds.close(session)
        elif len(self.bound) > len(self) + SPARE_SHAPES:
            self.bound.keep(task.shape for task in self.columns.tasks if task is not None)
        sorts = not session.rules.job_order_follows_all
        for job in {**self._unparked, **cluster.dirty.jobs}:
            if lacks_pods(job):
                self._unparked[job] = None
            elif job not in cluster.backlog:
                self._unparked.pop(job, None)
            elif job in session.attempts.uncommitted.promised:
                self._unparked[job] = None  # it is tried until the capacity that it was promised is free
            elif sorts and needs_capacity_alone(session, job):
                # a plugin that fails here is reported when the job is tried
                with SuppressedErrors(session.confined):
                    self._park(session, job)

    def _park(self, session: Session, job: Job) -> None:
        queue, pending = job.queue, job.by_status[Status.PENDING]
        if queue is None:
            return
        limit = longest_limit(job, self._limits.of(queue))
        task, needed = next(iter(pending)), session.rules.tasks_needed(job)
        key = session.job_key(job)
        dims = len(session.cluster.columns.idle)
        longest, had_turn = inf if limit is None else limit, job in self._had_turn
        slot = self.columns.add(job, task, needed, longest, dims, had_turn)
        self._keys[job] = queue, (key, slot)
        insort(self._entries.setdefault(queue, []), (key, slot))
        self._attempts[job] = attempt_of(session, job)
        self._unparked.pop(job, None)

    # -- turns

    def unparked(self, session: Session) -> list[Job]:
        """The admitted jobs that are not parked, those without pods among them."""
        admitted = (job for job in self._unparked if not job.waits_for_queue)
        return [job for job in admitted if job in session.cluster.backlog or lacks_pods(job)]

    def turns(self, session: Session, pending: Pending) -> OrderedTurns:
        return OrderedTurns(session, self, pending)

    def note_turn(self, job: Job) -> None:
        """When a job has its turn: plugins know of it if it finds no capacity."""
        self._had_turn.add(job)
        slot = self.columns.slots.get(job)
        if slot is not None:
            self.columns.had_turn[slot] = True

    def queues(self) -> list[Queue]:
        """The queues of parked jobs."""
        return list(self._entries)

    def nth(self, queue: Queue, place: int) -> Job | None:
        """The parked job at a place of a queue."""
        entries = self._entries.get(queue, ())
        return self.columns.jobs[entries[place][1]] if place < len(entries) else None


def lacks_pods(job: Job) -> bool:
    """Whether a job was admitted and its controller has not created its pods yet."""
    return not job.tasks and job.phase == names.GROUP_INQUEUE and job.visible


class OrderedTurns(Turns):
    """Turns of the jobs that are not parked and, queue by queue, of those that are."""

    def __init__(self, session: Session, parked: OrderedWaits, pending: Pending):
        self._session = session
        self._parked = parked
        self._find_pending = pending
        self._left: dict[Job, PendingTasks] = {}
        """The tasks that are left of jobs with another turn."""
        self._places = dict.fromkeys(parked.queues(), 0)
        self._next: dict[Queue, Job] = {}
        """The parked job of each queue whose turn is next."""
        self._jobs: JobsByQueue = session.jobs_by_queue(())
        self._chosen = False
        self._clock = -1
        self._may_fit: Bools = np.zeros(0, dtype=bool)
        self._refused: set[Any] = set()
        self._overused: list[Queue] = []
        self._had_first_turn: set[Job] = set()
        """The jobs to which starts were promised before, until they are to have another turn."""
        self._only_promises = False
        """Whether these are turns of queues that have had their share: their jobs may only be promised a start."""

    def __iter__(self) -> Iterator[Job]:
        session, parked = self._session, self._parked
        first = [job for queue in self._places if (job := self._advance(queue)) is not None]
        waiting = [*parked.unparked(session), *first]
        jobs = self._jobs = session.jobs_by_queue(waiting)
        for promised in self._promised_before(waiting):
            self._had_first_turn.add(promised)
            parked.note_turn(promised)
            yield promised
            if not self._chosen:
                self._choose(jobs)
            self._follow(jobs, promised)
        yield from self._turns_of(jobs, self._is_overused)
        self._only_promises = True
        for queue in self._overused:
            jobs.restore(queue)
        yield from self._turns_of(jobs, None)

    def _promised_before(self, waiting: Iterable[Job]) -> Iterator[Job]:
        """The jobs that keep their places before others, even if the shares by which queues are ordered have changed.

        Otherwise they would lose their nodes as soon as they are free: the queues whose jobs held them then come first.
        """
        first: list[Job] = []
        for job in self._session.rules.promised_before():
            if self._keeps_place(job, [other for other in waiting if other not in first]):
                first.append(job)
                yield job

    def _keeps_place(self, job: Job, waiting: Iterable[Job]) -> bool:
        """Whether a job has its turn before all that wait.

        Not if a job of a higher priority is pending (in another queue, unless it `keeps_first_turn`), or one that runs
        below its minimum or precedes it in its queue, or if its queue has had its share.
        """
        session, needs = self._session, self._session.needs
        if job.queue is None or job.waits_for_queue or not job.visible:
            return False
        if job not in session.cluster.backlog and not lacks_pods(job):
            return False
        if session.rules.overused(job.queue):
            return False
        place, runs_short = (job.queue.priority, job.priority), needs.runs_short(job)
        key = session.job_key(job)
        for other in waiting:
            if other.queue is None or other is job:
                continue
            if needs.runs_short(other) and not runs_short:
                return False
            is_higher, is_near = (other.queue.priority, other.priority) > place, other.queue is job.queue
            if is_higher and (is_near or not session.rules.keeps_first_turn(job)):
                return False
            if is_near and session.job_key(other) < key:
                return False
        return True

    def _is_overused(self, queue: Queue) -> bool:
        overused = self._session.rules.overused(queue)
        if overused:
            self._overused.append(queue)
        return overused

    def _turns_of(self, jobs: JobsByQueue, skip: Callable[[Queue], bool] | None) -> Iterator[Job]:
        for queue, job in jobs.turns(skip):
            was_parked = self._next.get(queue) is job
            if job not in self._had_first_turn:
                self._parked.note_turn(job)
                yield job
            if not self._chosen:
                self._choose(jobs)
            if was_parked:
                self._follow(jobs, job)

    def _follow(self, jobs: JobsByQueue, job: Job) -> None:
        """Let the job that is parked behind one that had its turn have the next turn of their queue."""
        if job.queue is None or self._chosen or self._next.get(job.queue) is not job:
            return
        following = self._advance(job.queue)
        if following is not None:
            jobs.push(following)

    def _advance(self, queue: Queue) -> Job | None:
        place = self._places[queue]
        job = self._parked.nth(queue, place)
        self._places[queue] = place + 1
        if job is None:
            self._next.pop(queue, None)
        else:
            self._next[queue] = job
        return job

    def _choose(self, jobs: JobsByQueue) -> None:
        """Once plugins report which jobs may overtake: give those their turns."""
        columns = self._parked.columns
        slots = self._session.rules.may_overtake(columns)
        if slots is None:
            return
        self._chosen = True
        for slot in slots.tolist():
            job = columns.jobs[slot]
            if job is not None:
                jobs.push(job)

    def pending(self, job: Job) -> PendingTasks | None:
        left = self._left.get(job)
        if left is None and not lacks_pods(job):
            left = self._find_pending(self._session, job)
        return left or None

    def push(self, job: Job, pending: PendingTasks) -> None:
        self._had_first_turn.discard(job)
        self._left[job] = pending
        self._jobs.push(job)

    def may_start(self, job: Job) -> bool:
        """Whether there could be capacity for a job, by a bound that is never too low."""
        if self._only_promises:
            return False
        columns, session = self._parked.columns, self._session
        slot = columns.slots.get(job)
        if slot is None or job in self._left:  # with another turn it needs less than when it was parked
            return True
        task, needed, queue = columns.tasks[slot], columns.needed(slot), job.queue
        if not self._fits()[slot] or task is None or queue is None:
            return False
        kind = (queue, task.shape, needed, job.has_started)
        if kind not in self._refused and not session.rules.may_allocate(queue, task, needed):
            self._refused.add(kind)
        return kind not in self._refused and self._parked.bound.may_take(session, task, needed, True)

    def _fits(self) -> Bools:
        columns = self._session.cluster.columns
        if self._clock != columns.clock:
            self._clock = columns.clock
            self._may_fit = self._parked.columns.may_fit(columns.future_idle)
        return self._may_fit


class WaitingColumns:
    """What parked jobs need and how long they run at most, as columns by slot; unused slots need infinitely much."""

    def __init__(self) -> None:
        self.jobs: list[Job | None] = [None] * FIRST_SLOTS
        """The job of each slot."""
        self.tasks: list[Task | None] = [None] * FIRST_SLOTS
        """One of its tasks, all of which are alike."""
        self.slots: dict[Job, int] = {}
        """The slot of each job."""
        self._requests: Floats = np.full((FIRST_SLOTS, 0), inf)
        self._needed: Floats = np.ones(FIRST_SLOTS)
        self.limits: Floats = np.full(FIRST_SLOTS, inf)
        """Seconds that each job runs at most; infinity if unknown."""
        self.had_turn: Bools = np.ones(FIRST_SLOTS, dtype=bool)
        """Whether each job has had a turn since it is pending; none has while its queue has had its share."""
        self._unused = list(range(FIRST_SLOTS))[::-1]

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, job: Job, task: Task, needed: int, limit: float, dims: int, had_turn: bool = True) -> int:
        """Add a job that needs so many tasks to start."""
        if dims > self._requests.shape[1]:
            self._widen(dims)
        if not self._unused:
            self._grow()
        slot = self._unused.pop()
        self.jobs[slot], self.tasks[slot], self.slots[job] = job, task, slot
        self._requests[slot] = task.shape.dense(dims)
        self._needed[slot], self.limits[slot], self.had_turn[slot] = needed, limit, had_turn
        return slot

    def remove(self, job: Job) -> None:
        slot = self.slots.pop(job)
        self.jobs[slot] = self.tasks[slot] = None
        self._requests[slot] = inf
        self.had_turn[slot] = True
        self._unused.append(slot)

    def needed(self, slot: int) -> int:
        """How many tasks the job of a slot needs to start."""
        return int(self._needed[slot])

    def _widen(self, dims: int) -> None:
        more = np.zeros((len(self.jobs), dims - self._requests.shape[1]))
        if not self._requests.shape[1]:
            more[:] = inf
        self._requests = np.hstack((self._requests, more))

    def _grow(self) -> None:
        count = len(self.jobs)
        self.jobs += [None] * count
        self.tasks += [None] * count
        self._requests = np.vstack((self._requests, np.full((count, self._requests.shape[1]), inf)))
        self._needed = np.concatenate((self._needed, np.ones(count)))
        self.limits = np.concatenate((self.limits, np.full(count, inf)))
        self.had_turn = np.concatenate((self.had_turn, np.ones(count, dtype=bool)))
        self._unused = list(range(count, 2 * count))[::-1]

    def may_fit(self, free: Ints) -> Bools:
        """Which jobs could start with what is free on nodes, by slot: a task on the emptiest, all on all of them."""
        dims = self._requests.shape[1]
        if not dims or not free.shape[1]:
            return np.zeros(len(self.jobs), dtype=bool)
        positive = np.maximum(free[:dims], 0)
        largest, total = positive.max(axis=1), positive.sum(axis=1, dtype=np.float64) * SLACK
        fitting: Bools = np.ones(len(self.jobs), dtype=bool)
        for dim in range(dims):
            column = self._requests[:, dim]
            fitting &= column <= largest[dim]
            if free.shape[1] > 1 or self._any_gang:
                fitting &= column * self._needed <= total[dim]
        return fitting

    @property
    def _any_gang(self) -> bool:
        return bool(self._needed.max() > 1)
