"""Node groups of queues: by affinity, and up to a limit in each (spec 04 6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.scheduling import NodeGroupAffinity, QueueAffinity
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, shift
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.requirements.placement_requirement import NODE_GROUPS, PREFERRED_NODE_GROUPS
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg

_COUNTS = tuple(ALLOCATED_CLASS[status] or status is Status.PIPELINED for status in Status)
_NO_GROUPS = NodeGroupAffinity()


@dataclass(frozen=True, slots=True)
class NodeGroupArguments:
    """How nodes without a group and the order of preferred groups are handled."""

    strict: bool = arg("strict", True, "Whether a queue without affinity may use no nodes.")
    ordered: bool = arg("enablePreferredOrder", False, "Whether the first preferred group scores highest.")


Limits = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""By group, by resource."""


Totals = dict[tuple[str, str], Amounts]
"""By queue and group."""


class GroupMembership(NamedTuple):
    """The node group affinity, anti-affinity and limits of a queue."""

    queue: str
    """Its name if it has limits; queues without limits may be equal."""
    required: tuple[str, ...]
    preferred: tuple[str, ...]
    excluded: tuple[str, ...]
    avoided: tuple[str, ...]
    limits: Limits | None
    """None if the annotation is invalid."""

    @property
    def unset(self) -> bool:
        return not (self.required or self.preferred or self.excluded or self.avoided)

    def allows(self, group: str) -> bool:
        """# quirk: spec 04 6: a queue that only names groups to avoid may use only those to avoid if possible."""
        if group in self.avoided:
            return True
        return group not in self.excluded and group in (*self.required, *self.preferred)

    def score(self, group: str, ordered: bool) -> float:
        if group in self.avoided:
            return -1.0
        score = 100.0 if group in self.required else 0.0
        if group in self.preferred:
            ranks = {name: index for index, name in enumerate(self.preferred)}
            score += 50.0 * (len(ranks) - ranks[group]) / len(ranks) if ordered else 50.0
        return score


class NodeGroup(Plugin):
    """Restricts a queue's tasks to its groups of nodes and limits what the queue holds in each group."""

    name = "nodegroup"
    honours = frozenset({NODE_GROUPS.name, PREFERRED_NODE_GROUPS.name})
    Arguments = NodeGroupArguments
    arguments: NodeGroupArguments

    def __init__(self, arguments: NodeGroupArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.allocated: Totals = {}
        """Allocated and pipelined amounts, by queue and group; only for queues with limits."""
        self._held: dict[Job, Totals] = {}
        self._memberships: dict[str, GroupMembership] = {}
        self._groups: dict[str, str] = {}
        self._version = 0

    # -- counting

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything or dirty.queues:
            self._memberships = {}
        regrouped = (dirty.everything or dirty.nodes) and self._regroup(session)
        if dirty.everything or regrouped:
            self.allocated, self._held = {}, {}
            self._version += 1
        if not self._groups:
            return  # nothing is held in a group
        of_queues = (job for queue in dirty.queues for job in queue.jobs)
        for job in (
            session.jobs() if dirty.everything or regrouped else dict.fromkeys((*dirty.jobs, *of_queues))
        ):
            self._recount(job)

    def _regroup(self, session: Session) -> bool:
        """Update the group of each node; true if any changed."""
        before, key = self._groups, names.NODE_GROUP_NAME
        nodes = session.cluster.columns.nodes
        self._groups = {node.name: node.labels[key] for node in nodes if key in node.labels}
        return self._groups != before

    def on_move(self, change: Change) -> None:
        job = change.task.job
        if self._groups and job is not None and self._limited(job):
            self._count(job, change.task, change.old_status, change.old_node, -1)
            self._count(job, change.task, change.status, change.node, 1)

    def _recount(self, job: Job) -> None:
        """Count again what a job holds."""
        for key, held in self._held.pop(job, {}).items():
            _shift(self.allocated, key, held, -1)
            self._version += 1
        if self._limited(job):
            for status in Status:
                for task in job.by_status[status] if _COUNTS[status] else ():
                    self._count(job, task, status, task.node, 1)

    def _limited(self, job: Job) -> bool:
        return job.visible and job.queue is not None and bool(self._membership(job.queue).limits)

    def _count(self, job: Job, task: Task, status: Status, node: Node | None, sign: int) -> None:
        group = self._groups.get(node.name) if node is not None and _COUNTS[status] else None
        if group is not None and job.queue is not None:
            key = (job.queue.name, group)
            _shift(self.allocated, key, task.request, sign)
            _shift(self._held.setdefault(job, {}), key, task.request, sign)
            self._version += 1

    # -- the groups of a queue

    def _membership(self, queue: Queue) -> GroupMembership:
        known = self._memberships.get(queue.name)
        if known is None:
            known = self._memberships[queue.name] = self._read(queue)
        return known

    def _read(self, queue: Queue) -> GroupMembership:
        affinity = self._affinity(queue) or QueueAffinity()
        affine = affinity.node_group_affinity or _NO_GROUPS
        anti_affine = affinity.node_group_anti_affinity or _NO_GROUPS
        limits = _limits(queue.annotations.get(names.NODE_GROUP_RESOURCE_LIMITS, ""))
        return GroupMembership(
            queue.name if limits else "",
            affine.required,
            affine.preferred,
            anti_affine.required,
            anti_affine.preferred,
            limits,
        )

    def _affinity(self, queue: Queue) -> QueueAffinity | None:
        """The queue's own affinity; in a hierarchy, if it has none, that of its nearest ancestor."""
        queues, visited = self.session.cluster.queues, set[str]()
        ancestor: Queue | None = queue
        while ancestor is not None and ancestor.object is not None and ancestor.name not in visited:
            if ancestor.object.spec.affinity is not None or not self.switches.get("enableHierarchy"):
                return ancestor.object.spec.affinity
            visited.add(ancestor.name)
            ancestor = queues.get(ancestor.parent)
        return None

    def _membership_of(self, task: Task) -> GroupMembership | None:
        queue = task.job.queue if task.job is not None else None
        return self._membership(queue) if queue is not None else None

    def shape_key(self, task: Task) -> GroupMembership | None:
        return self._membership_of(task)

    # -- filters

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        yield NodeFilter(self._checks, plugin=self.name, reads="static")
        membership = self._membership_of(task)
        if membership is not None and membership.limits:
            yield NodeFilter(
                self._check_limits, plugin=self.name, reads="pods", version=lambda task: self._version
            )

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        membership = self._membership_of(task)
        if membership is None:
            job = task.job.key if task.job is not None else ""
            yield Check(~nodes.all(), names.NODE_GROUP_JOB_UNKNOWN.format(job=job))
            return
        if membership.limits is None:
            yield Check(~nodes.all(), names.NODE_GROUP_LIMIT_INVALID)
            return
        codes, groups = nodes.label(names.NODE_GROUP_NAME)
        labelled = codes >= 0
        if membership.unset:
            yield Check(labelled if self.arguments.strict else nodes.all(), names.NODE_GROUP_LABEL_MISSING)
            yield Check(~labelled, names.NODE_GROUP_AFFINITY_UNSET)
        else:
            yield Check(labelled, names.NODE_GROUP_LABEL_MISSING)
            allowed = _by_code(groups, membership.allows)
            yield Check(allowed[codes] > 0, names.NODE_GROUP_AFFINITY_MISMATCH)

    def _check_limits(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        codes, groups = nodes.label(names.NODE_GROUP_NAME)
        full = _by_code(groups, lambda group: self._is_full(group, task))
        yield Check(full[codes] == 0, names.NODE_GROUP_LIMIT_EXCEEDED)

    def _is_full(self, group: str, task: Task) -> bool:
        membership, index = self._membership_of(task), self.session.cluster.dims.index
        if membership is None:
            return False
        held = self.allocated.get((membership.queue, group), {})
        for resource, limit in dict(membership.limits or ()).get(group, ()):
            dim = index.get(resource, -1)
            if held.get(dim, 0) + task.request.get(dim, 0) > limit:
                return True
        return False

    # -- score

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        yield NodeScore(self._score, plugin=self.name, reads="static")

    def _score(self, task: Task, nodes: Nodes) -> Column:
        membership = self._membership_of(task)
        if membership is None or membership.unset:
            return nodes.zeros()
        codes, groups = nodes.label(names.NODE_GROUP_NAME)
        return _by_code(groups, lambda group: membership.score(group, self.arguments.ordered))[codes]


def _by_code(groups: Mapping[str, int], value: Callable[[str], float]) -> NDArray[np.float64]:
    """One value per code of a group, and zero at the end for no group (code -1)."""
    column = np.zeros(len(groups) + 1)
    for group, code in groups.items():
        column[code] = value(group)
    return column


def _shift(totals: Totals, key: tuple[str, str], request: Mapping[int, float], sign: int) -> None:
    total = totals.setdefault(key, {})
    shift(total, request, sign)
    if not total:
        del totals[key]


def _limits(text: str) -> Limits | None:
    """Limits from a queue's annotation: resource lists by group; none if it is invalid."""
    if not text:
        return ()
    try:
        limits: Any = json.loads(text)
        return tuple((group, tuple(amounts(listed, group).items())) for group, listed in limits.items())
    except (ValueError, AttributeError, TypeError, RecursionError, BadObject):
        return None
