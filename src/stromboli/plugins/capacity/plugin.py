"""The plugin `capacity`: every queue states what it deserves, may have and is guaranteed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stromboli.api import names
from stromboli.engine.plugin import CAPABILITY, LIMIT, Bound, Eviction, Invalid, Key, Plugin, QueueLimit
from stromboli.engine.points import Vote, depends, in_turn
from stromboli.engine.queue_limits import (
    InqueueResources,
    ShareUse,
    comes_closer,
    own_capability,
    refuse_for_quota,
    too_little_quota,
)
from stromboli.engine.session import Session
from stromboli.model.amounts import (
    Amounts,
    Vector,
    excess,
    fits,
    lacking,
    plus,
    shift,
    some_fits,
    some_over,
    times,
    total_of,
)
from stromboli.model.cluster import SUM_OF, Change, Dirty
from stromboli.model.devices.claim_use import class_of
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.capacity import queue_tree
from stromboli.plugins.capacity.device_quota import DeviceQuota
from stromboli.plugins.capacity.queue_tree import (
    OrderKey,
    QueueFault,
    QueueShare,
    QueueTree,
    flat_queues,
    queue_hierarchy,
)
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg

log = logging.getLogger(__name__)

_HOLDS = tuple(SUM_OF[status] in ("allocated", "pipelined") for status in Status)
_MAX_LISTED = 3
"""How many children of a queue a message names."""


@dataclass(frozen=True, slots=True)
class CapacityArguments:
    """How many levels of the tree reclaim considers, and whether devices count."""

    levels: int = arg(
        "ancestorReclaimLevel",
        0,
        "With a hierarchy: so many levels above a queue must be above their share too before tasks are reclaimed from"
        " it, and one of them below its share is enough to reclaim.",
        check=at_least(0),
    )
    devices: bool = arg(
        "capacity.DynamicResourceAllocationEnable",
        True,
        "Count the ResourceClaims of pods, and extended resources that devices serve, against `deviceclass/<class>` of"
        " the capability of queues.",
    )
    device_amounts: bool = arg(
        "capacity.DRAConsumableCapacityEnable",
        True,
        "Count what ResourceClaims request of the capacity of devices, such as memory, against"
        " `<capacity>.deviceclass/<class>` too.",
    )


class Capacity(Plugin):
    """Queues with explicit shares: `deserved` is the share, `capability` the limit, `guarantee` is reserved.

    A queue may use more than it deserves as long as no other queue needs it; then tasks are reclaimed from it, down to
    what it deserves. The queue with the smaller share of what it deserves comes first; one that deserves nothing comes
    last and loses tasks first. With `enableHierarchy: true` queues form a tree by `spec.parent`, and every ancestor's
    limit holds too.
    """

    name = "capacity"
    limits_queues = True
    Arguments = CapacityArguments
    arguments: CapacityArguments

    @classmethod
    def build(cls, arguments: Any, switches: dict[str, bool]) -> Plugin:
        return (HierarchicalCapacity if switches.get("enableHierarchy") else Capacity)(arguments, switches)

    def __init__(self, arguments: CapacityArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._tree = QueueTree({}, {}, [])
        self._divided: Amounts = {}
        """The total of which the shares were computed."""
        self._inqueue = InqueueResources()
        self._devices: DeviceQuota | None = None
        """Only if devices count, queues limit some, and there are ResourceClaims or DeviceClasses."""
        self._warnings: set[str] = set()
        self._admitted: AdmittedPods | None = None
        """Only with the feature SchedulingGatesQueueAdmission."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._inqueue.opening(session.needs, dirty)
        on = names.QUEUE_ADMISSION in session.features
        self._admitted = AdmittedPods(session, self._admitted) if on else None
        if dirty.everything or dirty.queues or dirty.nodes or session.sharable != self._divided:
            self._divided = session.sharable
            self._tree = self._build_tree(session)
            warnings = {warning.text(session.cluster.dims) for warning in self._tree.warnings}
            for text in sorted(warnings - self._warnings):
                log.warning("%s", text)
            self._warnings = warnings
        self._devices = None
        cluster, devices = session.cluster, session.cluster.devices
        asked_for = self.arguments.devices and (devices.claims or devices.extended)
        if asked_for and any(map(class_of, cluster.dims.names)):
            self._devices = DeviceQuota(session.cluster, self.arguments.device_amounts)
            self._devices.sum_up(self._tree.shares.values())

    def _build_tree(self, session: Session) -> QueueTree:
        return flat_queues(session.cluster.queues.values(), session.sharable)

    def _leaf(self, queue: Queue | None) -> QueueShare | None:
        """The share of a queue that takes jobs; inner and detached queues take none."""
        share = self._tree.of(queue)
        return None if share is None or share.children else share

    # -- orders and limits

    def queue_order(self, queue: Queue) -> Key:
        share = self._tree.of(queue)
        return (-queue.priority, share.order_key if share else (1.0, True))

    def allocatable(self, queue: Queue, task: Task) -> bool:
        leaf, request = self._leaf(queue), task.request
        if leaf is None or not queue.open:
            return False
        reserved = leaf.reserved_beside(task.job)
        if self._admitted is not None:
            reserved = plus(reserved, self._admitted.reserved_for_others(task, queue))
        if not leaf.allows(request, reserved):
            return False
        devices = self._devices if self._devices is not None and self._devices.concerns(task) else None
        if devices is not None and not all(devices.fits(share, task) for share in leaf.lineage):
            return False
        return all(
            ancestor.allows(request, ancestor.reserved_beside(task.job)) for ancestor in leaf.ancestors
        )

    def may_allocate(self, queue: Queue, task: Task, count: int) -> bool:
        leaf, wanted = self._leaf(queue), times(task.request, count)
        return leaf is not None and all(share.allows(wanted) for share in leaf.lineage)

    def on_move(self, change: Change) -> str | None:
        task = change.task
        if self._admitted is not None and task.job is not None and is_queue_gated(task):
            self._admitted.drop(task)
            if change.status is Status.PENDING and task.job.queue is not None:
                self._admitted.add(task, task.job.queue)
        return None

    def queue_limits(self, queue: Queue) -> Iterable[QueueLimit]:
        leaf = self._leaf(queue)
        if leaf is None:
            return
        for share in leaf.lineage:
            capability, held = own_capability(share.queue), share.held
            if self._devices is not None:
                capability, held = self._devices.without_zeros(capability), self._devices.with_devices(share)
            remedy = "raise that capability"
            yield QueueLimit(share.queue, "capability", capability, held, remedy, code=CAPABILITY)
        names_of_dims = enumerate(self.session.cluster.dims.names)
        amounts = [dim for dim, name in names_of_dims if not class_of(name)]
        for share in leaf.lineage:
            limit = {dim: share.limit.get(dim, 0) for dim in amounts}
            remedy = "raise the capability of parent queues or lower the guarantees of other queues"
            yield QueueLimit(share.queue, "limit", limit, share.held, remedy, code=LIMIT)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        request, job = total_of(task.request for task in tasks), tasks[0].job if tasks else None
        return self._may_take(queue, request, lambda share: share.reserved_beside(job))

    def may_reclaim_for(self, job: Job) -> bool:
        request = self.session.needs.least(job) or {}
        return job.queue is not None and self._may_take(job.queue, request, self._promised)

    def _promised(self, share: QueueShare) -> Amounts:
        """What jobs of a queue, and of those below it, were admitted for and do not hold yet."""
        return excess(plus(self._inqueue.of(share.queue), share.inqueue_below), {})

    def _may_take(self, queue: Queue, request: Vector, others: Callable[[QueueShare], Vector]) -> bool:
        """Whether a queue deserves a request beside what it holds and what is kept for others of it."""
        leaf = self._leaf(queue)
        if leaf is None or not queue.open:
            return False

        def with_request(share: QueueShare) -> Amounts:
            return plus(plus(share.held, others(share)), request)

        if not fits(with_request(leaf), leaf.limit, request):
            return False
        ancestors = queue_tree.nearest_ancestors(leaf, self.arguments.levels)
        return any(some_fits(with_request(share), share.deserved, request) for share in (leaf, *ancestors))

    def brings_closer_to_shares(self, taker: Queue, gained: Vector, losses: Mapping[Queue, Vector]) -> bool:
        own, levels = self._leaf(taker), self.arguments.levels
        shares = (own, *queue_tree.nearest_ancestors(own, levels)) if own is not None else ()
        if not all(some_over(share.held, share.deserved, gained) for share in shares):
            return True
        chains = [
            (lost, (leaf, *queue_tree.nearest_ancestors(leaf, levels)))
            for queue, lost in losses.items()
            if (leaf := self._leaf(queue)) is not None
        ]
        common = {*shares} & {share for _, chain in chains for share in chain}

        def uses(chain: Iterable[QueueShare]) -> list[ShareUse]:
            return [ShareUse(share.held, share.deserved) for share in chain if share not in common]

        losers = [(lost, uses(chain)) for lost, chain in chains]
        return comes_closer(uses(shares), gained, losers, self.session.total)

    # -- victims

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        own = self._leaf(task.job.queue) if task.job else None
        if own is None:
            return []
        return queue_tree.reclaim_victims(task, own, candidates, self._tree, self.arguments.levels)

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        queue = self.session.queue_of(candidates[0])
        return f'its queue "{queue.name if queue else ""}" is within its deserved share'

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        own = self._leaf(task.job.queue) if task.job else None
        if point != "reclaimable" or own is None:
            return None

        def may_lose(job: Job) -> bool:
            other = self._tree.of(job.queue)
            if other is None:
                return False
            # What the task gains counts in its own queue and its ancestors, so for these the answer is not final.
            return other is own or bool(other.children) or queue_tree.has_victims(other, job)

        def of_queue(queue: Queue) -> object:
            other = self._tree.of(queue)
            return other and (other is own, queue_tree.victim_limits(other))

        return Bound(queue_tree.rival_dimensions(task.request), may_lose, of_queue)

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        if eviction.kind != "reclaim":  # a moved task stays in its queue
            return candidates
        return queue_tree.gang_victims(candidates, self._tree) if self._leaf(eviction.job.queue) else []

    # -- the gate

    def job_enqueueable(self, job: Job) -> Vote:
        queue, least = job.queue, self.session.needs.least(job)
        leaf = self._leaf(queue)
        if leaf is None or queue is None or not queue.open:
            return Vote.REJECT
        if least is None:
            return Vote.PERMIT
        for depth, share in enumerate(leaf.lineage):
            inqueue = plus(self._inqueue.beside(job, share.queue), share.inqueue_below)
            wanted = plus(plus(least, share.held), inqueue)
            missing = lacking(wanted, share.limit, least)
            if self._inqueue.holds_back(job, queue if share is leaf else None, missing):
                limits = {above.queue: above.limit for above in leaf.lineage[depth:]}
                refuse_for_quota(self.session, job, self.name, limits, missing)
                return Vote.REJECT
            devices = self._devices if job.min_resources is not None else None
            if devices is not None and (short := devices.lacking(share, job)):
                self._refuse_for_devices(job, share.queue, short)
                return Vote.REJECT
        return Vote.PERMIT

    def _refuse_for_devices(self, job: Job, queue: Queue, short: list[str]) -> None:
        remedy = f'wait for jobs of queue "{queue.name}" to end or raise its capability ({", ".join(short)})'
        self.session.refuse(job, self.name, too_little_quota(sorted(short), remedy))

    def job_enqueued(self, job: Job) -> None:
        resources, share = self._inqueue.admit(job), self._tree.of(job.queue)
        for ancestor in share.ancestors if share else ():
            shift(ancestor.inqueue_below, resources)
        if self._devices is not None and share is not None:
            self._devices.enter(share.lineage, job)


class HierarchicalCapacity(Capacity):
    """The same for queues in a tree: jobs live in its leaves, and every ancestor's limit holds too.

    A queue whose parents do not lead to `root` takes no part, with all that is below it; a job in an inner queue
    waits. Other queues are not affected.
    """

    limits_queue_trees = True

    def opening(self, session: Session, dirty: Dirty) -> None:
        super().opening(session, dirty)
        self._order_keys: dict[QueueShare, OrderKey] = {}
        self._keys: dict[Queue, Key] = {}
        self._keyed: dict[QueueShare, list[Queue]] = {}
        """Leaves with a cached key, by branch: a move changes the keys of all leaves of its branch and no others."""
        if dirty:
            self._tree.sum_up(self._inqueue)

    def _build_tree(self, session: Session) -> QueueTree:
        return queue_hierarchy(session.cluster.queues.values(), session.total)

    def on_move(self, change: Change) -> str | None:
        super().on_move(change)
        gained = _HOLDS[change.status] - _HOLDS[change.old_status]
        share = self._tree.of(change.task.job.queue) if gained and change.task.job else None
        if share is not None:
            self._order_keys.pop(share, None)
            if self._devices is not None:
                self._devices.follow(change, share.ancestors, gained)
            for ancestor in share.ancestors:
                shift(ancestor.held_below, change.task.request, gained)
                self._order_keys.pop(ancestor, None)
            for queue in self._keyed.pop(share.branch, ()):
                del self._keys[queue]
        return None

    # -- orders

    @depends("branch")
    def queue_order(self, queue: Queue) -> Key:
        """Leaves by the shares of their ancestors, from the top down; then inner queues, then detached ones."""
        key = self._keys.get(queue)
        if key is not None:
            return key
        share = self._tree.of(queue)
        if share is None:
            return (-queue.priority, 2, ())
        if share.children:
            return (-queue.priority, 1, (self._order_key(share),))
        path = (share, *share.ancestors[:-1])
        key = (-queue.priority, 0, tuple([(*self._order_key(each), each.oldest) for each in reversed(path)]))
        self._keys[queue] = key
        self._keyed.setdefault(share.branch, []).append(queue)
        return key

    def _order_key(self, share: QueueShare) -> OrderKey:
        """The key of one share; cached until something moves below."""
        key = self._order_keys.get(share)
        if key is None:
            key = self._order_keys[share] = share.order_key
        return key

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Queues that are closer to the preemptor in the tree lose first."""
        return self._common_ancestors(right, preemptor) - self._common_ancestors(left, preemptor)

    def _common_ancestors(self, queue: Queue, other: Queue) -> int:
        """How many ancestors two queues have in common."""
        left, right = self._tree.of(queue), self._tree.of(other)
        if left is None or right is None:
            return 0
        return len({*left.ancestors} & {*right.ancestors})

    # -- jobs in inner and detached queues

    def job_valid(self, job: Job) -> Invalid | None:
        """Keep a job pending whose queue is not a leaf of the tree, with an event (spec 02 D18)."""
        fault = self._fault(job)
        if fault is None:
            return None
        self.session.record_event(job, "gate:capacity", names.WARNING, names.EVENT_UNSCHEDULABLE, fault.text)
        return Invalid(names.EVENT_UNSCHEDULABLE, fault.text, fault.remedy, fault.problem, fault.problem)

    def job_enqueueable(self, job: Job) -> Vote:
        invalid = self.job_valid(job)
        if invalid is None:
            return super().job_enqueueable(job)
        self.session.leave_out(job, invalid)
        return Vote.REJECT

    def _fault(self, job: Job) -> QueueFault | None:
        """Why the queue of a job takes none."""
        share = self._tree.of(job.queue)
        if share is None:
            return self._tree.detached.get(job.queue) if job.queue else None
        if not share.children:
            return None
        problem = names.QUEUE_HAS_CHILDREN.format(queue=share.queue.name)
        remedy = names.USE_CHILDREN.format(children=" or ".join(_first_quoted(share.children)))
        return QueueFault(problem, remedy)


def _first_quoted(children: list[str]) -> list[str]:
    """The first few names, quoted."""
    shown = [f'"{name}"' for name in children[:_MAX_LISTED]]
    return shown if len(children) <= _MAX_LISTED else [*shown, f"{len(children) - _MAX_LISTED} more"]


# -- quota reserved for pods whose scheduling gate was removed and that have no node yet (spec 03 10)


class AdmittedPods:
    """By queue: the requests of pending tasks whose gate was removed, in this session or before."""

    def __init__(self, session: Session, before: AdmittedPods | None = None):
        """`before`: those of the session before this one, whose removals the watch may not show yet."""
        self._tasks: dict[Task, Queue] = {}
        self._reserved: dict[Queue, Amounts] = {}
        self._ungated = session.journal.ungated
        self._counted = 0
        """How many of the tasks that were ungated in this session are counted."""
        self._unseen: list[Task] = []
        """Tasks that were ungated in sessions before, and still have their gate."""
        ungated = set() if before is None else {*before._unseen, *before._ungated}
        for job in session.cluster.backlog:
            if job.queue is not None:
                for task in job.by_status[Status.PENDING]:
                    if is_queue_gated(task) and (not task.gates or task in ungated):
                        self.add(task, job.queue)
                        if task.gates:
                            self._unseen.append(task)

    def add(self, task: Task, queue: Queue) -> None:
        if task not in self._tasks:
            self._tasks[task] = queue
            shift(self._reserved.setdefault(queue, {}), task.request)

    def drop(self, task: Task) -> None:
        """A task is no longer pending."""
        queue = self._tasks.pop(task, None)
        if queue is not None:
            shift(self._reserved[queue], task.request, -1)

    def reserved_for_others(self, task: Task, queue: Queue) -> Vector:
        """What is reserved in a queue and not for this task: nothing, if the task was admitted as well.

        More tasks may have been admitted than the queue holds, as after a change of leader. They must not keep each
        other out.
        """
        for ungated in self._ungated[self._counted :]:
            if ungated.job is not None and ungated.job.queue is not None:
                self.add(ungated, ungated.job.queue)
        self._counted = len(self._ungated)
        return {} if self._tasks.get(task) is queue else self._reserved.get(queue, {})


def is_queue_gated(task: Task) -> bool:
    """Whether a pod requests a scheduling gate until its queue has capacity."""
    return task.annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"
