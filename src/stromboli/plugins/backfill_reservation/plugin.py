"""Backfill with reservations, as users of HPC schedulers know it. An extension of Stromboli's, not in Volcano."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes
from stromboli.engine.plugin import Attempt, HeldBack, Plugin
from stromboli.model.status import Status
from stromboli.plugins.backfill_reservation.expected_ends import ExpectedEnds
from stromboli.plugins.backfill_reservation.reservation import Reservation
from stromboli.plugins.backfill_reservation.reservation_search import ReservationSearch
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job
    from stromboli.model.task import Task

_PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)


@dataclass(frozen=True, slots=True)
class BackfillArguments:
    """Who may start before a job that waits for room."""

    mode: Literal["easy", "none"] = arg(
        "mode",
        "easy",
        "`easy`: the first job that waits for room is promised a start, and others start before it if they do not "
        "delay that; `none`: nobody starts before it.",
    )


class BackfillReservation(Plugin):
    """The first job that waits for room is promised a start; jobs after it start now if they do not delay it."""

    name = "backfill-reservation"
    Arguments = BackfillArguments
    arguments: BackfillArguments

    def __init__(self, arguments: BackfillArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._ends = ExpectedEnds()
        self._head: Job | None = None
        self._reservation: Reservation | None = None
        self._version = 0
        self._searching = False

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._now = session.reads.time
        self._ends.update(session.cluster, dirty, self._now)
        self._head = self._reservation = None

    def on_move(self, change: Change) -> None:
        self._ends.on_move(change)
        reservation, task = self._reservation, change.task
        if reservation is None or self._searching or not self._stays_beyond(task):
            return
        node = change.node or change.old_node
        if node is not None and change.old_status is Status.PENDING and change.status in _PLACED:
            reservation.take(node.row, task.shape, 1)
            self._version += 1
        elif node is not None and change.status is Status.PENDING and change.old_status in _PLACED:
            reservation.take(node.row, task.shape, -1)
            self._version += 1

    # -- who waits for room

    def no_room(self, job: Job, attempt: Attempt) -> None:
        if self._head is not None or self._is_limited(job):
            return
        search = ReservationSearch(self.session, self._ends)
        self._searching = True
        try:
            if self.arguments.mode == "none":
                self._head = job if search.could_ever_fit(job, attempt) else None
            elif (reservation := search.reservation(job, attempt)) is not None:
                self._head, self._reservation = job, reservation
                self._version += 1
        finally:
            self._searching = False

    def _is_limited(self, job: Job) -> bool:
        """Whether the limits of its queue keep a job waiting, and not room alone."""
        queue, rules = job.queue, self.session.rules
        first_of_shape = {task.shape: task for task in job.by_status[Status.PENDING]}
        needed = rules.tasks_needed(job) if len(first_of_shape) == 1 else 1
        return queue is None or not all(
            rules.allocatable(queue, task) and rules.may_allocate(queue, task, needed)
            for task in first_of_shape.values()
        )

    # -- who may overtake

    def held_back(self, job: Job) -> HeldBack | None:
        if self._head is None or self.arguments.mode != "none":
            return None
        message = f"{self._head.key} waits for room before it, and the policy lets nobody overtake"
        summary = "a job before it waits for room, and the policy lets nobody overtake"
        return HeldBack(message, summary, "it is tried again once that job has started")

    def shape_key(self, task: Task) -> bool:
        """Whether it may be kept from the nodes of a reservation."""
        return self._stays_beyond(task)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        if self._stays_beyond(task):
            yield NodeFilter(self._beside_reservation, self.name, "pods", lambda _: self._version)

    def _beside_reservation(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        reservation = self._reservation
        if reservation is not None:
            room = reservation.leaves_room(task.shape, len(nodes))
            yield Check(room, f"node(s) reserved for {reservation.job.key}")

    def _stays_beyond(self, task: Task) -> bool:
        """Whether a task may still run when the reserved job is to start."""
        reservation = self._reservation
        if reservation is None or task.job is reservation.job:
            return False
        limit = self._ends.limit(task)
        return limit == inf or self._now + limit > reservation.start
