"""The network topology of gangs in one session: the domains to try, the domain of a gang, and the nodes it may use.

A hard topology limits every action that places a task (spec 01 7.3). The domains of a native group are the values of a
label. They are scored by kube-scheduler's rule: the more of its pods fit and the fuller the domain is with them, the
better. Of equal domains, that of the first node is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import SlotCount
from stromboli.engine.topology.topology_limits import (
    HOLDS_RESOURCES,
    highest_tier,
    label_key,
    placed,
    possible_domains,
)
from stromboli.model.job import SubJob
from stromboli.model.shape import VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY
from stromboli.model.status import Status
from stromboli.model.topology.domain import label_domains

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Bools, Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain, Floats

_EARLIER = tuple(status for status in HOLDS_RESOURCES if status is not Status.ALLOCATED)
"""The statuses of tasks that were placed before this session."""
_VIEW = (VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY)
PLACING = ("allocate", "reserve")
"""Purposes that use free resources only."""
FULL = 100
"""The score of a domain that is full, and of the domain that takes most pods."""
NOMINATED = 500
"""The additional score of a domain with nodes that were cleared for pods of the group."""
STARTS_NOW = 1000
"""The additional score of a domain in which the group can start at once."""


class GangTopology:
    """The topology of the jobs of one session."""

    def __init__(self, session: Session):
        self._session = session
        self._trial_domains: dict[Job | SubJob, Domain | None] = {}
        self._together: dict[Job | SubJob, tuple[int, bool]] = {}

    def tier_limit(self, unit: Job | SubJob) -> int | None:
        """The highest tier that a job or a sub-group may span; none if it requests no topology."""
        return highest_tier(self._session.cluster.hyper_nodes, unit)

    # -- the domain of a gang

    def allocated_domain(self, unit: Job | SubJob) -> Domain | None:
        """The lowest domain with all tasks of a job or a sub-group that hold resources; none without such tasks.

        While `allocate` searches, the tasks that the trial has placed count too.
        """
        if unit in self._trial_domains:
            return self._trial_domains[unit]
        return self._session.cluster.hyper_nodes.domain(unit.allocated_hyper_node)

    def follow(self, sub_job: SubJob, node: Node) -> None:
        """Add a node to `allocated_domain`, until `stop_following`."""
        tree, before = self._session.cluster.hyper_nodes, self.allocated_domain(sub_job)
        leaf = tree.leaf_of(node.row)
        self._trial_domains[sub_job] = before if leaf is None else tree.lowest_common(leaf, before)

    def stop_following(self, sub_job: SubJob) -> None:
        """Reset `allocated_domain` at the end of a trial."""
        self._trial_domains.pop(sub_job, None)

    def widen(self, unit: Job | SubJob, domain: Domain) -> None:
        """Add a domain in which tasks were placed to the allocated HyperNode; undone as the moves are."""
        if label_key(unit):
            return  # not a HyperNode, and it follows from where the tasks are
        journal = self._session.journal
        common = self._session.cluster.hyper_nodes.lowest_common(self.allocated_domain(unit), domain)
        if common is not None and common.name != unit.allocated_hyper_node:
            journal.update(unit, "allocated_hyper_node", common.name)
        if isinstance(unit, SubJob) and unit.nominated_hyper_node:
            journal.update(unit, "nominated_hyper_node", "")

    # -- the domains to try

    def gradients(self, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
        """Groups of domains to try for a job or a sub-group, best first; the root alone if no plugin answers."""
        if label_key(unit):
            return _label_gradients(self._session, unit, root, purpose)
        answer = self._session.rules.hyper_node_gradients(unit, root, purpose)
        return [[root]] if answer is None else answer

    def domain_scores(self, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
        """The scores of domains with enough capacity for a sub-group, by name; missing ones score zero."""
        if label_key(sub_job):
            return _label_scores(self._session, sub_job, domains)
        return self._session.rules.hyper_node_scores(sub_job, domains)

    # -- the nodes that a task must keep to

    def confines(self, task: Task) -> bool:
        """Whether a hard topology keeps a task to the domain of its gang."""
        return any(True for _ in self._limited_units(task))

    def nodes(self, task: Task, within: Bools | None = None) -> Bools | None:
        """The nodes among these that a task may use without leaving the domain of its gang; none: all nodes."""
        for unit in self._limited_units(task):
            inside = np.zeros(len(self._session.cluster.columns), dtype=bool)
            for domain in possible_domains(self._session.cluster, unit, without=task):
                inside[domain.rows] = True
            within = inside if within is None else within & inside
        return within

    def holds(self, task: Task) -> bool:
        """Whether the gang of a task, as it is placed now, is within its limits."""
        for unit in self._limited_units(task):
            known, clock = self._together.get(unit), self._session.cluster.columns.clock
            if known is None or known[0] != clock:
                known = self._together[unit] = (clock, bool(possible_domains(self._session.cluster, unit)))
            if not known[1]:
                return False
        return True

    def _limited_units(self, task: Task) -> Iterator[Job | SubJob]:
        """The job and the sub-group of a task, as far as a topology limits them."""
        job, top = task.job, self._session.cluster.hyper_nodes.top
        if job is None or not (job.group_demands or label_key(job)):
            return
        for unit in (job, task.sub_job) if job.policies and task.sub_job is not None else (job,):
            limit = self.tier_limit(unit)
            if limit is not None and limit < top.tier and not (task.best_effort and self._is_divided(unit)):
                yield unit

    def _is_divided(self, unit: Job | SubJob) -> bool:
        """Whether no domain that the topology allows has the nodes of all tasks placed in earlier sessions.

        They are too far apart, or on a node outside of all HyperNodes that the topology allows. Best-effort tasks of
        such a gang use no resources and may run on any node (spec 02 4.1).
        """
        if label_key(unit):
            return False
        rows = {task.node.row for task in placed(unit, _EARLIER) if task.node is not None}
        return bool(rows - {-1}) and not possible_domains(self._session.cluster, unit, statuses=_EARLIER)


# -- the domains of a label


def _label_gradients(session: Session, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
    """The domains to try for a native group, all in one group; those without capacity only for evictions.

    In `allocate` the only sub-group of a job chooses the domain, so that all domains are scored together.
    """
    job = unit.job if isinstance(unit, SubJob) else unit
    if root is not session.cluster.hyper_nodes.top or (unit is job and purpose in PLACING):
        return [[root]]
    domains = possible_domains(session.cluster, job)
    if len(domains) < 2:
        return [domains]
    fitting = LabelCapacity(session, job).fitting
    if purpose in PLACING:
        enough = np.flatnonzero(fitting >= session.rules.tasks_needed(job))
        return [[domains[place] for place in enough]]
    return [[domains[place] for place in np.argsort(-fitting, kind="stable")]]


def _label_scores(session: Session, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
    """The scores of domains for a group, by name."""
    if len(domains) < 2:
        return {}
    capacity = LabelCapacity(session, sub_job.job)
    held = sub_job.allocated_count
    pods = held + capacity.fitting
    score = np.floor(pods * FULL / max(pods.max(), 1)) + capacity.fullness
    score += STARTS_NOW * (capacity.fitting_now >= capacity.fitting) + NOMINATED * capacity.nominated
    return dict(zip((domain.name for domain in capacity.domains), score.tolist(), strict=True))


class LabelCapacity:
    """How many pending tasks of a group fit into each domain, by requests and filters of nodes."""

    def __init__(self, session: Session, job: Job):
        self._columns = session.cluster.columns
        self._label = label_domains(self._columns, label_key(job))
        self.domains = list(self._label.by_value.values())
        self.fitting = np.zeros(len(self.domains))
        """How many fit once leaving tasks have left."""
        self.fitting_now = np.zeros(len(self.domains))
        self._incoming = np.zeros((len(_VIEW), len(self.domains)))
        tasks = [task for task in job.by_status[Status.PENDING] if not task.gates]
        reservations = session.cluster.reservations
        now, later = reservations.idle_for(*tasks), reservations.future_idle_for(*tasks)
        of_shape, counts = {task.shape: task for task in tasks}, Counter(task.shape for task in tasks)
        for shape, count in counts.items():
            reachable = session.reachable(of_shape[shape])
            fitting = self._fitting(shape, later, reachable, count)
            self.fitting += fitting
            self.fitting_now += self._fitting(shape, now, reachable, count)
            self._incoming += shape.incoming[list(_VIEW)][:, None] * fitting

        self.nominated = self._label.sums(_nominated(session, tasks)) > 0
        """Domains with nodes that were cleared for any of them."""

    def _fitting(self, shape: Shape, free: Ints, reachable: Bools, count: int) -> Floats:
        fitting: Floats = SlotCount(shape.request, free, reachable).within(self._label)
        return np.minimum(fitting, count)

    @property
    def fullness(self) -> Floats:
        """How much of cpu and memory is in use with these tasks, from 0 to 100."""
        scores, known = np.zeros(len(self.domains)), np.zeros(len(self.domains))
        for place, view in enumerate(_VIEW):
            size = self._label.sums(self._columns.view_allocatable[view])
            used = self._label.sums(self._columns.view[view]) + self._incoming[place]
            scores += np.floor(np.minimum(used, size) * FULL / np.maximum(size, 1))
            known += size > 0
        return np.floor(scores / np.maximum(known, 1))


def _nominated(session: Session, tasks: Sequence[Task]) -> Bools:
    """The nodes that were cleared for tasks."""
    nominated = np.zeros(len(session.cluster.columns), dtype=bool)
    for task in tasks:
        node = session.cluster.nodes.get(task.nominated) if task.nominated else None
        if node is not None and node.row >= 0:
            nominated[node.row] = True
    return nominated
