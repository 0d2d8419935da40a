"""The cluster: one live state, and the one way in which a task changes.

`move(task, status, node)` takes the old weight off and puts the new one on: node columns, job counters, queue totals,
the pod view and the listeners. Allocate, pipeline, evict, release and the undo of each are this one call. What a task
weighs is a function of its status (and, in the pod view, of whether its pod is dying); see `status.WEIGHT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stromboli.model.amounts import Amounts, shift
from stromboli.model.constraints.affinity_terms import Terms
from stromboli.model.constraints.pod_tallies import Tallies
from stromboli.model.dimensions import Dimensions
from stromboli.model.job import Job, JobId
from stromboli.model.node_columns import Columns, Node
from stromboli.model.node_usage import NodeUsage
from stromboli.model.queue import Queue
from stromboli.model.reservations import Reservations
from stromboli.model.shard import Shard
from stromboli.model.status import ALLOCATED_CLASS, WEIGHT, Status
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.model.lookup_objects import Objects

# Which sum of its job and queue a task of some status belongs to.
SUM_OF: tuple[str | None, ...] = tuple(
    "allocated"
    if ALLOCATED_CLASS[status]
    else {Status.PENDING: "pending", Status.PIPELINED: "pipelined"}.get(status)
    for status in Status
)


class Change(NamedTuple):
    """One move: what it was and what it became."""

    task: Task
    old_status: Status
    old_node: Node | None
    status: Status
    node: Node | None
    back: bool = False
    """Whether this takes an earlier move back; then nobody may refuse."""

    def reversed(self) -> Change:
        return Change(self.task, self.status, self.node, self.old_status, self.old_node, not self.back)


class Refused(NamedTuple):
    """A listener would not have it; the state is as before."""

    why: str


class ListenerFailed(Exception):
    """A listener raised; the state is as before the move."""

    def __init__(self, cause: Exception, listener: Listener):
        super().__init__(str(cause))
        self.cause = cause
        self.listener = listener


class Listener(Protocol):
    """Told of every move. Its own numbers must follow the change alone, so that the reverse change restores them."""

    def on_move(self, change: Change) -> str | None:
        """Take the change in; a text refuses it. Never asked to refuse when a move is taken back."""


class Dirty:
    """What changed since somebody last took note."""

    __slots__ = ("everything", "jobs", "nodes", "objects", "queues")

    def __init__(self) -> None:
        self.everything = True
        self.jobs: dict[Job, None] = {}
        self.queues: dict[Queue, None] = {}
        self.nodes = False
        """Whether nodes came, went or changed."""
        self.objects = False
        """Whether any of the plain objects changed."""

    def __bool__(self) -> bool:
        return self.everything or self.nodes or self.objects or bool(self.jobs) or bool(self.queues)


class Cluster:
    """Everything that exists, mirrored from the world."""

    def __init__(self, objects: Objects):
        self.dims = Dimensions()
        self.columns = Columns(self.dims)
        self.objects = objects
        """Plain objects that plugins look up: quotas, budgets, claims, namespaces, priority classes."""
        self.terms = Terms(objects)
        """The pod affinity terms that tasks carry, placed or not."""
        self.tallies = Tallies(self.columns, self.terms.marks)
        self.nodes: dict[str, Node] = {}
        self.jobs: dict[JobId, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.tasks: dict[str, Task] = {}
        self.unplaced = False
        """Whether nodes came or went since the columns were laid out."""
        self.total: Amounts = {}
        """What all nodes together may give away."""
        self.waiting: dict[Job, None] = {}
        """Visible jobs that enqueue has not let in."""
        self.backlog: dict[Job, None] = {}
        """Visible jobs with a Pending or Pipelined task."""
        self.reservations = Reservations(self)
        """Room that is kept beyond a cycle."""
        self.unsettled: dict[Job, None] = {}
        """Jobs whose outcome was not final when it was last told."""
        self.memory: dict[str, Any] = {}
        """What plugins carry from cycle to cycle: plain data, by plugin name."""
        self.usage: Mapping[str, NodeUsage] = {}
        """How busy nodes really are, by name; replaced as a whole between cycles, never changed in place."""
        self.listeners: list[Listener] = []
        self.dirty = Dirty()
        self.shard: Shard | None = None
        """The nodes that are this scheduler's, if several divide them."""
        self.touched: list[Job] = []
        """Jobs in the order in which moves touched them, for whoever keeps jobs sorted."""

    def mark_all_dirty(self) -> None:
        """Let changes pass that nobody takes note of: whoever looks next looks at everything."""
        self.dirty = Dirty()
        self.touched.clear()

    def divide(self, shard: Shard) -> None:
        """Let other nodes be this scheduler's; what is remembered of nodes is looked at again."""
        before, self.shard = self.shard, shard
        if before is None or before.nodes != shard.nodes:
            self.columns.objects += 1
            self.dirty.nodes = True

    # -- the one move

    def move(self, task: Task, status: Status, node: Node | None) -> Change | Refused:
        """Let a task be of another status, on another node or none; a listener may refuse."""
        change = Change(task, task.status, task.node, status, node)
        self._apply(change)
        for told, listener in enumerate(self.listeners):
            try:
                why = listener.on_move(change)
            except Exception as error:
                self._unmove(change, told)
                raise ListenerFailed(error, listener) from error
            if why is not None:
                self._unmove(change, told)
                return Refused(why)
        return change

    def undo(self, change: Change) -> None:
        """Take a move back: nothing is asked, chosen or refused again."""
        self._unmove(change, len(self.listeners))

    def _unmove(self, change: Change, told: int) -> None:
        """The state first: whatever a listener does on being told, it stands as before the move."""
        back = change.reversed()
        self._apply(back)
        for listener in reversed(self.listeners[:told]):
            try:
                listener.on_move(back)
            except Exception as error:
                raise ListenerFailed(error, listener) from error

    def _apply(self, change: Change) -> None:
        task, old_status, old_node, status, node, _ = change
        if old_node is not node or WEIGHT[old_status] is not WEIGHT[status]:
            if old_node is not None:
                self._weigh(task, old_status, old_node, -1)
            task.status, task.node = status, node
            if node is not None:
                self._weigh(task, status, node, 1)
        else:
            task.status = status
        if task.job is not None:
            self._count(task.job, task, old_status, -1)
            self._count(task.job, task, status, 1)
            if SUM_OF[old_status] is not SUM_OF[status]:
                self._sum(task.job, task, old_status, -1)
                self._sum(task.job, task, status, 1)
            self.note(task.job)
        if self.reservations and task.uid in self.reservations:
            self.reservations.update(task.uid)

    # -- a task comes and goes

    def enter(self, task: Task) -> None:
        """Put a new task's weight on, as its status and node say."""
        self.tasks[task.uid] = task
        self.terms.enter(task)
        if task.node is not None:
            self._weigh(task, task.status, task.node, 1)
        if task.job is not None:
            task.job.tasks[task.uid] = task
            if task.group is not None:
                task.group.tasks[task] = None
            shift(task.job.total, task.request)
            self._count(task.job, task, task.status, 1)
            self._sum(task.job, task, task.status, 1)
            self.note(task.job)
        if self.reservations:
            self.reservations.task_entered(task)

    def leave(self, task: Task) -> None:
        """Take a task's weight off and forget it."""
        del self.tasks[task.uid]
        self.terms.leave(task)
        if task.node is not None:
            self._weigh(task, task.status, task.node, -1)
        if task.job is not None:
            self._count(task.job, task, task.status, -1)
            self._sum(task.job, task, task.status, -1)
            shift(task.job.total, task.request, -1)
            del task.job.tasks[task.uid]
            if task.group is not None:
                del task.group.tasks[task]
                if not task.group.tasks:
                    task.job.sub_jobs.pop(task.group.id, None)
            self.note(task.job)
        if self.reservations:
            self.reservations.update(task.uid)

    def join(self, job: Job, queue: Queue | None) -> None:
        """Let a job belong to a queue, or to none, with all that its tasks hold."""
        if job.queue is not queue:
            if job.queue is not None:
                self._transfer(job, job.queue, -1)
                del job.queue.jobs[job]
                self.dirty.queues[job.queue] = None
            job.queue = queue
            if queue is not None:
                queue.jobs[job] = None
                self._transfer(job, queue, 1)
                self.dirty.queues[queue] = None
            self.reservations.update_all()
        self.note(job)

    def set_phase(self, job: Job, phase: str) -> None:
        """Give a job another phase; who may be let in follows from it."""
        job.phase = phase
        self.note(job)

    def update_worklists(self, job: Job) -> None:
        """Bring the lists of work up to date after something about a job changed."""
        visible = job.visible
        _keep(self.waiting, job, visible and job.waits_for_queue)
        counts = job.counts
        _keep(self.backlog, job, visible and (counts[Status.PENDING] or counts[Status.PIPELINED]) > 0)

    def settle(self) -> None:
        """Lay the columns out if nodes came or went; every session begins with this."""
        if self.unplaced:
            known = [node for node in self.nodes.values() if node.object is not None]
            new = [node for node in known if node.row < 0]
            self.columns.arrange(known)
            for node in new:
                self.columns.set_size(node)
                for task in node.tasks:
                    self._load(task, task.status, node, 1)
                self.reservations.load(node)
            self.tallies.recount()
            self.unplaced = False
            self.dirty.nodes = True
        if self.dirty.nodes or self.dirty.everything:
            self.total = self.columns.total(self.columns.allocatable)

    def resize(self, node: Node) -> None:
        """A node's object changed: its size, labels or taints."""
        if node.row >= 0:
            self.columns.set_size(node)
        self.dirty.nodes = True

    # -- the parts of a weight

    def _weigh(self, task: Task, status: Status, node: Node, sign: int) -> None:
        """The node's part: columns, pod view and tallies, and the node's own list."""
        if sign > 0:
            node.tasks[task] = None
        else:
            del node.tasks[task]
        if node.row >= 0:
            self._load(task, status, node, sign)
            if self.tallies and _seen(task, status):
                self.tallies.add(task, node.row, sign)

    def _load(self, task: Task, status: Status, node: Node, sign: int) -> None:
        self.columns.weigh(node.row, task.shape, WEIGHT[status], sign)
        if _seen(task, status):
            self.columns.view_add(node.row, task.shape, sign)

    def _count(self, job: Job, task: Task, status: Status, sign: int) -> None:
        """The counters of the job, its sub-job and its role."""
        best_effort = task.shape.best_effort
        job.count(status, best_effort, sign)
        if sign > 0:
            job.by_status[status][task] = None
        else:
            del job.by_status[status][task]
        if task.group is not None:
            task.group.count(status, best_effort, sign)
        if task.role:
            counts = job.role_counts.get(task.role)
            if counts is None:
                counts = job.role_counts[task.role] = [0] * len(Status)
            counts[status] += sign

    def _sum(self, job: Job, task: Task, status: Status, sign: int) -> None:
        """The amounts of the job and its queue."""
        which = SUM_OF[status]
        if which is not None:
            shift(getattr(job, which), task.shape.request, sign)
            if job.queue is not None:
                shift(getattr(job.queue, which), task.shape.request, sign)

    def _transfer(self, job: Job, queue: Queue, sign: int) -> None:
        for which in ("allocated", "pending", "pipelined"):
            shift(getattr(queue, which), getattr(job, which), sign)

    def note(self, job: Job) -> None:
        """Whoever keeps something about this job looks again."""
        job.version += 1
        if not self.touched or self.touched[-1] is not job:
            self.touched.append(job)
        self.dirty.jobs[job] = None
        self.update_worklists(job)


def _keep(members: dict[Job, None], job: Job, belongs: bool) -> None:
    if belongs:
        members[job] = None
    else:
        members.pop(job, None)


def _seen(task: Task, status: Status) -> bool:
    """Whether Kubernetes' filters see it on its node: until it was evicted, and again once it is dying."""
    return status is not Status.RELEASING or task.dying
