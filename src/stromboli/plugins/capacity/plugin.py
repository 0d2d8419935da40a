"""The plugin `capacity`: what each queue deserves, may have and is guaranteed is written in the queue itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stromboli.api import names
from stromboli.engine.plugin import Bound, Eviction, Invalid, Key, Plugin, QueueLimit
from stromboli.engine.points import Vote, depends
from stromboli.engine.queue_limits import InqueueResources, own_capability, tell_quota
from stromboli.engine.session import Session
from stromboli.model.amounts import fits, lacking, plus, shift, some_fits, total_of
from stromboli.model.cluster import SUM_OF, Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.capacity import reclaimable_queues
from stromboli.plugins.capacity.admitted_pods import Admitted, asks_queue
from stromboli.plugins.capacity.queue_share import Allotment, Standing
from stromboli.plugins.capacity.queue_tree import Tree, below_root, side_by_side
from stromboli.policy.arguments import arg

log = logging.getLogger(__name__)

_HOLDS = tuple(SUM_OF[status] in ("allocated", "pipelined") for status in Status)
_DEVICES = "Accepted; claims are not counted against `deviceclass/` quota of queues yet."
_SHOWN = 3
"""How many children of a queue a message names."""


@dataclass(frozen=True, slots=True)
class CapacityArguments:
    """How far up the tree reclaiming looks, and whether devices count."""

    levels: int = arg(
        "ancestorReclaimLevel",
        0,
        "With a hierarchy: so many levels above a queue must be above their share too before it is taken from, and"
        " one of them below its share is enough to take.",
        check=lambda levels: None if levels >= 0 else "must not be negative",
    )
    devices: bool = arg("capacity.DynamicResourceAllocationEnable", True, _DEVICES)
    device_amounts: bool = arg("capacity.DRAConsumableCapacityEnable", False, _DEVICES)


class Capacity(Plugin):
    """Queues with explicit shares: `deserved` is theirs, `capability` their limit, `guarantee` kept free for them.

    A queue may use more than it deserves as long as nobody else needs it; then it is taken from, down to what it
    deserves. The queue with the smaller share of what it deserves comes first; one that deserves nothing comes last
    and is taken from first. With `enableHierarchy: true` queues form a tree by `spec.parent`, and every ancestor's
    limit holds too.
    """

    name = "capacity"
    Arguments = CapacityArguments
    arguments: CapacityArguments

    @classmethod
    def build(cls, arguments: Any, switches: dict[str, bool]) -> Plugin:
        return (HierarchicalCapacity if switches.get("enableHierarchy") else Capacity)(arguments, switches)

    def __init__(self, arguments: CapacityArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._tree = Tree({}, {}, [])
        self._pledges = InqueueResources()
        self._said: set[str] = set()
        self._admitted: Admitted | None = None
        """Only with the feature SchedulingGatesQueueAdmission."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._pledges.opening(session.cluster, dirty)
        self._admitted = Admitted(session) if names.QUEUE_ADMISSION in session.features else None
        if dirty.everything or dirty.queues or dirty.nodes:
            self._tree = self._lay_out(session)
            said = {odd.text(session.cluster.dims) for odd in self._tree.oddities}
            for text in sorted(said - self._said):
                log.warning("%s", text)
            self._said = said

    def _lay_out(self, session: Session) -> Tree:
        return side_by_side(session.cluster.queues.values(), session.total)

    def _seat(self, queue: Queue | None) -> Allotment | None:
        """The allotment of a queue that takes jobs; inner queues and strays take none."""
        allotment = self._tree.of(queue)
        return None if allotment is None or allotment.children else allotment

    # -- orders and limits

    def queue_order(self, queue: Queue) -> Key:
        allotment = self._tree.of(queue)
        return (-queue.priority, allotment.standing if allotment else (1.0, True))

    def allocatable(self, queue: Queue, task: Task) -> bool:
        seat, request = self._seat(queue), task.request
        if seat is None or not queue.open:
            return False
        kept = seat.reserved_beside(task.job)
        if self._admitted is not None:
            kept = plus(kept, self._admitted.beside(task, queue))
        if not seat.has_room(request, kept):
            return False
        return all(
            ancestor.has_room(request, ancestor.reserved_beside(task.job)) for ancestor in seat.ancestors
        )

    def on_move(self, change: Change) -> str | None:
        task = change.task
        if self._admitted is not None and task.job is not None and asks_queue(task):
            self._admitted.drop(task)
            if change.status is Status.PENDING and task.job.queue is not None:
                self._admitted.add(task, task.job.queue)
        return None

    def queue_limits(self, queue: Queue) -> Iterable[QueueLimit]:
        seat = self._seat(queue)
        if seat is None:
            return
        chain = (seat, *seat.ancestors)
        for one in chain:
            most = own_capability(one.queue)
            yield QueueLimit(one.queue, "capability", most, one.held, "raise that capability")
        for one in chain:
            most = {dim: one.limit.get(dim, 0) for dim in range(len(self.session.cluster.dims))}
            remedy = "raise the capability of queues above it or lower what is guaranteed to others"
            yield QueueLimit(one.queue, "limit", most, one.held, remedy)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        seat, asked = self._seat(queue), total_of(task.request for task in tasks)
        if seat is None or not queue.open:
            return False
        job = tasks[0].job if tasks else None
        wanted = plus(plus(seat.held, seat.reserved_beside(job)), asked)
        if not fits(wanted, seat.limit, asked):
            return False
        return some_fits(wanted, seat.deserved, asked) or any(
            some_fits(plus(plus(above.held, above.reserved_beside(job)), asked), above.deserved, asked)
            for above in reclaimable_queues.within(seat, self.arguments.levels)
        )

    # -- victims

    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        mine = self._seat(task.job.queue) if task.job else None
        if mine is None:
            return []
        return reclaimable_queues.reclaimable(task, mine, candidates, self._tree, self.arguments.levels)

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        mine = self._seat(task.job.queue) if task.job else None
        if point != "reclaimable" or mine is None:
            return None

        def may(job: Job) -> bool:
            theirs = self._tree.of(job.queue)
            if theirs is None:
                return False
            # What the asker gains counts in its own queue and in those above it: nothing there is settled by now.
            return theirs is mine or bool(theirs.children) or reclaimable_queues.could_lose(theirs, job)

        return Bound(reclaimable_queues.counted(task.request), may)

    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        if eviction.kind == "preempt":
            return candidates
        return reclaimable_queues.evictable(candidates, self._tree) if self._seat(eviction.job.queue) else []

    # -- the gate

    def job_enqueueable(self, job: Job) -> Vote:
        queue, least = job.queue, job.min_resources
        seat = self._seat(queue)
        if seat is None or queue is None or not queue.open:
            return Vote.REJECT
        if least is None:
            return Vote.PERMIT
        for allotment in (seat, *seat.ancestors):
            pledged = plus(self._pledges.of(allotment.queue), allotment.pledged_below)
            wanted = plus(plus(least, allotment.held), pledged)
            if missing := lacking(wanted, allotment.limit, least):
                tell_quota(self.session, job, self.name, missing)
                return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        promised, allotment = self._pledges.admit(job), self._tree.of(job.queue)
        for ancestor in allotment.ancestors if allotment else ():
            shift(ancestor.pledged_below, promised)


class HierarchicalCapacity(Capacity):
    """The same for queues in a tree: jobs live in its leaves, and every ancestor's limit holds too.

    A queue whose parents do not lead to `root` is out until that is mended, with all that is below it; a job in an
    inner queue waits. Everybody else goes on.
    """

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        self._standings: dict[Allotment, Standing] = {}
        self._keys: dict[Queue, Key] = {}
        self._keyed: dict[Allotment, list[Queue]] = {}
        """Leaves that have a key, by branch: a move in a branch changes the keys of all its leaves and no others."""
        if dirty:
            self._tree.gather(self._pledges)

    def _lay_out(self, session: Session) -> Tree:
        return below_root(session.cluster.queues.values(), session.total)

    def on_move(self, change: Change) -> str | None:
        super().on_move(change)
        gained = _HOLDS[change.status] - _HOLDS[change.old_status]
        allotment = self._tree.of(change.task.job.queue) if gained and change.task.job else None
        if allotment is not None:
            self._standings.pop(allotment, None)
            for ancestor in allotment.ancestors:
                shift(ancestor.held_below, change.task.request, gained)
                self._standings.pop(ancestor, None)
            for queue in self._keyed.pop(allotment.branch, ()):
                del self._keys[queue]
        return None

    # -- orders

    @depends("everything")
    def queue_order(self, queue: Queue) -> Key:
        """Leaves by the shares of the branches they are on, from the top down; then inner queues, then strays."""
        key = self._keys.get(queue)
        if key is not None:
            return key
        allotment = self._tree.of(queue)
        if allotment is None:
            return (-queue.priority, 2, ())
        if allotment.children:
            return (-queue.priority, 1, (self._standing(allotment),))
        path = (allotment, *allotment.ancestors[:-1])
        key = (-queue.priority, 0, tuple([(*self._standing(one), one.eldest) for one in reversed(path)]))
        self._keys[queue] = key
        self._keyed.setdefault(allotment.branch, []).append(queue)
        return key

    def _standing(self, allotment: Allotment) -> Standing:
        """As it is now; remembered until something moves below."""
        standing = self._standings.get(allotment)
        if standing is None:
            standing = self._standings[allotment] = allotment.standing
        return standing

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Near relatives of who asks lose first."""
        return self._kinship(right, preemptor) - self._kinship(left, preemptor)

    def _kinship(self, queue: Queue, other: Queue) -> int:
        """How many ancestors two queues have in common."""
        one, two = self._tree.of(queue), self._tree.of(other)
        if one is None or two is None:
            return 0
        return len({*one.ancestors} & {*two.ancestors})

    # -- who is out

    def job_valid(self, job: Job) -> Invalid | None:
        """A job that is in no leaf of the tree says why, and waits (spec 02 D18)."""
        why = self._objection(job)
        if why is None:
            return None
        self.session.record_event(job, "gate:capacity", names.WARNING, names.EVENT_UNSCHEDULABLE, why)
        return Invalid(names.EVENT_UNSCHEDULABLE, why)

    def job_enqueueable(self, job: Job) -> Vote:
        invalid = self.job_valid(job)
        if invalid is None:
            return super().job_enqueueable(job)
        self.session.objections[job] = invalid.message
        return Vote.REJECT

    def _objection(self, job: Job) -> str | None:
        allotment = self._tree.of(job.queue)
        if allotment is None:
            return self._tree.strays.get(job.queue) if job.queue else None
        if not allotment.children:
            return None
        return names.QUEUE_HAS_CHILDREN.format(
            queue=allotment.queue.name, children=" or ".join(_some(allotment.children))
        )


def _some(children: list[str]) -> list[str]:
    """The first few, quoted."""
    shown = [f'"{name}"' for name in children[:_SHOWN]]
    return shown if len(children) <= _SHOWN else [*shown, f"{len(children) - _SHOWN} more"]
