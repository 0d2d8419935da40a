"""The plugin `backfill-reservation`: what its modes share. An extension of Stromboli's, not in Volcano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf, nextafter
from typing import TYPE_CHECKING, Literal

import numpy as np

from stromboli.api import names
from stromboli.api.errors import quoted
from stromboli.api.go_scalars import duration
from stromboli.engine.decisions import Event
from stromboli.engine.plugin import HeldBack, Plugin, Promise
from stromboli.model.queue import lineage
from stromboli.model.status import Status
from stromboli.model.time_limits import EXAMPLE, unreadable_limit
from stromboli.plugins.backfill_reservation.early_admission import (
    EarlyAdmission,
    ShareReservation,
    request_to_start,
    share_reservation,
)
from stromboli.plugins.backfill_reservation.expected_ends import HOLDING, ExpectedEnds
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch, is_refused_by_queue
from stromboli.policy.argument_checks import between, duration_like
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import QueueSpec
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.ordered_waits import Bools, WaitingColumns
    from stromboli.model.amounts import Amounts
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.reservations import OwnReservation
    from stromboli.model.task import Task


PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)
RESERVED = "node(s) are reserved for an earlier job"


@dataclass(frozen=True, slots=True)
class BackfillArguments:
    """Which jobs may start before a job without capacity."""

    mode: Literal["easy", "conservative", "none"] = arg(
        "mode",
        "easy",
        "`easy`: the first job that lacks capacity is promised a start, and others start before it if they do not "
        "delay it; `conservative`: every job is promised a start; `none`: no job starts before the first.",
    )
    depth: int = arg(
        "depth",
        10_000,
        "With `conservative`: maximum number of promised starts; other jobs start if they delay none of them.",
        check=between(1, 1_000_000),
    )
    reserve_after: str = arg(
        "reserveAfter",
        "",
        "With `easy`: waiting time of the first job, such as 6h, after which nodes with pods without a time limit are "
        "reserved for it; these pods are expected to run as long again as they have run. From then on jobs of a "
        "higher priority in other queues do not precede it. Default: such nodes are not reserved.",
        check=duration_like("6h", above_zero=True),
    )


class BackfillReservation(Plugin):
    """Promises the first job that lacks capacity a start; later jobs start now if they do not delay it."""

    # This class has what the modes share: the limits of queues, admission, and when running tasks end.

    name = "backfill-reservation"
    Arguments = BackfillArguments
    arguments: BackfillArguments

    @classmethod
    def build(cls, arguments: BackfillArguments, switches: dict[str, bool]) -> Plugin:
        from stromboli.plugins.backfill_reservation.conservative import ConservativeBackfill
        from stromboli.plugins.backfill_reservation.easy import EasyBackfill

        mode = ConservativeBackfill if arguments.mode == "conservative" else EasyBackfill
        return mode(arguments, switches)

    def __init__(self, arguments: BackfillArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._ends = ExpectedEnds()
        self._early = EarlyAdmission()
        self._reserve_after = duration(arguments.reserve_after)
        self._shares: dict[Queue, ShareReservation] = {}
        """The first job of each queue that waits for the limits of its queue in this session."""
        self._last_shares: dict[Queue, ShareReservation] = {}
        """The same of the session before."""
        self._reported: dict[Job, Promise | None] = {}
        """The promises that were reported to jobs that wait for the limits of their queues."""
        self._cleared: dict[Task, OwnReservation] = {}
        """The tasks for which pods were evicted, and the capacity that is held for each."""
        self._version = 0
        """Increases whenever the filter may answer otherwise."""
        self._searching = False
        self._capacity_came = True
        """Whether anything changed since the last session that may let jobs start earlier than promised."""
        self._left_early = False
        self._queue_specs: dict[str, QueueSpec | None] = {}

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._now = session.reads.time
        self._next_cycle = nextafter(self._now, inf)
        """The earliest time of the next cycle."""
        self._version += 1
        self._ends.update(session.cluster, dirty, self._now)
        self._early.opening(session, dirty)
        reservations = session.cluster.reservations
        owners = ((task, reservations.own_reservation(task)) for task, _ in reservations.owners())
        self._cleared = {task: own for task, own in owners if own is not None}
        warn_of_limits(session, dirty)
        ends = self._ends
        self._capacity_came = (
            ends.was_rebuilt or ends.ended_early or self._left_early or self._queues_changed(dirty)
        )
        self._left_early = False
        self._last_shares, self._shares = self._shares, {}

    def _queues_changed(self, dirty: Dirty) -> bool:
        """Whether the limits of a queue may differ from those of the session before."""
        specs = {queue.name: queue.object.spec if queue.object else None for queue in dirty.queues}
        changed = any(
            name not in self._queue_specs or self._queue_specs[name] != specs[name] for name in specs
        )
        self._queue_specs.update(specs)
        return changed

    def _report_shares(self, session: Session) -> None:
        """Report to jobs when the limits of their queues will allow them, if that time has changed."""
        jobs = [each.job for each in self._shares.values()]
        before, self._reported = self._reported, {job: self.promised(job) for job in jobs}
        changed = [job for job in before | self._reported if before.get(job) != self._reported.get(job)]
        session.reports.news.update(dict.fromkeys(job for job in changed if job.visible))

    def _look_again(self, session: Session) -> None:
        """Ask for a cycle when a task that is held for capacity being freed would begin to delay a promised start.

        Without a known start of a running task, its expected end and the promised starts move with the time.
        """
        starts = np.sort(np.array(list(self._starts_to_come())))
        if not len(starts):
            return
        if self._ends.has_unstarted:
            session.has_come(self._next_cycle)
        held = (task for job in session.attempts.uncommitted.promised for task in _held_tasks(job))
        for limit in {self._ends.limit(task) for task in held}:
            first = int(starts.searchsorted(self._now + limit))
            if first < len(starts):
                session.has_come(max(nextafter(starts[first] - limit, inf), self._next_cycle))

    def _starts_to_come(self) -> Iterator[float]:
        """The promised starts that are to come."""
        return (each.start for each in self._shares.values() if each.start > self._now)

    def on_move(self, change: Change) -> None:
        self._ends.on_move(change)
        if self._searching:
            return
        if change.old_status in HOLDING and change.status not in HOLDING:
            self._left_early = True
        sign = (change.status in PLACED) - (change.old_status in PLACED)
        if sign:
            self._take_share(change.task, sign)
            node = change.node or change.old_node
            if node is not None and Status.PENDING in (change.status, change.old_status):
                self._take_node(change.task, node, sign)

    def _take_node(self, task: Task, node: Node, sign: int) -> None:
        """Follow what a task takes of promised capacity: it was placed on a node, or (-1) no longer is."""

    # -- the gate

    def job_enqueued(self, job: Job) -> None:
        self._early.note(job)

    def _is_start_known(self, job: Job) -> bool:
        """Whether it is known when nodes and queue limits will allow a job that the gate refuses.

        A job that fits now is refused for what admitted jobs still lack, and waits for these at the gate.
        """
        if self._early.fits_now(job, self.session.cluster.columns.future_idle):
            return False
        if self.arguments.mode == "none":
            return True
        if not self._early.may_search(job):
            return False
        search = ReservationSearch(self.session, self._ends, self._has_waited_long(job))
        return search.start_by_minimum(job) < inf and self._share_reservation(job, self._now) is not None

    def _has_waited_long(self, job: Job) -> bool:
        """Whether a job is pending for so long that nodes with pods without a time limit are reserved for it."""
        return self._reserve_after is not None and self.session.has_come(job.created + self._reserve_after)

    def _may_start_now(self, job: Job) -> bool:
        """Whether a job fits into free capacity without delaying those to which a start was promised last.

        The requests of these jobs count at the gate already, so that it refuses others.
        """
        if self.arguments.mode == "none" or not self._has_reservations() or not self._early.may_fit(job):
            return False
        free = self.session.cluster.columns.future_idle
        beside = self._free_beside_promises(job, free)
        if self._exceeds_share(job, job.min_resources or {}, self._last_shares) is not None:
            return False
        return self._early.leaves_owed(job, free) and self._early.fits_now(job, beside)

    def _has_reservations(self) -> bool:
        """Whether anything was promised in the session before."""
        return bool(self._last_shares)

    def _free_beside_promises(self, job: Job, free: Ints) -> Ints:
        """What a job may take, of what is free on each node, without delaying a job with a promised start."""
        return free

    # -- jobs that wait for the limits of their queue

    def _reserve_share(self, job: Job, start: float | None) -> None:
        """Reserve queue limits for a job: from its promised start on, or from when they allow it.

        Without a promised start, only for the first job of the queue that its limits keep pending.
        """
        queue = job.queue
        if queue is None or queue in self._shares or self._searching:
            return
        if start is not None or not job.tasks or is_refused_by_queue(self.session, job):
            reservation = self._share_reservation(job, self._now if start is None else start)
            if reservation is not None and (start is not None or reservation.is_lacking):
                self._shares[queue] = reservation

    def _share_reservation(self, job: Job, start: float) -> ShareReservation | None:
        reservation = share_reservation(self.session, self._ends, job, start)
        if reservation is None and self._has_waited_long(job):
            return share_reservation(self.session, self._ends, job, start, True)
        return reservation

    def _exceeds_share(
        self, job: Job, request: Amounts, shares: Mapping[Queue, ShareReservation]
    ) -> ShareReservation | None:
        """The reservation that a job would delay by holding so much of the limits of queues."""
        if job.queue is None or not shares:
            return None
        queues, end = lineage(job.queue, self.session.cluster.queues), self._now + self._ends.limit_of(job)
        for reservation in shares.values():
            if (
                reservation.job is not job
                and end > reservation.start
                and not reservation.leaves(request, queues)
            ):
                return reservation
        return None

    def _take_share(self, task: Task, sign: int) -> None:
        """Follow what a task takes of reserved queue limits: it was placed, or (-1) no longer is."""
        job = task.job
        if not self._shares or job is None or job.queue is None:
            return
        queues, end = lineage(job.queue, self.session.cluster.queues), self._now + self._ends.limit(task)
        for reservation in self._shares.values():
            if reservation.job is not job and end > reservation.start:
                reservation.take(task.request, queues, sign)

    def _slots_of_shares(self, waiting: WaitingColumns) -> list[int]:
        """The slots of jobs for which the limits of their queues were reserved last: they are reserved again."""
        jobs = (reservation.job for reservation in self._last_shares.values())
        return [waiting.slots[job] for job in jobs if job in waiting.slots]

    def promised(self, job: Job) -> Promise | None:
        share = self._shares.get(job.queue) if job.queue is not None else None
        if share is None or share.job is not job or share.is_guess or not share.is_lacking:
            return None
        return Promise(share.start, (), share.after, share.start <= self._now)

    def held_back(self, job: Job) -> HeldBack | None:
        if job.reserved or not self._shares:  # capacity that was cleared for a job is its own
            return None
        share = self._exceeds_share(job, request_to_start(self.session, job), self._shares)
        return None if share is None or is_refused_by_queue(self.session, job) else would_delay(share.job)

    # -- the filter

    def _is_evicting(self) -> bool:
        """Whether an action runs that makes its own capacity, whatever is reserved."""
        return self.session.action not in ("", "enqueue", "allocate", "backfill")

    def _filter_version(self) -> int:
        """Another number whenever the filter may answer otherwise."""
        return -self._version if self._is_evicting() else self._version

    def _pass_own(self, task: Task, passes: Bools) -> None:
        """Let a task use what is held for it, which was promised to no other job."""
        own = self._cleared.get(task)
        if own is not None:
            passes[own.row] = True


def _held_tasks(job: Job) -> Iterator[Task]:
    """The tasks of a job that lose their places when the session closes."""
    return chain(job.by_status[Status.ALLOCATED], job.by_status[Status.PIPELINED])


def would_delay(first: Job) -> HeldBack:
    """A job is held back for the sake of one that comes before it."""
    summary = "it fits now, but would delay an earlier job for which that capacity is reserved"
    message = f"it would delay {first.key}, for which the capacity that it needs is reserved"
    remedy = f"a shorter time limit (annotation {names.TIME_LIMIT}) lets it start earlier"
    return HeldBack(message, summary, remedy)


# -- invalid time limits, which count as none


def warn_of_limits(session: Session, dirty: Dirty) -> None:
    """Record events about the invalid time limits of jobs and queues that changed."""
    jobs = session.cluster.jobs.values() if dirty.everything else dirty.jobs
    for job in jobs:
        if job.visible and (text := _unreadable_of(job)) is not None:
            session.record_event(job, "time-limit", names.WARNING, names.EVENT_FIELD_IGNORED, _message(text))
    queues = session.cluster.queues.values() if dirty.everything else dirty.queues
    memory = session.cluster.memory.setdefault("backfill-reservation", {})
    for queue in queues:
        text = unreadable_limit(queue.annotations)
        if text is None:
            memory.pop(queue.name, None)
        elif memory.get(queue.name) != text:
            session.restore_if_lost(memory, queue.name, memory.get(queue.name))
            memory[queue.name] = text
            message = _message(text)
            event = Event("Queue", "", queue.name, names.WARNING, names.EVENT_FIELD_IGNORED, message)
            session.journal.decisions.append(event)


def _unreadable_of(job: Job) -> str | None:
    text = unreadable_limit(job.annotations) if job.time_limit is None else None
    if text is not None:
        return text
    first = next(iter(job.tasks.values()), None)
    return unreadable_limit(first.annotations) if first is not None and first.time_limit is None else None


def _message(text: str) -> str:
    return f"annotation {names.TIME_LIMIT}: {quoted(text[:63])} is not a valid time limit and is ignored: use {EXAMPLE}"
