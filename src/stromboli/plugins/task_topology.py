"""The plugin `task-topology`: roles of a job on one node or apart (spec 04 8).

Tasks are placed bucket by bucket, each meant for one node: tasks with affinity together, tasks with anti-affinity
apart. Tasks that are already on one node are a bucket. Every other task joins the bucket with the greatest affinity,
among equals the one with the least load, and starts a new bucket if every bucket repels it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stromboli.api import names
from stromboli.api.errors import quoted
from stromboli.engine.placement.node_functions import Bools, Column, Nodes, NodeScore
from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Dirty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.job import Job
from stromboli.model.node_columns import Ints, Node
from stromboli.model.requirements.placement_requirement import TASK_TOPOLOGY
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg

AFFINITY, ANTI_AFFINITY, TASK_ORDER = names.TASK_TOPOLOGY


# -- affinities between roles, from the annotations of the PodGroup


MAX_LIST_LENGTH = 16_384
"""The longest annotation that is read, in characters."""
MAX_LISTED_ROLES = 128
"""Names in one annotation; every pair of a group is a relation of its own."""

# The more a relation restricts where a task may go, the earlier its role is placed.
_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1


class BadRoleList(ValueError):
    """An annotation that names unknown roles, or one twice; it has no effect on the job."""


@dataclass(slots=True)
class RoleAffinities:
    """The affinities of roles by the annotations of a PodGroup."""

    liked: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of roles that belong together; a role may be paired with itself."""
    shunned: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of roles with anti-affinity."""
    priority: dict[str, int] = field(default_factory=dict)
    """How much the placement of each role is restricted; roles without a relation are absent."""
    order: dict[str, int] = field(default_factory=dict)
    """Higher for roles to be placed earlier."""

    def rank(self, role: str) -> tuple[int, int]:
        """The sort key of a role: the order in the annotation, then its priority."""
        return (-self.order.get(role, 0), -self.priority.get(role, 0))

    def affinity(self, role: str, other: str) -> int:
        """The affinity of a task of one role to a task of another role."""
        pair = (role, other)
        return (pair in self.liked) - (pair in self.shunned)

    def anti_affinity(self, role: str, others: Mapping[str, int]) -> int:
        """The anti-affinity of a task of a role to counts of each role: zero or less."""
        return -sum(count for other, count in others.items() if (role, other) in self.shunned)


def read_affinities(annotations: Mapping[str, str], roles: Collection[str]) -> RoleAffinities:
    """The affinities of a PodGroup with these roles; raises `BadRoleList` with the reason for an invalid annotation."""
    affinities = RoleAffinities()
    for key, pairs, alone, among_others in (
        (AFFINITY, affinities.liked, _SELF, _INTER),
        (ANTI_AFFINITY, affinities.shunned, _SELF_ANTI, _INTER_ANTI),
    ):
        for group in _groups(annotations, key, roles):
            single = len(group) == 1
            named = [role for role in group if role]
            for role in named:
                priority = alone if single else among_others
                affinities.priority[role] = max(priority, affinities.priority.get(role, 0))
            pairs |= {(role, other) for role in named for other in named if role != other or single}
    for listed in _groups(annotations, TASK_ORDER, roles):
        for index, role in enumerate(listed):
            affinities.order[role] = len(listed) - index
    return affinities


def _groups(annotations: Mapping[str, str], key: str, roles: Collection[str]) -> list[list[str]]:
    """Groups of roles, with empty names, which name no role but count: `ps,` is a group of two (spec 04 8)."""
    text = annotations.get(key)
    if text is None:
        return []
    if len(text) > MAX_LIST_LENGTH:
        raise BadRoleList(f"annotation {key}: is longer than {MAX_LIST_LENGTH} characters")
    groups = [group.split(",") for group in ([text] if key == TASK_ORDER else text.split(";"))]
    if sum(map(len, groups)) > MAX_LISTED_ROLES:
        raise BadRoleList(f"annotation {key}: names more than {MAX_LISTED_ROLES} roles")
    for group in groups:
        named = [role for role in group if role]
        for role in named:
            if role not in roles:
                raise BadRoleList(f"annotation {key}: the job has no task {quoted(role)}")
            if named.count(role) > 1:
                raise BadRoleList(f"annotation {key}: names the task {quoted(role)} twice in a group")
    return groups


# -- buckets of tasks


MIB = 1024 * 1024


def role_of(task: Task) -> str:
    """# quirk: spec 04 8: lists may name a role that a label gives, but only the annotation puts it in a bucket."""
    return task.annotations.get(names.TASK_SPEC, "")


class Bucket:
    """Tasks intended for one node."""

    __slots__ = ("bound_on", "drawn", "index", "load", "requests", "size", "unbound")

    def __init__(self, index: int):
        self.index = index
        self.drawn: Counter[str] = Counter()
        """The affinity of each role to it."""
        self.load = 0.0
        """The request of its tasks without a node: milli-CPUs, MiB and amounts of other resources, all added."""
        self.size = 0
        """The number of its tasks."""
        self.unbound: dict[str, Task] = {}
        """Its tasks without a node, by uid."""
        self.bound_on: Counter[Node] = Counter()
        """The number of its tasks on each node."""
        self.requests: Requests | None = None
        """The requests of its tasks, computed on first use."""

    def add(self, task: Task) -> None:
        self.size += 1
        if task.node is not None:
            self.bound_on[task.node] += 1
            return
        self.unbound[task.uid] = task
        request = task.request
        self.load += request.get(CPU, 0) + request.get(MEMORY, 0) / MIB
        self.load += sum(amount for dim, amount in request.items() if dim not in (CPU, MEMORY))

    def bind(self, task: Task, node: Node) -> None:
        """A task got its node."""
        self.bound_on[node] += 1
        self.unbound.pop(task.uid, None)
        if self.requests is not None:
            self.requests.mark(task, False)

    def unbind(self, task: Task, node: Node) -> None:
        """A task lost its node again."""
        self.bound_on[node] -= 1
        self.unbound[task.uid] = task
        if self.requests is not None and not self.requests.mark(task, True):
            self.requests = None

    def displaced(self, task: Task, available: Ints) -> Ints:
        """By node, the number of other tasks without a node to leave out, by uid, so that the remaining ones fit."""
        if self.requests is None:
            self.requests = Requests(self.unbound)
        dims, others = self.requests.dims, self.requests.of_others(task)
        left_out = np.zeros((len(others) + 1, len(dims)), dtype=np.int64)
        others.cumsum(axis=0, out=left_out[1:])
        most: Ints = np.zeros(available.shape[1], dtype=np.int64)
        for place, dim in enumerate(dims):
            total = int(left_out[-1, place]) + int(task.request.get(dim, 0))
            np.maximum(most, np.searchsorted(left_out[:, place], total - available[dim]), out=most)
        return np.minimum(most, len(others))


class Requests:
    """Requests of tasks without a node, as a matrix: it is built once, and tasks that get a node are marked."""

    __slots__ = ("_amounts", "_places", "_waiting", "dims")

    def __init__(self, tasks: Mapping[str, Task]):
        asked = {CPU, MEMORY}.union(*(task.request for task in tasks.values()))
        self.dims = sorted(asked)
        """The resources that they request."""
        self._places = {uid: place for place, uid in enumerate(sorted(tasks))}
        self._amounts: Ints = np.zeros((len(tasks), len(self.dims)), dtype=np.int64)
        for uid, place in self._places.items():
            self._amounts[place] = [tasks[uid].request.get(dim, 0) for dim in self.dims]
        self._waiting: Bools = np.ones(len(tasks), dtype=bool)

    def mark(self, task: Task, waiting: bool) -> bool:
        """Mark whether a task has no node; true if it is one of these tasks."""
        place = self._places.get(task.uid)
        if place is not None:
            self._waiting[place] = waiting
        return place is not None

    def of_others(self, task: Task) -> Ints:
        """The requests of tasks without a node, a row for each by uid, except this task."""
        waiting = self._waiting.copy()
        if task.uid in self._places:
            waiting[self._places[task.uid]] = False
        others: Ints = self._amounts[waiting]
        return others


class JobBuckets:
    """The buckets of one job, and the placements of its tasks in this session."""

    def __init__(self, affinities: RoleAffinities, tasks: Iterable[Task]):
        self.affinities = affinities
        self.buckets: list[Bucket] = []
        self.placed: dict[Node, Counter[str]] = {}
        """The roles of the tasks that got their node in this session. # quirk: spec 04 8: not of those that run."""
        self._bucket_of: dict[str, Bucket] = {}
        self._fill([task for task in tasks if role_of(task) in affinities.priority])
        self.largest = max((bucket.size for bucket in self.buckets), default=0)
        """The size of the largest bucket."""

    def bucket_of(self, task: Task) -> Bucket | None:
        return self._bucket_of.get(task.uid)

    # -- filling

    def _fill(self, tasks: list[Task]) -> None:
        by_node: dict[Node, Bucket] = {}
        waiting = [task for task in tasks if task.status is Status.PENDING and task.node is None]
        coming = Counter(map(role_of, waiting))
        best = _BestBuckets(coming)
        bound = [(task.node, task) for task in tasks if task.node is not None]
        for node, task in sorted(bound, key=lambda each: each[0].name):
            by_node[node] = self._put(task, by_node.get(node), coming)
        for bucket in self.buckets:
            best.note(bucket)
        for task in sorted(waiting, key=lambda task: (*self.affinities.rank(role_of(task)), task.name)):
            best.note(self._put(task, best.of(role_of(task), self.buckets), coming))

    def _put(self, task: Task, bucket: Bucket | None, roles: Iterable[str]) -> Bucket:
        if bucket is None:
            bucket = Bucket(len(self.buckets))
            self.buckets.append(bucket)
        bucket.add(task)
        for role in roles:
            bucket.drawn[role] += self.affinities.affinity(role, role_of(task))
        self._bucket_of[task.uid] = bucket
        return bucket

    # -- following moves

    def bind(self, task: Task, node: Node) -> None:
        """A task got its node."""
        self.placed.setdefault(node, Counter())[role_of(task)] += 1
        bucket = self.bucket_of(task)
        if bucket is not None:
            bucket.bind(task, node)

    def unbind(self, task: Task, node: Node) -> None:
        """A task lost its node again."""
        self.placed.setdefault(node, Counter())[role_of(task)] -= 1
        bucket = self.bucket_of(task)
        if bucket is not None:
            bucket.unbind(task, node)


class _BestBuckets:
    """For each role, the bucket with the greatest affinity; entries of buckets that changed since are skipped."""

    def __init__(self, roles: Iterable[str]):
        self._heaps: dict[str, list[tuple[int, float, int, int]]] = {role: [] for role in roles}

    def note(self, bucket: Bucket) -> None:
        """Add or update a bucket."""
        for role, heap in self._heaps.items():
            heapq.heappush(heap, (-bucket.drawn[role], bucket.load, bucket.index, bucket.size))

    def of(self, role: str, buckets: list[Bucket]) -> Bucket | None:
        """The best bucket for a task of a role; none if every one repels it."""
        heap = self._heaps[role]
        while heap and heap[0][3] != buckets[heap[0][2]].size:
            heapq.heappop(heap)
        return buckets[heap[0][2]] if heap and heap[0][0] <= 0 else None


# -- the plugin


FULL_SCORE = 100.0
_OUT_OF_BUCKET = (1,)
REMEDY = "the job is placed as if it had no task-topology annotations: correct the list"


@dataclass(frozen=True, slots=True)
class TaskTopologyArguments:
    """How much the score counts."""

    weight: int = arg("task-topology.weight", 1, "Weight of the score.")


class TaskTopology(Plugin):
    """Places roles of a job on one node or apart, by annotations of its PodGroup."""

    name = "task-topology"
    honours = frozenset({TASK_TOPOLOGY.name})
    Arguments = TaskTopologyArguments
    arguments: TaskTopologyArguments

    def __init__(self, arguments: TaskTopologyArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._jobs: dict[Job, JobBuckets] = {}

    # -- buckets

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything:
            self._jobs = {}
        for job in session.jobs() if dirty.everything else dirty.jobs:
            self._jobs.pop(job, None)
            if _wants_topology(job):
                self._divide(session, job)

    def _divide(self, session: Session, job: Job) -> None:
        """Divide the tasks of a job into buckets; a job with an invalid list gets none, and an event."""
        assert job.group is not None
        try:
            roles = {task.role for task in job.tasks.values()}
            affinities = read_affinities(job.group.metadata.annotations, roles)
        except BadRoleList as error:
            text = f"{error}: {REMEDY}"
            session.record_event(job, self.name, names.WARNING, names.EVENT_FIELD_IGNORED, text)
        else:
            self._jobs[job] = JobBuckets(affinities, job.tasks.values())

    def on_move(self, change: Change) -> None:
        buckets = self._jobs.get(change.task.job) if change.task.job is not None else None
        if buckets is not None and change.old_node is not change.node:
            if change.old_node is not None:
                buckets.unbind(change.task, change.old_node)
            if change.node is not None:
                buckets.bind(change.task, change.node)

    def _bucket(self, task: Task) -> tuple[JobBuckets, Bucket] | None:
        buckets = self._jobs.get(task.job) if task.job is not None else None
        bucket = buckets.bucket_of(task) if buckets is not None else None
        return (buckets, bucket) if buckets is not None and bucket is not None else None

    # -- order

    def task_order(self, task: Task) -> Key:
        """The bucket with the most tasks without a node, then the older one; within it by role."""
        known = self._bucket(task)
        if known is None:
            return _OUT_OF_BUCKET
        buckets, bucket = known
        return (0, -len(bucket.unbound), bucket.index, *buckets.affinities.rank(role_of(task)))

    # -- score

    def shape_key(self, task: Task) -> Hashable:
        known = self._bucket(task)
        return (task.job.id if task.job else None, known[1].index, role_of(task)) if known else None

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self._bucket(task) is not None and self.arguments.weight:
            yield NodeScore(self._score, self.name, "pods", self._version, of_some_nodes=True)

    def _version(self, task: Task) -> Hashable:
        return (self.session.cluster.columns.clock, task.uid)

    def _score(self, task: Task, nodes: Nodes) -> Column:
        known = self._bucket(task)
        if known is None:
            return nodes.zeros()
        buckets, bucket = known
        available = nodes.idle + nodes.releasing
        score = nodes.pick(self._near(buckets, bucket, role_of(task))) + len(bucket.unbound)
        score -= bucket.displaced(task, available)
        score[_lacks(task, nodes, available)] = 0
        return score * self.arguments.weight * FULL_SCORE / buckets.largest

    def _near(self, buckets: JobBuckets, bucket: Bucket, role: str) -> Ints:
        """By node: the tasks of the bucket there, minus placed tasks with anti-affinity to the role."""
        near: Ints = np.zeros(len(self.session.cluster.columns), dtype=np.int64)
        for node, count in bucket.bound_on.items():
            if node.row >= 0:
                near[node.row] += count
        for node, roles in buckets.placed.items() if buckets.affinities.shunned else ():
            if node.row >= 0:
                near[node.row] += buckets.affinities.anti_affinity(role, roles)
        return near


def _wants_topology(job: Job) -> bool:
    group = job.group
    return (
        group is not None
        and any(key in group.metadata.annotations for key in names.TASK_TOPOLOGY)
        and bool(job.by_status[Status.PENDING])
    )


def _lacks(task: Task, nodes: Nodes, available: Ints) -> Bools:
    """Nodes that could never accept the task.

    # quirk: spec 04 8: so are those with less than nothing of any resource, and without one that it asks nothing of.
    """
    lacking: Bools = np.any(available < task.shape.dense(len(available))[:, None], axis=0)
    unused = {dim for dim, amount in task.request.items() if not amount and dim > MEMORY}
    if unused:
        lacking = lacking | nodes.each(lambda node: not unused <= node.allocatable.keys(), bool)
    return lacking
