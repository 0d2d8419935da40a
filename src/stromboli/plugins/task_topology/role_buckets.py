"""The tasks of a job in buckets: tasks that like each other together, tasks that shun each other apart (spec 04 8).

Tasks on one node are a bucket. Each other task joins the bucket to which it is drawn most, of equals the one with the
least load; where every bucket repels it, it begins a new one.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Bools
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Ints, Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.task_topology.role_affinities import RoleAffinities

MIB = 1024 * 1024


def role_of(task: Task) -> str:
    """# quirk: spec 04 8: lists may name a role that a label gives, but only the annotation puts it in a bucket."""
    return task.annotations.get(names.TASK_SPEC, "")


class Bucket:
    """Tasks that are meant for one node."""

    __slots__ = ("bound_on", "drawn", "index", "load", "requests", "size", "unbound")

    def __init__(self, index: int):
        self.index = index
        self.drawn: Counter[str] = Counter()
        """How much each role is drawn to it."""
        self.load = 0.0
        """What its tasks without a node ask for: milli-CPUs, MiB and amounts of other resources, all added."""
        self.size = 0
        """How many tasks it has."""
        self.unbound: dict[str, Task] = {}
        """Its tasks without a node, by uid."""
        self.bound_on: Counter[Node] = Counter()
        """How many of its tasks are on each node."""
        self.requests: Requests | None = None
        """What its tasks ask for, once somebody has asked."""

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
        """By node, how many other tasks without a node have to be left out, by uid, so that the rest fits."""
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
    """What tasks without a node ask for, as a matrix: it is made once, and who gets a node is marked."""

    __slots__ = ("_amounts", "_places", "_waiting", "dims")

    def __init__(self, tasks: Mapping[str, Task]):
        asked = {CPU, MEMORY}.union(*(task.request for task in tasks.values()))
        self.dims = sorted(asked)
        """The resources that they ask for."""
        self._places = {uid: place for place, uid in enumerate(sorted(tasks))}
        self._amounts: Ints = np.zeros((len(tasks), len(self.dims)), dtype=np.int64)
        for uid, place in self._places.items():
            self._amounts[place] = [tasks[uid].request.get(dim, 0) for dim in self.dims]
        self._waiting: Bools = np.ones(len(tasks), dtype=bool)

    def mark(self, task: Task, waiting: bool) -> bool:
        """Note whether a task waits for a node; whether it is one of these tasks."""
        place = self._places.get(task.uid)
        if place is not None:
            self._waiting[place] = waiting
        return place is not None

    def of_others(self, task: Task) -> Ints:
        """What those ask for that wait, a row for each by uid, without this task."""
        waiting = self._waiting.copy()
        if task.uid in self._places:
            waiting[self._places[task.uid]] = False
        others: Ints = self._amounts[waiting]
        return others


class JobBuckets:
    """The buckets of one job, and which of its tasks were placed where in this session."""

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
    """For each role, the bucket to which it is drawn most; entries of buckets that changed since are passed over."""

    def __init__(self, roles: Iterable[str]):
        self._heaps: dict[str, list[tuple[int, float, int, int]]] = {role: [] for role in roles}

    def note(self, bucket: Bucket) -> None:
        """A bucket is new or has changed."""
        for role, heap in self._heaps.items():
            heapq.heappush(heap, (-bucket.drawn[role], bucket.load, bucket.index, bucket.size))

    def of(self, role: str, buckets: list[Bucket]) -> Bucket | None:
        """The best bucket for a task of a role; none if every one repels it."""
        heap = self._heaps[role]
        while heap and heap[0][3] != buckets[heap[0][2]].size:
            heapq.heappop(heap)
        return buckets[heap[0][2]] if heap and heap[0][0] <= 0 else None
