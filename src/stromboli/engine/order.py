"""The order of queues and jobs, by keys that may change while they wait (spec 02 0.2, 0.3)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stromboli.engine.attribution import take_attribution
from stromboli.model.job import Job
from stromboli.model.queue import Queue, lineage

if TYPE_CHECKING:
    from stromboli.engine.session import Session

T = TypeVar("T", Job, Queue)
Key = tuple[Any, ...]


class Heap(Generic[T]):
    """Items by a key that may change while they wait; before a pop, `rekey` those whose key may have changed.

    An item whose key raises is left out: `guard(item)` records the error.
    """

    def __init__(self, key: Callable[[T], Key], guard: Callable[[T], AbstractContextManager[None]]):
        self._key: Callable[[T], Key] = key
        self._guard: Callable[[T], AbstractContextManager[None]] = guard
        self._entries: list[tuple[Key, int, T]] = []
        self._current: dict[T, int] = {}
        self._serial = 0

    def __bool__(self) -> bool:
        return bool(self._current)

    def __contains__(self, item: T) -> bool:
        return item in self._current

    def push(self, item: T) -> None:
        self._current.pop(item, None)
        with self._guard(item):
            key = self._key(item)
            self._serial += 1
            self._current[item] = self._serial
            heapq.heappush(self._entries, (key, self._serial, item))

    def rekey(self, items: Iterable[T]) -> None:
        for item in items:
            if item in self._current:
                self.push(item)

    def rekey_all(self) -> None:
        try:
            entries = [(self._key(item), serial, item) for item, serial in self._current.items()]
        except BaseException as error:
            take_attribution(error)
            self.rekey(list(self._current))  # one by one, so that only those that fail are left out
        else:
            self._entries = entries
            heapq.heapify(self._entries)

    def first(self) -> T | None:
        """The item that `pop` would return, if there is one."""
        while self._entries and self._current.get(self._entries[0][2]) != self._entries[0][1]:
            heapq.heappop(self._entries)
        return self._entries[0][2] if self._entries else None

    def pop(self) -> T:
        while True:
            _, serial, item = heapq.heappop(self._entries)
            if self._current.get(item) == serial:
                del self._current[item]
                return item


class JobsByQueue:
    """Pending jobs by queue. A queue is ordered again after each of its turns, by its share at that time."""

    def __init__(self, session: Session, jobs: Iterable[Job]):
        self._session = session
        key = self._key_by_next_job if session.needs.reserves_minimum else session.queue_key
        self._queues: Heap[Queue] = Heap(key, session.guard_queue)
        self._jobs: dict[Queue, Heap[Job]] = {}
        self._seen = len(session.cluster.feed.touched)
        for job in jobs:
            self.push(job)
        for queue in self._jobs:
            self._queues.push(queue)

    def push(self, job: Job) -> None:
        """Put a job (back) into its queue."""
        queue = job.queue
        if queue is not None:
            waiting = self._jobs.get(queue)
            if waiting is None:
                waiting = self._jobs[queue] = Heap(self._session.job_key, self._session.guard)
            waiting.push(job)

    def _key_by_next_job(self, queue: Queue) -> Key:
        """The key of a queue; one whose next job runs below its minimum comes first among queues of equal priority."""
        key, job = self._session.queue_key(queue), self._jobs[queue].first()
        return (-queue.priority, job is None or not self._session.needs.runs_short(job), *key)

    def restore(self, queue: Queue) -> None:
        """Let a queue that was skipped have its turns."""
        self._queues.push(queue)

    def turns(self, skip: Callable[[Queue], bool] | None = None) -> Iterator[tuple[Queue, Job]]:
        """Queue and job, one job per turn; a queue that is skipped once is left out for good."""
        self._rekey()
        while self._queues and not self._session.should_stop():
            queue, job = self._queues.pop(), None
            with self._session.guard_queue(queue):
                if self._jobs[queue] and not (skip is not None and skip(queue)):
                    job = self._jobs[queue].pop()
            if job is not None:
                yield queue, job
                self._rekey()
                self._queues.push(queue)

    def visits(self, skip: Callable[[Queue], bool] | None = None) -> Iterator[tuple[Queue, Iterator[Job]]]:
        """Each queue once, with all its jobs; each job is the first at the moment when it is taken."""
        self._rekey()
        while self._queues:
            queue, open_still = self._queues.pop(), False
            with self._session.guard_queue(queue):
                open_still = not (skip is not None and skip(queue))
            if open_still:
                yield queue, self._jobs_of(queue)
                self._rekey()

    def _jobs_of(self, queue: Queue) -> Iterator[Job]:
        waiting = self._jobs[queue]
        while waiting:
            yield waiting.pop()
            self._rekey()

    def drain(self) -> Iterator[Job]:
        """Every job once, queue after queue, in the order of this moment."""
        while self._queues:
            waiting = self._jobs[self._queues.pop()]
            while waiting:
                yield waiting.pop()

    def _rekey(self) -> None:
        """Sort again what moves may have changed."""
        rules, touched = self._session.rules, self._session.cluster.feed.touched
        if len(touched) > self._seen:
            moved = dict.fromkeys(touched[self._seen :])
            self._seen = len(touched)
            for job in moved:
                if job.queue in self._jobs and job in self._jobs[job.queue]:
                    self._jobs[job.queue].rekey((job,))
            queues = dict.fromkeys(job.queue for job in moved if job.queue is not None)
            self._queues.rekey(self._branches_of(queues) if rules.queue_order_follows_branch else queues)
            if rules.job_order_follows_all:
                for waiting in self._jobs.values():
                    waiting.rekey_all()
        if rules.queue_order_follows_all:
            self._queues.rekey_all()

    def _branches_of(self, queues: Iterable[Queue]) -> dict[Queue, None]:
        """These queues, and waiting queues below the same topmost queues."""
        known = self._session.cluster.queues
        topmost = dict.fromkeys(_topmost(queue, known) for queue in queues)
        return dict.fromkeys(queue for top in topmost for queue in self._branches.get(top, ()))

    @cached_property
    def _branches(self) -> dict[Queue, list[Queue]]:
        branches: dict[Queue, list[Queue]] = {}
        for queue in self._jobs:
            branches.setdefault(_topmost(queue, self._session.cluster.queues), []).append(queue)
        return branches


def _topmost(queue: Queue, queues: dict[str, Queue]) -> Queue:
    """The ancestor of a queue just below the root, or the queue itself."""
    return lineage(queue, queues)[-2:][0]
