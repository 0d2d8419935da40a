"""The state of the cluster, and the one operation that changes a task.

`move(task, status, node)` subtracts the task's old weight and adds the new one: in node columns, job counters, queue
totals, the pod view and the listeners. Allocate, pipeline, evict, release and the undo of each are this one call. The
weight follows from the status (in the pod view also from whether the pod is terminating); see `status.WEIGHT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stromboli.model.amounts import Amounts, shift, total_of
from stromboli.model.cards.card_ledger import CardLedger
from stromboli.model.constraints.pod_affinity import AffinityTerms
from stromboli.model.constraints.pod_counts import PodCounts
from stromboli.model.cpus.cpu_ledger import CpuLedger
from stromboli.model.devices.device_ledger import DeviceLedger
from stromboli.model.devices.extended_resources import ServedResources
from stromboli.model.dimensions import Dimensions
from stromboli.model.feed import Dirty, Feed, Topic
from stromboli.model.job import Job, JobId
from stromboli.model.node_columns import Columns, Node
from stromboli.model.node_usage import NodeUsage
from stromboli.model.queue import Queue
from stromboli.model.remedy import NO_REMEDY, Remedy
from stromboli.model.reservations import Reservations
from stromboli.model.shard import Shard
from stromboli.model.status import ALLOCATED_CLASS, WEIGHT, Status
from stromboli.model.task import Task
from stromboli.model.topology.hyper_node_tree import HyperNodeTree
from stromboli.model.volumes.volume_ledger import VolumeLedger

if TYPE_CHECKING:
    from stromboli.model.cards.registrations import Models
    from stromboli.model.ledgers import Grant, Ledger
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.shape import Shape

__all__ = [
    "SUM_OF",
    "Change",
    "Cluster",
    "Dirty",
    "Listener",
    "ListenerFailed",
    "Refused",
    "enter_together",
]

# Which sum of its job and queue a task of some status belongs to.
SUM_OF: tuple[str | None, ...] = tuple(
    "allocated"
    if ALLOCATED_CLASS[status]
    else {Status.PENDING: "pending", Status.PIPELINED: "pipelined"}.get(status)
    for status in Status
)


class Change(NamedTuple):
    """One move: a task's status and node before and after."""

    task: Task
    """The task that moved."""
    old_status: Status
    """Its status before the move."""
    old_node: Node | None
    """Its node before the move; none if it had none."""
    status: Status
    """Its status after the move."""
    node: Node | None
    """Its node after the move; none if it has none."""
    undo: bool = False
    """Whether this undoes an earlier move; then no listener may refuse."""
    old_grants: tuple[Grant, ...] = ()
    """What it held on its node besides amounts before the move."""
    grants: tuple[Grant, ...] = ()
    """What it holds after the move."""

    def reversed(self) -> Change:
        return Change(
            self.task,
            self.status,
            self.node,
            self.old_status,
            self.old_node,
            not self.undo,
            self.grants,
            self.old_grants,
        )


class Refused(NamedTuple):
    """A plugin refused the move in `on_move`; the state is as before."""

    why: str
    """The sentence that the plugin gave."""
    remedy: Remedy = NO_REMEDY
    """What would help the task, if the plugin provides it."""
    code: str = ""
    """One word for programs, if the plugin gave one."""


class ListenerFailed(Exception):
    """A listener raised; the state is as before the move."""

    def __init__(self, cause: BaseException, listener: Listener):
        super().__init__(str(cause))
        self.cause = cause
        self.listener = listener


class Listener(Protocol):
    """Called for every move. Its state must depend on the change alone, so that the reversed change restores it."""

    def on_move(self, change: Change) -> str | None:
        """Follow a change; a returned text refuses it, except when a move is undone."""


class Cluster:
    """All nodes, queues, jobs and tasks, and their sums."""

    def __init__(self, objects: LookupObjects, dims: Dimensions | None = None, generation: int = 0):
        self.feed: Feed = Feed(generation)
        """All changes, in order: what is cached about the cluster follows it."""
        self.dims: Dimensions = dims if dims is not None else Dimensions()
        """The number of each resource in amounts."""
        self.columns: Columns = Columns(self.dims, self.feed)
        """The numbers of all nodes as arrays."""
        objects.feed = self.feed
        self.objects = objects
        """Objects that plugins look up: quotas, budgets, claims, namespaces, priority classes."""
        self.affinity_terms = AffinityTerms(objects)
        """The pod affinity terms of all tasks, on nodes or not."""
        self.pod_counts = PodCounts(self.columns, self.affinity_terms.index_keys)
        self.nodes: dict[str, Node] = {}
        """All nodes by name, including those that only a pod names."""
        self.jobs: dict[JobId, Job] = {}
        """All jobs by id, including those that cycles ignore: see `job.visible`."""
        self.queues: dict[str, Queue] = {}
        """All queues by name, including those that only a job names: see `queue.exists`."""
        self.tasks: dict[str, Task] = {}
        """All tasks by the uid of their pod."""
        self.hyper_nodes = HyperNodeTree()
        """The HyperNodes as a tree; brought up to date when a session opens."""
        self.layout_stale = False
        """Whether nodes were added or removed since the columns were laid out."""
        self.total: Amounts = {}
        """The allocatable resources of all nodes; changes only between cycles."""
        self._rowless: dict[Node, None] = {}
        """The nodes without a row that have tasks, and others; those of a removed Node object, or of one to come."""
        self._stranded: Amounts | None = None
        """What is `stranded`, if that was summed up since tasks on such nodes changed."""
        self.waiting: dict[Job, None] = {}
        """Jobs that `enqueue` has not admitted yet."""
        self.backlog: dict[Job, None] = {}
        """Jobs with a Pending or Pipelined task, the work of placing actions; copy it before you move any."""
        self.reservations = Reservations(self)
        """Capacity that stays reserved beyond a cycle."""
        self._make_ledgers(objects)
        self.unsettled: dict[Job, None] = {}
        """Jobs whose outcome was not final when it was last reported."""
        self.memory: dict[str, Any] = {}
        """What plugins keep from cycle to cycle: plain data, by plugin name; see `session.restore_if_lost`."""
        self._usage: Mapping[str, NodeUsage] = {}
        self._usages: Topic[None] = self.feed.topic()
        self.listeners: list[Listener] = []
        self.shard: Shard | None = None
        """The nodes of this scheduler, if several share the cluster."""

    def _make_ledgers(self, objects: LookupObjects) -> None:
        self.cards = CardLedger(self.dims, self.feed)
        """What tasks hold of cards that several pods share."""
        self.cpus = CpuLedger(self.feed, self.nodes)
        """The free CPUs of nodes that have a Numatopology."""
        self.volumes = VolumeLedger(objects, self.columns, self.nodes)
        """What tasks hold of volumes: claims, PersistentVolumes, storage to be provisioned, attachments."""
        self.devices = DeviceLedger(objects, self.nodes)
        """ResourceClaims and the devices that they hold."""
        self._volumes_only: dict[Task, None] = {}
        """Tasks that request nothing but volume claims."""
        self._storage_version = 0
        """The state of storage when it was last determined whether they are best-effort."""
        self.ledgers: tuple[Ledger, ...] = (self.cards, self.cpus, self.volumes, self.devices)
        """What tasks hold besides amounts, a ledger for each kind of resource."""
        self._served = ServedResources()

    # -- what changed

    @property
    def usage(self) -> Mapping[str, NodeUsage]:
        """Measured load by node name; replaced as a whole between cycles, never changed in place."""
        return self._usage

    @usage.setter
    def usage(self, usage: Mapping[str, NodeUsage]) -> None:
        self._usage = usage
        self._usages.note(None)

    @property
    def dirty(self) -> Dirty:
        """What changed since the last session."""
        return self.feed.dirty

    @dirty.setter
    def dirty(self, dirty: Dirty) -> None:
        self.feed.start_session(dirty)

    @property
    def touched(self) -> list[Job]:
        """Jobs in the order in which moves touched them, once for each move, for sorted collections of jobs."""
        return self.feed.touched

    def emptied(self) -> Cluster:
        """A cluster without objects that keeps the settings and the plugins' memory of this one."""
        empty = Cluster(type(self.objects)(), self.dims, self.feed.generation + 1)  # shapes cache ledgers
        empty.volumes.ignored_provisioners = self.volumes.ignored_provisioners
        if self.cards.models is not None:
            empty.share_cards(self.cards.models)
        empty.memory, empty.usage, empty.shard = self.memory, self.usage, self.shard
        return empty

    def mark_all_dirty(self) -> None:
        """Mark everything as changed for the next session."""
        self.feed.start_session(Dirty())
        self.feed.note_everything()

    def forget_changes(self) -> None:
        """Start to collect changes: only what changes from now on is dirty."""
        self.settle()
        self.feed.start_session()

    def set_shard(self, shard: Shard) -> None:
        """Change the nodes of this scheduler; what is cached about nodes becomes invalid."""
        before, self.shard = self.shard, shard
        if before is None or before.nodes != shard.nodes:
            self.feed.nodes.note_everything()
            self.feed.note_nodes()

    # -- the one move

    def move(
        self, task: Task, status: Status, node: Node | None, grants: tuple[Grant, ...] = ()
    ) -> Change | Refused:
        """Give a task another status, on another node or none. A listener may refuse the move.

        On the same node the task keeps its grants; on another node it holds the given ones.
        """
        held = task.grants if node is task.node else grants
        change = Change(task, task.status, task.node, status, node, False, task.grants, held)
        self._apply(change)
        for notified, listener in enumerate(self.listeners):
            try:
                why = listener.on_move(change)
            except BaseException as error:
                self._unmove(change, notified)
                raise ListenerFailed(error, listener) from error
            if why is not None:
                self._unmove(change, notified)
                return Refused(why)
        return change

    def undo(self, change: Change) -> None:
        """Undo a move: nothing is chosen or refused again."""
        self._unmove(change, len(self.listeners))

    def _unmove(self, change: Change, notified: int) -> None:
        """Restore the state before the listeners, so that it is as before the move even if one of them raises."""
        reversed_change = change.reversed()
        self._apply(reversed_change)
        for listener in reversed(self.listeners[:notified]):
            try:
                listener.on_move(reversed_change)
            except BaseException as error:
                raise ListenerFailed(error, listener) from error

    def _apply(self, change: Change) -> None:
        task, old_status, old_node, status, node = change[:5]
        if old_node is not node or WEIGHT[old_status] is not WEIGHT[status]:
            if old_node is not None:
                self._weigh(task, old_status, old_node, -1)
            task.status, task.node, task.grants = status, node, change.grants
            if node is not None:
                self._weigh(task, status, node, 1)
        else:
            task.status = status
        if task.job is not None:
            by_status = task.job.by_status
            del by_status[old_status][task]
            by_status[status][task] = None
            self._count(task.job, task, old_status, -1)
            self._count(task.job, task, status, 1)
            self.feed.note_job(task.job)
            if SUM_OF[old_status] is not SUM_OF[status]:
                self._sum(task.job, task, old_status, -1)
                self._sum(task.job, task, status, 1)
                self.update_worklists(task.job)
        if self.reservations and (old_status is Status.PENDING) is not (status is Status.PENDING):
            self.reservations.update(task.uid)

    # -- tasks are added and removed

    def enter(self, task: Task) -> None:
        """Add a task, with the weight of its status on its node."""
        self.enter_all((task,))

    def enter_all(self, tasks: Sequence[Task]) -> None:
        """Add replicas, any two of which may `enter_together`."""
        for task in tasks:
            self.tasks[task.uid] = task
            self.affinity_terms.add(task)
            if task.shape.best_effort and task.volume_claims:
                self._volumes_only[task] = None
                task.attaches = self.volumes.attaches(task)
            if task.node is not None:
                self._weigh(task, task.status, task.node, 1)
        if tasks[0].job is not None:
            self._enter_job(tasks[0].job, tasks)
        if self.reservations:
            for task in tasks:
                self.reservations.task_entered(task)

    def _enter_job(self, job: Job, tasks: Sequence[Task]) -> None:
        task, count = tasks[0], len(tasks)
        for each in tasks:
            job.tasks[each.uid] = each
            job.by_status[task.status][each] = None
        if task.sub_job is not None:
            task.sub_job.tasks.update(dict.fromkeys(tasks))
        shift(job.total, task.shape.request, count)
        for demand in task.demands:
            job.task_demands[demand] = job.task_demands.get(demand, 0) + count
        self._count(job, task, task.status, count)
        self._sum(job, task, task.status, count)
        self.mark_dirty(job)

    def leave(self, task: Task) -> None:
        """Remove a task and its weight."""
        del self.tasks[task.uid]
        self.affinity_terms.remove(task)
        self._volumes_only.pop(task, None)
        if task.node is not None:
            self._weigh(task, task.status, task.node, -1)
        if task.job is not None:
            del task.job.by_status[task.status][task]
            self._count(task.job, task, task.status, -1)
            self._sum(task.job, task, task.status, -1)
            shift(task.job.total, task.request, -1)
            for demand in task.demands:
                task.job.task_demands[demand] -= 1
                if not task.job.task_demands[demand]:
                    del task.job.task_demands[demand]
            del task.job.tasks[task.uid]
            if task.sub_job is not None:
                del task.sub_job.tasks[task]
                if not task.sub_job.tasks:
                    task.job.sub_jobs.pop(task.sub_job.id, None)
            self.mark_dirty(task.job)
        if self.reservations:
            self.reservations.update(task.uid)

    def join(self, job: Job, queue: Queue | None) -> None:
        """Move a job, with all that its tasks hold, to a queue or to none."""
        if job.queue is not queue:
            if job.queue is not None:
                self._transfer(job, job.queue, -1)
                for ledger in self.ledgers:
                    ledger.recharge(job, job.queue, -1)
                del job.queue.jobs[job]
                self.feed.note_queue(job.queue)
            job.queue = queue
            if queue is not None:
                queue.jobs[job] = None
                self._transfer(job, queue, 1)
                for ledger in self.ledgers:
                    ledger.recharge(job, queue, 1)
                self.feed.note_queue(queue)
            self.reservations.update_all()
        self.mark_dirty(job)

    def set_phase(self, job: Job, phase: str) -> None:
        """Give a job another phase, which decides whether enqueue still has to admit it."""
        job.phase = phase
        self.mark_dirty(job)

    def update_worklists(self, job: Job) -> None:
        """Update `waiting` and `backlog` after something about a job changed."""
        visible, counts = job.visible, job.counts
        if visible and job.waits_for_queue:
            self.waiting[job] = None
        elif job in self.waiting:
            del self.waiting[job]
        if visible and (counts[Status.PENDING] or counts[Status.PIPELINED]):
            self.backlog[job] = None
        elif job in self.backlog:
            del self.backlog[job]

    def settle(self) -> None:
        """Lay the columns out if nodes were added or removed; every session begins with this."""
        if self.layout_stale:
            known = [node for node in self.nodes.values() if node.object is not None]
            new = [node for node in known if node.row < 0]
            self.columns.arrange(known)
            for node in new:
                self.columns.set_size(node)
                self.reservations.load(node)
            self._load_tasks(new)
            self._stranded = None
            self.pod_counts.forget()
            self.layout_stale = False
            self.feed.note_nodes()
        if self._storage_version != self.volumes.objects_version:
            self._update_volumes_only()
        self._served.update(self)
        dirty = self.feed.dirty
        if dirty.nodes or dirty.everything:
            self.total = self.columns.total(self.columns.allocatable)
        self.hyper_nodes.update(self.objects.hyper_nodes, self.nodes, self.columns)

    def _update_volumes_only(self) -> None:
        """Update which tasks without requests are best-effort, after objects of storage changed."""
        self._storage_version = self.volumes.objects_version
        for task in self._volumes_only:
            attaches, before = self.volumes.attaches(task), task.best_effort
            if attaches != task.attaches:
                task.attaches = attaches
                for unit in filter(None, (task.job, task.sub_job)):
                    unit.count(task.status, before, -1)
                    unit.count(task.status, task.best_effort, 1)
                if task.job is not None:
                    self.mark_dirty(task.job)

    def note_rowless(self, node: Node) -> None:
        """A node has no row, and its tasks changed, or it lost its row."""
        self._rowless[node] = None
        self._stranded = None

    @property
    def stranded(self) -> Amounts:
        """What tasks of jobs hold on nodes without a Node object, such as a removed node; leaving tasks excluded."""
        if self._stranded is None:
            self._rowless = {node: None for node in self._rowless if node.row < 0 and node.tasks}
            tasks = (task for node in self._rowless for task in node.tasks)
            self._stranded = total_of(
                task.request for task in tasks if task.job is not None and WEIGHT[task.status].staying
            )
        return self._stranded

    def resize(self, node: Node) -> None:
        """A node's object changed: its size, labels or taints."""
        if node.row >= 0:
            self.columns.set_size(node)
        self.feed.note_nodes()

    @property
    def sharable(self) -> Amounts:
        """What queues share: all that is allocatable, and what tasks hold beyond it.

        So what queues hold and what is free on nodes add up to it, even if nodes shrank or were removed.
        """
        overbooked, stranded = self.columns.overbooked, self.stranded
        return total_of((self.total, overbooked, stranded)) if overbooked or stranded else self.total

    def ledgers_of(self, shape: Shape) -> tuple[Ledger, ...]:
        """The ledgers that count what tasks of a shape hold; for most there are none."""
        known, version = shape.ledgers, self.feed.concerns.generation
        if known is None or known[0] != version:
            concerned = tuple(ledger for ledger in self.ledgers if ledger.concerns(shape.spec))
            known = shape.ledgers = (version, concerned)
        return known[1]

    def ledgers_at(self, shape: Shape, node: Node) -> tuple[Ledger, ...]:
        """The same, without those that count nothing on a node."""
        return tuple(ledger for ledger in self.ledgers_of(shape) if ledger.counts_at(node))

    def share_cards(self, models: Models) -> None:
        """Enable sharing of these models of cards, and count what tasks hold of them."""
        if self.cards.configure(models, self.nodes):
            self.feed.concerns.note(None)

    # -- the parts of a weight

    def _weigh(self, task: Task, status: Status, node: Node, sign: int) -> None:
        """Add or subtract on a node: columns, pod view and pod counts, and the node's own list."""
        if sign > 0:
            node.tasks[task] = None
        else:
            del node.tasks[task]
        if node.row >= 0:
            in_view = _in_pod_view(task, status)
            self.columns.weigh(node.row, task.shape, WEIGHT[status], in_view, sign)
            if in_view and self.pod_counts:
                self.pod_counts.add(task, node.row, sign)
        else:
            self.note_rowless(node)
        for ledger in self.ledgers_of(task.shape):
            (ledger.add if sign > 0 else ledger.remove)(task, status, node)

    def _load_tasks(self, nodes: list[Node]) -> None:
        """Add the tasks on nodes that have just received rows, equal tasks together."""
        rows: dict[tuple[Shape, Status, bool], list[int]] = {}
        for node in nodes:
            for task in node.tasks:
                kind = (task.shape, task.status, task.terminating)
                rows.setdefault(kind, []).append(node.row)
        for (shape, status, terminating), of_kind in rows.items():
            in_view = status is not Status.RELEASING or terminating
            self.columns.weigh_many(of_kind, shape, WEIGHT[status], in_view)

    def _count(self, job: Job, task: Task, status: Status, sign: int) -> None:
        """The counters of the job, its sub-job and its role, for one such task or, with a larger sign, for several."""
        best_effort = task.best_effort
        job.count(status, best_effort, sign)
        if task.sub_job is not None:
            task.sub_job.count(status, best_effort, sign)
        if task.role:
            counts = job.role_counts.get(task.role)
            if counts is None:
                counts = job.role_counts[task.role] = [0] * len(Status)
            counts[status] += sign

    def _sum(self, job: Job, task: Task, status: Status, sign: int) -> None:
        """The amounts of the job and its queue."""
        which = SUM_OF[status]
        if which is not None:
            request, queue = task.shape.request, job.queue
            shift(getattr(job, which), request, sign)
            if queue is not None:
                shift(getattr(queue, which), request, sign)

    def _transfer(self, job: Job, queue: Queue, sign: int) -> None:
        for which in ("allocated", "pending", "pipelined"):
            shift(getattr(queue, which), getattr(job, which), sign)

    def mark_dirty(self, job: Job) -> None:
        """Invalidate what is cached about a job."""
        self.feed.note_job(job)
        self.update_worklists(job)


def _in_pod_view(task: Task, status: Status) -> bool:
    """Whether Kubernetes' filters see it on its node: until it is evicted, and again once it is terminating."""
    return status is not Status.RELEASING or task.terminating


def enter_together(one: Task, other: Task) -> bool:
    """Whether two tasks count alike in all that a job, its sub-job and its queue sum up."""
    return (
        one.job is other.job
        and one.shape is other.shape
        and one.status is other.status
        and one.sub_job is other.sub_job
        and one.role == other.role
        and one.demands == other.demands
        and not one.volume_claims
        and not other.volume_claims
    )
