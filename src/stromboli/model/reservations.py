"""Reservations: capacity of a node that is kept beyond a cycle, for a task or for future pods of a role.

While its owner is pending, a reservation has the weight of a promise: in its node's pipelined column, its job, the
job's queue and every queue above. Its current weight is stored as its charge. After any change of its owner, job, queue
or node, `update` replaces that charge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from stromboli.model.amounts import Vector, shift
from stromboli.model.job import Job, JobId
from stromboli.model.queue import lineage
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.feed import Topic
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


class RoleOwner(NamedTuple):
    """One future pod of a job's role; the next pod of that role takes over its reservation."""

    job: JobId
    role: str
    replica: int = 0


Owner = str | RoleOwner
"""The uid of a task, or a future pod."""


class Reservation(NamedTuple):
    """An amount on a node for an owner, from one moment until another."""

    owner: Owner
    amount: Vector
    node: Node
    since: float
    until: float


class Charge(NamedTuple):
    """The weight of a reservation and where it counts: the job's own queue first, then those above it."""

    amount: Vector
    node: Node
    job: Job | None
    queues: tuple[Queue, ...]
    expected: bool = False
    """Whether it is for a pod that does not exist yet."""


class OwnReservation(NamedTuple):
    """What is reserved for a task: the row of the node, and the amount as one column."""

    row: int
    amount: Ints


class Reservations:
    """Every reservation by its owner, and the sums that they are part of."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._now = 0.0
        self._by_owner: dict[Owner, Reservation] = {}
        self._all: tuple[Reservation, ...] | None = ()
        """All of them, if they were listed since one was made or ended."""
        self._charges: dict[Owner, Charge] = {}
        self._changes: Topic[Owner] = cluster.feed.topic()

    def __len__(self) -> int:
        return len(self._by_owner)

    def __contains__(self, owner: Owner) -> bool:
        return owner in self._by_owner

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self._by_owner.values())

    def all(self) -> tuple[Reservation, ...]:
        """All reservations as they are now; listed again only if any was made or ended."""
        if self._all is None:
            self._all = tuple(self._by_owner.values())
        return self._all

    def of(self, owner: Owner) -> Reservation | None:
        """The reservation of an owner, if it has one."""
        return self._by_owner.get(owner)

    @property
    def version(self) -> int:
        """Increases whenever the charge of a reservation changes."""
        return self._changes.generation

    # -- made and ended

    def reserve(self, reservation: Reservation) -> None:
        """Reserve an amount for an owner, and replace its previous reservation."""
        self._cluster.columns.widen()
        self._by_owner[reservation.owner] = reservation
        self._all = None
        self.update(reservation.owner)

    def release(self, owner: Owner) -> None:
        """Remove the reservation of an owner."""
        if self._by_owner.pop(owner, None) is not None:
            self._all = None
        self.update(owner)

    def advance(self, now: float) -> None:
        """Start due reservations; end those that are over, have no pending owner or were on a deleted node."""
        self._now = now
        for reservation in list(self):
            owner, node = reservation.owner, reservation.node
            if now >= reservation.until or node.row < 0 or self._waiting(owner) is None:
                self.release(owner)
            elif owner not in self._charges:
                self.update(owner)

    def take_over(
        self, kept: Iterable[Reservation], before: Reservations, node_named: Callable[[str], Node]
    ) -> None:
        """Take over the reservations of a model that is discarded."""
        self._now = before._now
        for reservation in kept:
            self.reserve(reservation._replace(node=node_named(reservation.node.name)))

    @property
    def next_moment(self) -> float:
        """The next moment at which a reservation starts or ends."""
        now = self._now
        moments = ((kept.since if now < kept.since else kept.until) for kept in self)
        return min(moments, default=inf)

    def _waiting(self, owner: Owner) -> Job | Task | None:
        """The job of a future pod, or the task while it is pending."""
        if isinstance(owner, RoleOwner):
            return self._cluster.jobs.get(owner.job)
        task = self._cluster.tasks.get(owner)
        return task if task is not None and task.status is Status.PENDING else None

    def task_entered(self, task: Task) -> None:
        """A task keeps its reservation when its pod changes, or takes over one that was made for its role."""
        owner = task.uid if task.uid in self._by_owner else self._of_role(task)
        if owner is not None:
            reservation = self._by_owner[owner]
            self.release(owner)
            self.reserve(reservation._replace(owner=task.uid, amount=task.request))

    def _of_role(self, task: Task) -> RoleOwner | None:
        if task.job is None or task.status is not Status.PENDING:
            return None
        wanted = (task.job.id, task.role)
        owners = [owner for owner in self._by_owner if isinstance(owner, RoleOwner) and owner[:2] == wanted]
        return min(
            owners, default=None, key=lambda owner: (self._by_owner[owner].amount != task.request, owner)
        )

    # -- the sums

    def update(self, owner: Owner) -> None:
        """Update the weight of an owner's reservation."""
        before, charge = self._charges.get(owner), self._charge_of(owner)
        if before == charge:
            return
        self._changes.note(owner)
        if before is not None:
            del self._charges[owner]
            self._apply(before, -1)
        if charge is not None:
            self._charges[owner] = charge
            self._apply(charge, 1)

    def update_all(self) -> None:
        """Jobs moved to another queue, or queues to another parent."""
        for owner in self._by_owner:
            self.update(owner)

    def load(self, node: Node) -> None:
        """A node received a row in the columns: count what is reserved there."""
        for charge in self._charges.values():
            if charge.node is node:
                self._cluster.columns.promise(node.row, charge.amount, 1)

    def _charge_of(self, owner: Owner) -> Charge | None:
        """Its current weight: nothing before it starts, or if its owner is not pending (a role: not in a queue)."""
        reservation, waiting = self._by_owner.get(owner), self._waiting(owner)
        if reservation is None or waiting is None or self._now < reservation.since:
            return None
        job = waiting if isinstance(waiting, Job) else waiting.job
        if job is not None and job.queue is not None:
            queues = tuple(lineage(job.queue, self._cluster.queues))
            return Charge(reservation.amount, reservation.node, job, queues, waiting is job)
        return None if waiting is job else Charge(reservation.amount, reservation.node, job, ())

    def _apply(self, charge: Charge, sign: int) -> None:
        if charge.node.row >= 0:
            self._cluster.columns.promise(charge.node.row, charge.amount, sign)
        if charge.job is not None:
            shift(charge.job.reserved, charge.amount, sign)
        for level, queue in enumerate(charge.queues):
            shift(queue.reserved_below if level else queue.reserved, charge.amount, sign)
        if charge.expected and charge.job is not None:
            shift(charge.queues[0].expected, charge.amount, sign)
            self._cluster.mark_dirty(charge.job)  # the demand of its queue changed

    # -- what a task may use

    def own_reservation(self, task: Task) -> OwnReservation | None:
        """What is reserved for a task; counted as promised on its node, but the task itself may use it."""
        charge = self._charges.get(task.uid)
        if charge is None or charge.node.row < 0:
            return None
        return OwnReservation(charge.node.row, self._cluster.columns.dense(charge.amount))

    def owners(self) -> Iterator[tuple[Task, Node]]:
        """The pending tasks with a reservation, and its node."""
        for owner, charge in self._charges.items():
            task = self._cluster.tasks.get(owner) if isinstance(owner, str) else None
            if task is not None:
                yield task, charge.node

    def idle_for(self, *tasks: Task) -> Ints:
        """What is idle on nodes, less what is reserved there for others than these tasks."""
        columns, owners = self._cluster.columns, {task.uid for task in tasks}
        idle: Ints = columns.idle.copy() if self._charges else columns.idle
        for owner, charge in self._charges.items():
            if owner not in owners and charge.node.row >= 0:
                idle[:, charge.node.row] -= columns.dense(charge.amount)
        return idle

    def future_idle_for(self, *tasks: Task) -> Ints:
        """What will be free on nodes for tasks together, including what is reserved for them."""
        future = self._cluster.columns.future_idle
        for task in tasks if self._charges else ():
            own = self.own_reservation(task)
            if own is not None:
                future[:, own.row] += own.amount
        return future
