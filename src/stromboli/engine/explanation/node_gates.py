"""Why no node accepts the pods of a job, by the verdicts of the search for nodes, and the remedy."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.engine.explanation.diagnosis import (
    WAITING,
    Diagnosis,
    FirstWaiting,
    Holder,
    Shortage,
    largest_holders,
    shortage,
)
from stromboli.engine.explanation.quantities import amounts_text, resources_text
from stromboli.engine.node_sizes import OpenNodeSizes, SelectedNodeSizes
from stromboli.engine.placement.node_fit import slots_of
from stromboli.engine.placement.node_functions import NOT_SELECTED
from stromboli.engine.placement.verdict import FIT, Reason, Verdict
from stromboli.model.constraints.node_selection import (
    matching_nodes,
    open_nodes,
    selection_remedy,
    selects_nodes,
)
from stromboli.model.dimensions import PODS
from stromboli.model.remedy import Rank, Remedy
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


SHOWN_REASONS, SHOWN_REMEDIES = 4, 2
"""How many reasons of nodes, and remedies, a sentence names."""
LARGER_THAN_ANY_NODE, LARGER_THAN_CLUSTER = "LargerThanAnyNode", "LargerThanCluster"
"""Codes of pods and jobs that cannot start even if all other jobs end."""
LESS_OR_NODES = "add nodes or request less"
_LARGER_THAN_ANY_NODE = Diagnosis(
    "nodes", "Larger than any node", "", "request less, or add a larger node", code=LARGER_THAN_ANY_NODE
)
_LARGER_THAN_CLUSTER = Diagnosis(
    "nodes", "Larger than the cluster", "", LESS_OR_NODES, code=LARGER_THAN_CLUSTER
)
_POD_LIMIT = "every node is at its pod limit: wait or add nodes"
_NOT_ENOUGH_NODES = "even empty nodes fit fewer of its pods than the {minimum} that must start together"
_NO_USABLE_NODE = "no usable node is large enough for its pod, even when empty"
_TOO_FEW_HOSTS = "its pod anti-affinity keeps apart more pods than there are hosts or zones"
_FEWER_APART = "add nodes, or change the pod anti-affinity of its pods"
_TOO_FEW_OPEN = "node(s) hold too few of its pods even when empty"
_MORE_OPEN = Remedy(LESS_OR_NODES, rank=Rank.ABSENCE)
UNAVAILABLE = "nodes are unavailable"
UNKNOWN_REMEDY = "change the nodes, or the requirements of its pods"


def no_nodes(session: Session, job: Job) -> Diagnosis | None:
    """The cluster has no nodes."""
    if len(session.cluster.columns):
        return None
    return Diagnosis("nodes", "No nodes", "the cluster has no nodes", "add nodes", code="NoNodes")


class NodeGates:
    """Diagnoses by verdict; tasks of one shape with the same reasons share their message and remedy."""

    def __init__(self, session: Session, first_waiting: FirstWaiting):
        self._session = session
        self._first_waiting = first_waiting
        self._ranks = ReasonRanks(session)
        self._texts: dict[tuple[Any, ...], tuple[str, str]] = {}
        self._reasoned: dict[Job, bool] = {}
        """Jobs with verdicts: whether any verdict has reasons of nodes; one without may refer to another task."""
        self._too_large: dict[Shape, Diagnosis | None] = {}

    def of_job(self, job: Job) -> Diagnosis | None:
        """By the verdict on the first task with reasons of nodes, or else by any verdict; None without a verdict."""
        verdicts = self._session.attempts.verdicts.get(job)
        if not verdicts:
            return None
        if barred := self._barred_by_nodes(job):
            return barred
        reasoned = (task for task, verdict in verdicts.items() if verdict.reasons)
        task = min(reasoned, key=lambda task: task.order, default=None)
        self._reasoned[job] = task is not None
        task = task or next(iter(verdicts))
        return self._of_verdict(job, task, verdicts[task])

    def of_task(self, job: Job, task: Task) -> Diagnosis | None:
        """By the verdict on the task; None if that adds nothing to the one of its job."""
        verdict = self._session.attempts.verdicts.get(job, {}).get(task)
        if verdict is None or job not in self._reasoned or (not verdict.reasons and self._reasoned[job]):
            return None
        return self._of_verdict(job, task, verdict)

    def by_size(self, job: Job) -> Diagnosis | None:
        """A pod is larger than any node, or those that must start together are larger than all nodes."""
        session, task = self._session, self._first_waiting(job)
        too_large = self._larger_than_any_node(task) if task else None
        if task is not None and too_large is not None:
            lacking = " and ".join(each.resource for each in too_large.shortages)
            summary = f"no node is large enough for its {f'{lacking} request' if lacking else 'pods'}"
            measure = partial(self._too_large_numbers, task)
            return replace(too_large, message=summary, shortages=(), measure=measure)
        if task is not None and session.needs.is_hopeless(job) and selects_no_node(session.cluster, task):
            return _no_match(task, len(session.cluster.columns))
        return self._larger_than_cluster(job) or self._barred(job)

    def _barred(self, job: Job) -> Diagnosis | None:
        """The reason of an admitted job that was not tried because nodes refuse its pods."""
        if job.waits_for_queue:
            return None  # its queue did not admit it
        if barred := self._barred_by_nodes(job):
            return barred
        if self._session.needs.exceeds_hosts_apart(job):
            title = names.POD_ANTI_AFFINITY_MISMATCH
            return Diagnosis("nodes", title, _TOO_FEW_HOSTS, _FEWER_APART, code="TooFewHosts")
        return None

    def _barred_by_nodes(self, job: Job) -> Diagnosis | None:
        """The reason of a job that could start on empty nodes if none refused its pods: waiting does not help it."""
        session, needs = self._session, self._session.needs
        if not needs.is_barred(job) or needs.is_hopeless(job) or not needs.exceeds_open_nodes(job):
            return None
        columns, task = session.cluster.columns, _first_barred(session.cluster, job)
        if task is None:
            return None
        spec = task.shape.spec
        usable = open_nodes(columns, spec.tolerations) & matching_nodes(columns, spec)
        barred = session.place(task, ~usable, resource_fit=False)
        if not isinstance(barred, Verdict):
            return None
        reasons = barred.reasons
        if count := int(np.count_nonzero(usable)):
            reasons += (Reason(_TOO_FEW_OPEN, count, "", curable=False, remedy=_MORE_OPEN),)
        return self._of_verdict(job, task, Verdict(len(columns), reasons))

    def _too_large_numbers(self, task: Task) -> Diagnosis:
        """The numbers with the name of this task; those by shape name another task."""
        return larger_than_any_node(self._session.cluster, task) or _LARGER_THAN_ANY_NODE

    def _larger_than_any_node(self, task: Task) -> Diagnosis | None:
        if task.shape not in self._too_large:
            self._too_large[task.shape] = larger_than_any_node(self._session.cluster, task)
        return self._too_large[task.shape]

    def _larger_than_cluster(self, job: Job) -> Diagnosis | None:
        """The diagnosis of a job that could not start on empty nodes."""
        if short := exceeds_cluster(self._session, job):
            return _exceeding(self._session, job, short)
        if not self._session.needs.is_hopeless(job):
            return None
        return replace(_LARGER_THAN_CLUSTER, message=_too_few_nodes(job))

    def _of_verdict(self, job: Job, task: Task, verdict: Verdict) -> Diagnosis:
        reasons = tuple(sorted({reason.text for reason in verdict.reasons}))
        together = bool(exceeds_cluster(self._session, job))
        volumes = self._session.rules.shape_key(task) if task.volume_claims else ()
        ranked = self._ranks.ranked(task, verdict)
        hopeless = job.minimum if self._session.needs.is_hopeless(job) else 0
        texts = tuple(reason.text for reason in ranked)
        key = (task.shape, volumes, together, hopeless, reasons or (verdict.text,), texts)
        if key not in self._texts:
            listed = ", ".join(reasons[:SHOWN_REASONS]) + (", ..." if len(reasons) > SHOWN_REASONS else "")
            summary = f"{UNAVAILABLE}: {listed}" if reasons else verdict.message
            self._texts[key] = (summary, self._remedy(job, task, ranked or verdict.as_reasons))
        summary, remedy = self._texts[key]
        first = (ranked or verdict.as_reasons)[0]
        title = verdict.why.title if verdict.why is not None else UNAVAILABLE
        measure = partial(self._numbers, task, verdict, first)
        return Diagnosis("nodes", title, summary, remedy, code=first.code, measure=measure)

    def _remedy(self, job: Job, task: Task, reasons: Sequence[Reason]) -> str:
        lacked = {reason.dim for reason in reasons}
        short = [dim for dim in task.dims if dim != PODS and dim in lacked]
        remedies = (
            [self._capacity_remedy(job, task, short)]
            if short and not selects_no_node(self._session.cluster, task)
            else []
        )
        by_text = {reason.text: reason for reason in reasons}
        remedies += filter(None, (_filter_remedy(task, by_text[text]) for text in sorted(by_text)))
        return ", or ".join(list(dict.fromkeys(remedies))[:SHOWN_REMEDIES]) or UNKNOWN_REMEDY

    def _capacity_remedy(self, job: Job, task: Task, short: list[int]) -> str:
        resources = resources_text(self._session.cluster.dims, short)
        if self._larger_than_any_node(task):
            return f"no node is large enough: request less {resources} per pod or add larger nodes"
        if larger := self._larger_than_cluster(job):
            return _text_and_remedy(larger)
        return f"wait until enough {resources} is free, {LESS_OR_NODES}"

    def _numbers(self, task: Task, verdict: Verdict, first: Reason) -> Diagnosis:
        numbers = self._numbers_of(task, first)
        title = verdict.why.title if verdict.why is not None else first.text or UNAVAILABLE
        return replace(
            numbers,
            reason=numbers.reason or title,
            message=f"{task.name}: {verdict.message}",
            counts=verdict.histogram(),
            code=numbers.code or first.code,
        )

    def _numbers_of(self, task: Task, reason: Reason) -> Diagnosis:
        """The remedy for a task by this reason, in numbers; with a title if the job is too large."""
        session, job = self._session, task.job
        if reason.dim is None:
            return _numbers(reason.remedy.current_text(task))
        if too_large := larger_than_any_node(session.cluster, task):
            return replace(too_large, remedy=too_large.message)
        if job is not None and session.needs.is_hopeless(job) and (larger := self._larger_than_cluster(job)):
            measured = larger.measured()
            return measured if measured is not larger else replace(larger, remedy=_text_and_remedy(larger))
        return _numbers(_POD_LIMIT) if reason.dim == PODS else _free_numbers(session, task, reason.dim)


def _numbers(
    remedy: str, shortages: tuple[Shortage, ...] = (), holders: tuple[Holder, ...] = ()
) -> Diagnosis:
    """A remedy with what is short, for the message of a verdict."""
    return Diagnosis("nodes", "", "", remedy, shortages=shortages, holders=holders)


def _text_and_remedy(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.message}: {diagnosis.remedy}"


def _filter_remedy(task: Task, reason: Reason) -> str:
    """The remedy of a filter; empty if it has none."""
    return _POD_LIMIT if reason.dim == PODS else reason.remedy.steady_text(task)


# -- pods and gangs that are larger than any node or than the cluster


def _no_match(task: Task, nodes: int) -> Diagnosis:
    """The node selector of a pod matches no node."""
    text, remedy = names.NODE_AFFINITY_MISMATCH, selection_remedy(task)
    verdict = Verdict(nodes, (Reason(text, nodes, "", curable=False),))
    steady = Diagnosis("nodes", text, f"{UNAVAILABLE}: {text}", remedy, code=NOT_SELECTED)
    measured = replace(steady, message=f"{task.name}: {verdict.message}", counts=verdict.histogram())
    return replace(steady, measure=lambda: measured)


def _first_barred(cluster: Cluster, job: Job) -> Task | None:
    """The first pending task of a shape for which too few nodes are open; else, the first one."""
    tasks = sorted(
        (task for status in WAITING for task in job.by_status[status]), key=lambda task: task.order
    )
    counts, sizes = Counter(task.shape for task in tasks), cluster.columns.derived(OpenNodeSizes)
    lacking = (task for task in tasks if counts[task.shape] > sizes.total_slots(task.shape))
    return next(lacking, tasks[0] if tasks else None)


def _too_few_nodes(job: Job) -> str:
    return _NOT_ENOUGH_NODES.format(minimum=job.minimum) if job.minimum > 1 else _NO_USABLE_NODE


def _cluster_too_small(session: Session, short: list[int]) -> str:
    resources = resources_text(session.cluster.dims, short)
    return f"all nodes together have less {resources} than its pods that must start together request"


def _exceeding(session: Session, job: Job, short: list[int]) -> Diagnosis:
    requests = least_request(job)
    asked = {dim: requests[dim] for dim in short}
    steady = replace(_LARGER_THAN_CLUSTER, message=_cluster_too_small(session, short))

    def measure() -> Diagnosis:
        dims, total = session.cluster.dims, {dim: session.total.get(dim, 0) for dim in asked}
        requested, there = amounts_text(dims, asked), amounts_text(dims, total)
        return replace(
            steady,
            remedy=f"it requests {requested}, all nodes together have {there}: {LESS_OR_NODES}",
            shortages=tuple(shortage(dims, dim, asked[dim], total[dim]) for dim in asked),
        )

    return replace(steady, measure=measure)


def larger_than_any_node(cluster: Cluster, task: Task) -> Diagnosis | None:
    """What a task requests that no node which it selects has, even an empty one: of one resource or all together."""
    columns, dims, selects = cluster.columns, cluster.dims, selects_nodes(task.shape.spec)
    rows = np.flatnonzero(matching_nodes(columns, task.shape.spec))
    if not len(rows):
        return None
    allocatable = columns.allocatable[:, rows]
    most = {dim: int(allocatable[dim].max()) for dim in dims.ordered(task.request) if dim != PODS}
    short = {dim: size for dim, size in most.items() if task.request[dim] > size}
    if not short and columns.derived(SelectedNodeSizes).total_slots(task.shape):
        return None
    selected = " that it selects" if selects else ""
    if not short:
        asked = amounts_text(dims, {dim: amount for dim, amount in task.request.items() if amount > 0})
        text = f"{task.name} requests {asked}, and no node{selected} has all of these"
        return replace(_LARGER_THAN_ANY_NODE, message=text)
    asked = amounts_text(dims, {dim: task.request[dim] for dim in short})
    if len(short) == 1:
        ((dim, size),) = short.items()
        node = columns.nodes[rows[int(allocatable[dim].argmax())]].name
        largest = f"the largest node{selected} ({node})"
        text = f"{task.name} requests {asked}, {largest} has {amounts_text(dims, {dim: size})}"
    else:
        text = f"{task.name} requests {asked}, the most on one node{selected} is {amounts_text(dims, short)}"
    shortages = tuple(shortage(dims, dim, task.request[dim], size) for dim, size in short.items())
    return replace(_LARGER_THAN_ANY_NODE, message=text, shortages=shortages)


def selects_no_node(cluster: Cluster, task: Task) -> bool:
    """Whether the node selector or node affinity of a task matches no node."""
    spec = task.shape.spec
    return selects_nodes(spec) and not matching_nodes(cluster.columns, spec).any()


def _free_numbers(session: Session, task: Task, dim: int) -> Diagnosis:
    """What a task requests, and the most that one node had free when the actions had run."""
    cluster, uncommitted = session.cluster, session.attempts.uncommitted
    dims, idle = cluster.dims, (cluster.columns.idle if uncommitted.idle is None else uncommitted.idle)[dim]
    request = task.request.get(dim, 0)
    asked = amounts_text(dims, {dim: request})
    if not len(idle):
        text = f"it requests {asked}, and the cluster has no nodes"
        return _numbers(text, (shortage(dims, dim, request, 0),))
    row = int(idle.argmax())
    if idle[row] >= request:
        return _gang_numbers(session, task, dim, idle)
    left, node = max(int(idle[row]), 0), cluster.columns.nodes[row].name
    free = amounts_text(dims, {dim: left})
    text = f"each pod requests {asked}; at most {free} is free on one node ({node})"
    return _numbers(text, (shortage(dims, dim, request, left),), largest_holders(cluster, (dim,)))


def _gang_numbers(session: Session, task: Task, dim: int, idle: NDArray[np.int64]) -> Diagnosis:
    """Single pods fit, but not all that must start together."""
    cluster, job = session.cluster, task.job
    if job is None:
        return _numbers("")
    left = int(idle.clip(min=0).sum())
    wanted = job.pending.get(dim, 0)
    asked, free = amounts_text(cluster.dims, {dim: wanted}), amounts_text(cluster.dims, {dim: left})
    fit, waiting = allocated_at_once(session, job), job.counts[Status.PENDING]
    smallest = min(pending.request.get(dim, 0) for pending in job.by_status[Status.PENDING])
    if smallest > 0:  # other jobs may have taken capacity since then
        fit = min(fit, int(slots_of({0: smallest}, idle[np.newaxis]).sum()))
    scattered = " but fragmented" if wanted <= left else ""
    text = f"{fit} of {waiting} pods fit: they request {asked} in total; {free} is free{scattered}"
    return _numbers(text, (shortage(cluster.dims, dim, wanted, left),), largest_holders(cluster, (dim,)))


def exceeds_cluster(session: Session, job: Job) -> list[int]:
    """Resources of which the pods that must start together request more than all nodes have."""
    if job.has_started and not session.needs.is_hopeless(job):
        return []  # pods that run stay on nodes that shrank or were removed
    total = session.total
    return [dim for dim, amount in least_request(job).items() if dim != PODS and amount > total.get(dim, 0)]


def least_request(job: Job) -> Amounts:
    """What the pods that must start together request, as far as known."""
    whole = job.tasks and job.minimum >= len(job.tasks) and not job.waits_for_queue
    return job.total if whole else (job.min_resources or {})


def allocated_at_once(session: Session, job: Job) -> int:
    """How many of the waiting pods fit when they were last tried."""
    return min(session.attempts.allocated_at_once.get(job, 0), job.counts[Status.PENDING])


# -- which reasons get a remedy: mistakes before causes, causes before absences


class ReasonRanks:
    """Ranks the reasons of verdicts of one cycle."""

    def __init__(self, session: Session):
        self._session = session
        self._large_nodes: dict[Shape, int] = {}

    def ranked(self, task: Task, verdict: Verdict) -> list[Reason]:
        """The reasons of the first rank, whose remedies are shown, the most frequent first."""
        if not verdict.reasons:
            return []
        by_rank: dict[Rank, list[Reason]] = {}
        for reason in verdict.reasons:
            by_rank.setdefault(self._rank(task, verdict, reason), []).append(reason)
        first = by_rank[min(by_rank)]
        return sorted(first, key=lambda reason: (reason.nodes, reason.text), reverse=True)

    def _rank(self, task: Task, verdict: Verdict, reason: Reason) -> Rank:
        if reason.plugin == FIT:
            return Rank.CAUSE if self._waiting_helps(task, verdict) else Rank.ABSENCE
        return reason.remedy.rank_for(task)

    def _waiting_helps(self, task: Task, verdict: Verdict) -> bool:
        """Whether a node that has too little free would be large enough if it were empty."""
        refusing = sum(reason.nodes for reason in verdict.reasons if reason.plugin == FIT)
        passing = verdict.nodes - refusing  # each of them is large enough
        return not passing or passing < self._count_large_nodes(task)

    def _count_large_nodes(self, task: Task) -> int:
        """How many nodes would be large enough for a task if they were empty."""
        count = self._large_nodes.get(task.shape)
        if count is None:
            columns = self._session.cluster.columns
            large = np.ones(len(columns), dtype=bool)
            for dim, amount in task.request.items():
                if dim != PODS:
                    large &= columns.allocatable[dim] >= amount
            count = self._large_nodes[task.shape] = int(np.count_nonzero(large))
        return count
