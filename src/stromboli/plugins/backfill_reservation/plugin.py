"""Backfill with reservations, as users of HPC schedulers know it. An extension of Stromboli's, not in Volcano."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

import numpy as np

from stromboli.api import names
from stromboli.api.errors import quoted
from stromboli.api.go_scalars import duration
from stromboli.engine.decisions import Event
from stromboli.engine.placement.node_fit import slots
from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Plugin, Promise
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
from stromboli.plugins.backfill_reservation.reservation_search import (
    ReservationSearch,
    StartReservation,
    is_refused_by_queue,
)
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
    from stromboli.model.reservations import OwnRoom
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)
MAX_UNPROMISED_JOBS = 32
"""After so many jobs in a cycle without a known start, or held by their queue's limits, no start is promised."""
RESERVED = "node(s) are reserved for an earlier job"


@dataclass(frozen=True, slots=True)
class BackfillArguments:
    """Who may start before a job that waits for room."""

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

    name = "backfill-reservation"
    Arguments = BackfillArguments
    arguments: BackfillArguments

    @classmethod
    def build(cls, arguments: BackfillArguments, switches: dict[str, bool]) -> Plugin:
        if arguments.mode != "conservative":
            return cls(arguments, switches)
        from stromboli.plugins.backfill_reservation.conservative import ConservativeBackfill

        return ConservativeBackfill(arguments, switches)

    def __init__(self, arguments: BackfillArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._ends = ExpectedEnds()
        self._head: Job | None = None
        """The first job that waits for room in this session."""
        self._last_head: Job | None = None
        """The same of the session before."""
        self._reservation: StartReservation | None = None
        self._promise: Promise | None = None
        self._last: tuple[StartReservation | None, Promise | None] = (None, None)
        """What was promised in the session before."""
        self._shares: dict[Queue, ShareReservation] = {}
        """The first job of each queue that waits for the limits of its queue in this session."""
        self._last_shares: dict[Queue, ShareReservation] = {}
        """The same of the session before."""
        self._told: dict[Job, Promise | None] = {}
        """What was promised then to jobs that waited for the limits of their queues."""
        self._favoured: set[Job | None] = set()
        """The jobs with a reservation at the end of the session before."""
        self._version = 0
        self._searching = False
        self._room_came = True
        """Whether anything changed since the last session that may let jobs start earlier than promised."""
        self._left_early = False
        self._queue_specs: dict[str, QueueSpec | None] = {}
        self._early = EarlyAdmission()
        self._reserve_after = duration(arguments.reserve_after)
        self._cleared: dict[Task, OwnRoom] = {}
        """The tasks for which pods were evicted, and the capacity that is held for each."""

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._now = session.reads.time
        self._version += 1
        self._ends.update(session.cluster, dirty, self._now)
        self._early.opening(session, dirty)
        reservations = session.cluster.reservations
        owners = ((task, reservations.own_room(task)) for task, _ in reservations.owners())
        self._cleared = {task: own for task, own in owners if own is not None}
        warn_of_limits(session, dirty)
        ends = self._ends
        self._room_came = (
            ends.was_rebuilt or ends.ended_early or self._left_early or self._queues_changed(dirty)
        )
        self._left_early = False
        last = self._reservation if self._reservation and self._reservation.is_there() else None
        self._last = last, self._promise
        self._last_head = self._head
        self._head = self._reservation = self._promise = None
        self._unpromised_count = 0
        self._last_shares, self._shares = self._shares, {}

    def _queues_changed(self, dirty: Dirty) -> bool:
        """Whether the limits of a queue may be others than in the session before."""
        specs = {queue.name: queue.object.spec if queue.object else None for queue in dirty.queues}
        changed = any(
            name not in self._queue_specs or self._queue_specs[name] != specs[name] for name in specs
        )
        self._queue_specs.update(specs)
        return changed

    def closing(self, session: Session) -> None:
        last = self._last[0]
        if self._promise != self._last[1] or (last is not None and last.job is not self._head):
            for job in (self._head, last.job if last is not None else None):
                if job is not None and job.visible:
                    session.reports.news[job] = None
        self._report_shares(session)
        before, self._favoured = self._favoured, {self._head, *(each.job for each in self._shares.values())}
        if self._favoured != before and session.cluster.waiting:
            # which jobs are admitted early depends on the reservations of the cycle before
            session.has_come(float(np.nextafter(self._now, inf)))
        session.has_come(self._ends.next_end())
        reservation = self._reservation
        if reservation is not None and reservation.places and not self._was_tried(reservation):
            session.has_come(max(reservation.start, float(np.nextafter(self._now, inf))))

    def _report_shares(self, session: Session) -> None:
        """Report to jobs when the limits of their queues will allow them, if that is another time than before."""
        jobs = [each.job for each in self._shares.values()]
        before, self._told = self._told, {job: self.promised(job) for job in jobs}
        changed = [job for job in before | self._told if before.get(job) != self._told.get(job)]
        session.reports.news.update(dict.fromkeys(job for job in changed if job.visible))

    def _was_tried(self, reservation: StartReservation) -> bool:
        """Whether the places of a reservation were tried in this session: from its start on, once it is known."""
        last = self._last[0]
        return last is not None and last.start <= self._now and last.places == reservation.places

    def on_move(self, change: Change) -> None:
        self._ends.on_move(change)
        if not self._searching and change.old_status in HOLDING and change.status not in HOLDING:
            self._left_early = True
        if self._searching:
            return
        self._take_share(change)
        reservation, task = self._reservation, change.task
        if reservation is None or not self._stays_beyond(task):
            return
        node = change.node or change.old_node
        placed, was_placed = change.status in PLACED, change.old_status in PLACED
        if node is None or placed is was_placed or Status.PENDING not in (change.status, change.old_status):
            return
        sign, own = placed - was_placed, self._cleared.get(task)
        reservation.take(node.row, task.shape.dense(len(reservation.spare)), sign)
        if own is not None:  # it was taken off already
            reservation.take(own.row, own.amount, -sign)
        self._version += 1

    # -- the gate

    def admitted_early(self, job: Job) -> bool:
        """The first waiting job of a queue is admitted, to be promised a start, and jobs that need not wait for it."""
        return (self._early.is_first(job) and self._is_start_known(job)) or self._may_start_now(job)

    def job_enqueued(self, job: Job) -> None:
        self._early.note(job)

    def _is_start_known(self, job: Job) -> bool:
        """Whether the time is known at which nodes and queue limits allow a job that the gate refuses.

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

    def _has_reservations(self) -> bool:
        return self._last[0] is not None or bool(self._last_shares)

    def _may_start_now(self, job: Job) -> bool:
        """Whether a job fits into free capacity without delaying those to which a start was promised last.

        What these ask for counts at the gate already, so that it refuses others.
        """
        if self.arguments.mode == "none" or not self._has_reservations() or not self._early.may_fit(job):
            return False
        reservation, free = self._last[0], self.session.cluster.columns.future_idle
        stays = reservation is not None and self._now + self._ends.limit_of(job) > reservation.start
        if reservation is not None and stays and not self._outranks(job, reservation.job):
            free = reservation.beside(free) if len(reservation.spare) == len(free) else free
        if self._exceeds_share(job, job.min_resources or {}, self._last_shares) is not None:
            return False
        return self._early.leaves_owed(
            job, self.session.cluster.columns.future_idle
        ) and self._early.fits_now(job, free)

    # -- who waits for the limits of its queue

    def _reserve_share(self, job: Job, start: float | None) -> None:
        """Let the limits of its queue leave what a job needs: from its promised start on, or when they allow it.

        Of jobs without a promised start, that is the first of the queue that its limits keep waiting.
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

    def _take_share(self, change: Change) -> None:
        """Follow what tasks take of the limits of queues that are reserved."""
        job, sign = change.task.job, (change.status in PLACED) - (change.old_status in PLACED)
        if not sign or not self._shares or job is None or job.queue is None:
            return
        queues, end = (
            lineage(job.queue, self.session.cluster.queues),
            self._now + self._ends.limit(change.task),
        )
        for reservation in self._shares.values():
            if reservation.job is not job and end > reservation.start:
                reservation.take(change.task.request, queues, sign)

    # -- who waits for room

    def no_room(self, job: Job, attempt: Attempt) -> None:
        if self._gave_up():
            return
        self._reserve_nodes(job, attempt)
        self._unpromised_count += self._head is None
        reservation = self._reservation if job is self._head else None
        self._reserve_share(job, reservation.start if reservation is not None else None)

    def _gave_up(self) -> bool:
        """Whether so many jobs were promised nothing that no job is in this cycle."""
        return self._head is None and self._unpromised_count >= MAX_UNPROMISED_JOBS

    def _reserve_nodes(self, job: Job, attempt: Attempt) -> None:
        """Promise a start to the first job that waits for room on nodes."""
        last = self._last[0]
        known = last if last is not None and last.job is job else None
        if self._head is not None or (known is None and self._is_limited(job)):
            return
        if known is not None and known.without_pods and job.tasks:
            known = None
        self._searching = True
        try:
            if self.arguments.mode == "none" and job.tasks:
                if ReservationSearch(self.session, self._ends).could_ever_fit(job, attempt):
                    self._head = job
                else:
                    self._early.pass_over(job)
            else:
                self._promise_start(job, attempt, known)
        finally:
            self._searching = False

    def _promise_start(self, job: Job, attempt: Attempt, known: StartReservation | None) -> None:
        """Reserve nodes for a job from its earliest start on; where pods have no time limit, only if it waits long."""
        room_came = self._room_came or job in self.session.changed.jobs
        for guesses in (False, True) if self._has_waited_long(job) else (False,):
            search = ReservationSearch(self.session, self._ends, guesses)
            if job.tasks:
                reservation = search.reservation(job, attempt, known, room_came)
            else:
                reservation = search.reservation_without_pods(job, known)
            if reservation is not None:
                self._head, self._reservation = job, reservation
                self._promise = self._promise_of(reservation, search)
                self._version += 1
                return
        if not job.tasks or not search.could_ever_fit(job, attempt):
            self._early.pass_over(job)

    def _has_waited_long(self, job: Job) -> bool:
        """Whether a job waits so long that nodes are reserved for it on which pods without a time limit run."""
        return self._reserve_after is not None and self.session.has_come(job.created + self._reserve_after)

    def _is_limited(self, job: Job) -> bool:
        """Whether the limits of its queue keep a job waiting though nodes may have room for it."""
        if not is_refused_by_queue(self.session, job):
            return False
        first_of_shape = {task.shape: task for task in job.by_status[Status.PENDING]}
        needed = self.session.rules.tasks_needed(job) if len(first_of_shape) == 1 else 1
        free = self.session.cluster.columns.future_idle
        return all(
            int(slots(shape, free[:, self.session.evaluation(task).allowed]).sum()) >= needed
            for shape, task in first_of_shape.items()
        )

    def _promise_of(self, reservation: StartReservation, search: ReservationSearch) -> Promise | None:
        nodes = tuple(node.name for node in reservation.nodes)
        if reservation is self._last[0] and self._last[1] is not None:
            return self._last[1]
        ending = search.ending_before(reservation.start, reservation.rows)
        if any(self._ends.limit(task) == inf for task in ending):
            return None  # it is not known when they come free
        after = dict.fromkeys(task.job.key for task in ending if task.job)
        return Promise(reservation.start, nodes, tuple(after), reservation.start <= self._now)

    def promised_before(self) -> Job | None:
        return self._last_head

    def keeps_first_turn(self, job: Job) -> bool:
        return self.arguments.mode == "easy" and self._has_waited_long(job)

    def promised(self, job: Job) -> Promise | None:
        if job is self._head:
            return self._promise
        share = self._shares.get(job.queue) if job.queue is not None else None
        if (
            self._head is not None
            or share is None
            or share.job is not job
            or share.is_guess
            or not share.is_lacking
        ):
            return None  # with nodes reserved for another job, it is not known when this one starts
        return Promise(share.start, (), share.after, share.start <= self._now)

    def reserved_places(self, job: Job) -> Mapping[Task, Node] | None:
        last = self._last[0]
        due = last is not None and last.job is job and last.start <= self._now
        return last.places if last is not None and due else None

    # -- who may overtake

    def held_back(self, job: Job) -> HeldBack | None:
        if job.reserved:
            return None  # pods were evicted for it: what they held is its own
        share = None
        if self._shares:
            share = self._exceeds_share(job, request_to_start(self.session, job), self._shares)
        if share is not None and not is_refused_by_queue(self.session, job):
            return self._would_delay(job, share)
        head, reservation = self._head, self._reservation
        if head is None or job is head or self._outranks(job, head):
            return None
        if reservation is None:
            message = f"{head.key} waits for capacity before it, and the policy allows no backfill"
            summary = "an earlier job waits for capacity, and the policy allows no backfill"
            return HeldBack(message, summary, f"set `mode: easy` for plugin {self.name}, or wait")
        return self._would_delay(job, reservation) if self._delays(job, reservation) else None

    def _delays(self, job: Job, reservation: StartReservation) -> bool:
        """Whether a job of one kind of tasks has room now, but none that leaves the reservation alone."""
        pending = job.by_status[Status.PENDING]
        first = next(iter(pending), None)
        if first is None or not self._must_leave_room(first):
            return False
        if any(task.shape is not first.shape for task in pending):
            return False
        free, needed = self.session.cluster.columns.future_idle, self.session.rules.tasks_needed(job)
        if int(slots(first.shape, free).sum()) < needed:
            return False
        return int(slots(first.shape, reservation.beside(free)).sum()) < needed

    def _would_delay(self, job: Job, reservation: StartReservation | ShareReservation) -> HeldBack:
        summary = "it fits now, but would delay an earlier job for which that capacity is reserved"
        message = f"it would delay {reservation.job.key}, for which the capacity that it needs is reserved"
        remedy = f"a shorter time limit (annotation {names.TIME_LIMIT}) lets it start earlier"
        return HeldBack(message, summary, remedy)

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        if self._head is None and not self._gave_up():
            return None
        allowed = waiting.may_fit(self.session.cluster.columns.future_idle)
        if self._reservation is not None:
            in_time = self._now + waiting.limits <= self._reservation.start
            free = self.session.cluster.columns.future_idle
            allowed = allowed & in_time | waiting.may_fit(self._reservation.beside(free))
        elif self._head is not None:
            allowed[:] = False
        if self._head is not None:
            self._add_outranking(waiting, allowed)
        allowed &= self._within_limits(waiting, allowed)
        allowed[self._slots_of_shares(waiting)] = True
        return np.flatnonzero(allowed)

    def _add_outranking(self, waiting: WaitingColumns, allowed: Bools) -> None:
        """Add the slots of jobs that could fit and are not held back for the first job."""
        fitting = waiting.may_fit(self.session.cluster.columns.future_idle)
        for slot in np.flatnonzero(fitting & ~allowed).tolist():
            job = waiting.jobs[slot]
            allowed[slot] = job is not None and self._head is not None and self._outranks(job, self._head)

    def _within_limits(self, waiting: WaitingColumns, slots: Bools) -> Bools:
        """Of these slots, those whose jobs the limits of their queues could allow, asked once for jobs of a kind."""
        asked: dict[tuple[Queue, Shape, int, bool], bool] = {}
        within: Bools = np.zeros(len(slots), dtype=bool)
        for slot in np.flatnonzero(slots).tolist():
            job, task = waiting.jobs[slot], waiting.tasks[slot]
            if job is not None and task is not None and job.queue is not None:
                kind = (job.queue, task.shape, waiting.needed(slot), job.has_started)
                if kind not in asked:
                    asked[kind] = self.session.rules.may_allocate(job.queue, task, kind[2])
                within[slot] = asked[kind]
        return within

    def _slots_of_shares(self, waiting: WaitingColumns) -> list[int]:
        """The slots of jobs for which the limits of their queues were reserved last: they are reserved again."""
        jobs = (reservation.job for reservation in self._last_shares.values())
        return [waiting.slots[job] for job in jobs if job in waiting.slots]

    def shape_key(self, task: Task) -> Hashable:
        """Whether it may be kept from the nodes of a reservation, and where capacity is held for it."""
        own = self._cleared.get(task)
        return self._must_leave_room(task) and (True if own is None else own.row)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if self._must_leave_room(task):
            yield NodeFilter(self._beside_reservation, self.name, "pods", lambda _: self._filter_version())

    def _is_evicting(self) -> bool:
        """Whether an action runs that makes its own room, whatever is reserved."""
        return self.session.action not in ("", "enqueue", "allocate", "backfill")

    def _filter_version(self) -> int:
        """Another number whenever the filter may answer otherwise."""
        return -self._version if self._is_evicting() else self._version

    def _beside_reservation(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if self._reservation is not None and not self._is_evicting():
            passes = self._reservation.leaves_room(self.session.cluster, task.shape)
            self._pass_own(task, passes)
            yield Check(passes, RESERVED)

    def _pass_own(self, task: Task, passes: Bools) -> None:
        """Let a task use what is held for it, which was promised to no other job."""
        own = self._cleared.get(task)
        if own is not None:
            passes[own.row] = True

    def _must_leave_room(self, task: Task) -> bool:
        """Whether a task may only take what the reserved job does not need."""
        reservation, job = self._reservation, task.job
        if reservation is None or not self._stays_beyond(task):
            return False
        return job is None or not self._outranks(job, reservation.job)

    def _outranks(self, job: Job, first: Job) -> bool:
        """Whether a job of another queue has a higher priority than the job to which a start is promised.

        That counts no more once the latter has waited for `reserveAfter`.
        """
        if job.queue is None or first.queue is None or job.queue is first.queue:
            return False
        if not self.session.rules.orders_jobs_by_priority:
            return False
        if (job.queue.priority, job.priority) <= (first.queue.priority, first.priority):
            return False
        return not self.keeps_first_turn(first)

    def _stays_beyond(self, task: Task) -> bool:
        """Whether a task may still run when the reserved job is to start."""
        reservation = self._reservation
        if reservation is None or task.job is reservation.job or task.best_effort:
            return False
        limit = self._ends.limit(task)
        return limit == inf or self._now + limit > reservation.start


# -- time limits that cannot be read: told to whoever wrote them, as they count as none


def warn_of_limits(session: Session, dirty: Dirty) -> None:
    """Tell in events about jobs and queues that changed what is wrong with their time limits."""
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
