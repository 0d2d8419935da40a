"""Jobs that wait where plugins hold some back for the sake of others: kept in order, and looked at all at once.

There it matters who is the first that finds no room, so nobody can be passed over unseen. Jobs that wait for room
alone are asleep until something about them changes: sorted by queue, and as columns. In `allocate` the first of each
queue has its turn, then the next; once plugins say who may overtake, only those of the others that also may fit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.api import names
from stromboli.engine.waiting.room_waits import (
    VICTIM_POINTS,
    LastAttempt,
    RoomWaits,
    attempt_of,
    waits_for_room,
)
from stromboli.engine.waiting.waiting_columns import WaitingColumns
from stromboli.model.status import Status
from stromboli.model.time_limits import QueueLimits, longest_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stromboli.engine.order import JobsByQueue
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.waiting_columns import Bools
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue

Entry = tuple[tuple[Any, ...], int]
SPARE_SHAPES = 64
"""So many shapes more than jobs wait are remembered before those are forgotten that nobody waits with."""
EVICTING = frozenset((*VICTIM_POINTS, "gangpreempt", "gangreclaim"))


class OrderedWaits(RoomWaits):
    """The jobs that wait, by queue and order."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = WaitingColumns()
        self._entries: dict[Queue, list[Entry]] = {}
        self._keys: dict[Job, tuple[Queue, Entry]] = {}
        self._attempts: dict[Job, LastAttempt] = {}
        self._awake: dict[Job, None] = {}
        self._had_turn: set[Job] = set()
        """The jobs that had a turn in this session."""
        self._limits = QueueLimits()

    def __contains__(self, job: Job) -> bool:
        return job in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def unreported(self, session: Session) -> Iterable[Job]:
        return session.cluster.unsettled.keys() - self._keys.keys()

    # -- who is awake

    def open(self, cluster: Cluster) -> None:
        super().open(cluster)
        self._had_turn.clear()
        if self._limits.update(cluster, cluster.dirty) or cluster.dirty.everything or cluster.dirty.nodes:
            self.columns, self._entries, self._keys, self._attempts = WaitingColumns(), {}, {}, {}
            self._awake = {
                job: None for job in cluster.jobs.values() if job in cluster.backlog or lacks_pods(job)
            }
        else:
            for job in cluster.touched:
                self._wake_up(job)

    def _list_others(self, cluster: Cluster, anew: bool) -> None:
        """They are not listed: jobs that are asleep here are among those that base methods look at."""

    def _wake_up(self, job: Job) -> None:
        self._awake[job] = None
        known = self._keys.pop(job, None)
        if known is not None:
            queue, entry = known
            entries = self._entries[queue]
            del entries[bisect_left(entries, entry)]
            if not entries:
                del self._entries[queue]
            self.columns.remove(job)
            self._attempts.pop(job, None)

    def awake(self, session: Session) -> list[Job]:
        backlog = session.cluster.backlog
        admitted = (job for job in self._awake if not job.waits_for_queue)
        return [job for job in admitted if job in backlog or lacks_pods(job)]

    def turns(self, session: Session) -> OrderedTurns:
        """Who has a turn in `allocate`, one after the other."""
        return OrderedTurns(session, self)

    def note_turn(self, job: Job) -> None:
        """A job has its turn: plugins hear of it if it finds no room."""
        self._had_turn.add(job)
        slot = self.columns.slots.get(job)
        if slot is not None:
            self.columns.had_turn[slot] = True

    def worth_placing(self, session: Session) -> list[Job]:
        return list(session.cluster.backlog)

    # -- who sleeps

    def close(self, session: Session) -> None:
        cluster = session.cluster
        for job in [job for job in cluster.dirty.jobs if job in self._keys]:
            self._wake_up(job)
        if not EVICTING.isdisjoint(session.policy.actions):
            super().close(session)
        elif len(self.bound) > len(self.columns) + SPARE_SHAPES:
            self.bound.keep(task.shape for task in self.columns.tasks if task is not None)
        sorts = not session.rules.job_order_follows_all
        for job in {**self._awake, **cluster.dirty.jobs}:
            if lacks_pods(job):
                self._awake[job] = None
            elif job not in cluster.backlog:
                self._awake.pop(job, None)
            elif job in session.uncommitted.promised:
                self._awake[job] = None  # it is tried until the room that it was promised is free
            elif sorts and waits_for_room(session, job):
                with suppress(*session.confined):  # whoever fails here fails over the job, and is named then
                    self._fall_asleep(session, job)

    def _fall_asleep(self, session: Session, job: Job) -> None:
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
        self._awake.pop(job, None)

    def recall(self, session: Session, job: Job) -> None:
        attempt = self._attempts.get(job)
        if attempt is None:
            super().recall(session, job)
        elif job not in session.verdicts:
            self.restore(session, job, attempt)

    # -- for the turns

    def queues(self) -> list[Queue]:
        """The queues in which jobs are asleep."""
        return list(self._entries)

    def nth(self, queue: Queue, place: int) -> Job | None:
        """The job at a place among those that are asleep in a queue."""
        entries = self._entries.get(queue, ())
        return self.columns.jobs[entries[place][1]] if place < len(entries) else None


def lacks_pods(job: Job) -> bool:
    """Whether a job was admitted and its controller has not created its pods yet."""
    return not job.tasks and job.phase == names.GROUP_INQUEUE and job.visible


class OrderedTurns:
    """Turns of the jobs that are awake and, queue by queue, of those that are asleep."""

    def __init__(self, session: Session, waits: OrderedWaits):
        self._session = session
        self._waits = waits
        self._places = dict.fromkeys(waits.queues(), 0)
        self._next: dict[Queue, Job] = {}
        """The job of each queue that is asleep and whose turn is next."""
        self._jobs: JobsByQueue = session.jobs_by_queue(())
        self._chosen = False
        self._clock = -1
        self._may_fit: Bools = np.zeros(0, dtype=bool)
        self._refused: set[Any] = set()
        self._overused: list[Queue] = []
        self._had_first_turn: Job | None = None
        """The job to which a start was promised before, until it is to have another turn."""
        self.only_promises = False
        """Whether these are turns of queues that have had their share: their jobs may be promised a start, no more."""

    def __iter__(self) -> Iterator[Job]:
        session, waits = self._session, self._waits
        first = [job for queue in self._places if (job := self._advance(queue)) is not None]
        waiting = [*waits.awake(session), *first]
        jobs = self._jobs = session.jobs_by_queue(waiting)
        promised = self._promised_before(waiting)
        if promised is not None:
            self._had_first_turn = promised
            waits.note_turn(promised)
            yield promised
            self._choose(jobs)
            self._follow(jobs, promised)
        yield from self._turns_of(jobs, self._is_overused)
        self.only_promises = True
        for queue in self._overused:
            jobs.restore(queue)
        yield from self._turns_of(jobs, None)

    def _promised_before(self, waiting: Iterable[Job]) -> Job | None:
        """The job that keeps its place before others, whatever became of the shares by which queues are ordered.

        Else it would lose its nodes as soon as they are free: the queues of those that held them then come first.
        None if a job of a higher priority waits, or one that runs below its minimum, or its queue has had its share.
        """
        session, needs = self._session, self._session.needs
        job = session.rules.promised_before()
        if job is None or job.queue is None or job.waits_for_queue or not job.visible:
            return None
        if job not in session.cluster.backlog and not lacks_pods(job):
            return None
        if session.rules.overused(job.queue):
            return None
        place, runs_short = (job.queue.priority, job.priority), needs.runs_short(job)
        for other in waiting:
            if other.queue is None or other is job:
                continue
            if (other.queue.priority, other.priority) > place or (needs.runs_short(other) and not runs_short):
                return None
        return job

    def _is_overused(self, queue: Queue) -> bool:
        overused = self._session.rules.overused(queue)
        if overused:
            self._overused.append(queue)
        return overused

    def _turns_of(self, jobs: JobsByQueue, skip: Callable[[Queue], bool] | None) -> Iterator[Job]:
        waits = self._waits
        for queue, job in jobs.turns(skip):
            sleeping = self._next.get(queue) is job
            if job is not self._had_first_turn:
                waits.note_turn(job)
                yield job
            if not self._chosen:
                self._choose(jobs)
            if sleeping:
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
        job = self._waits.nth(queue, place)
        self._places[queue] = place + 1
        if job is None:
            self._next.pop(queue, None)
        else:
            self._next[queue] = job
        return job

    def _choose(self, jobs: JobsByQueue) -> None:
        """Once plugins say who may overtake: let those have their turns."""
        columns = self._waits.columns
        slots = self._session.rules.may_overtake(columns)
        if slots is None:
            return
        self._chosen = True
        for slot in slots.tolist():
            job = columns.jobs[slot]
            if job is not None:
                jobs.push(job)

    def push(self, job: Job) -> None:
        """Let a job have another turn."""
        if job is self._had_first_turn:
            self._had_first_turn = None
        self._jobs.push(job)

    def may_fit(self, job: Job) -> bool:
        """Whether there could be room for a job, by a bound that is never too low."""
        waits, session = self._waits, self._session
        slot = waits.columns.slots.get(job)
        if slot is None:
            return True
        task, needed, queue = waits.columns.tasks[slot], waits.columns.needed(slot), job.queue
        if not self._fits()[slot] or task is None or queue is None:
            return False
        kind = (queue, task.shape, needed, job.has_started)
        if kind not in self._refused and not session.rules.may_allocate(queue, task, needed):
            self._refused.add(kind)
        return kind not in self._refused and waits.bound.may_take(session, task, needed, True)

    def _fits(self) -> Bools:
        columns = self._session.cluster.columns
        if self._clock != columns.clock:
            self._clock = columns.clock
            self._may_fit = self._waits.columns.may_fit(columns.future_idle)
        return self._may_fit
