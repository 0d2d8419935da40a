"""Why no node takes the pods of a job, from the verdicts that placing them left behind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.api import names
from stromboli.engine.explanation.shortages import amounts_text, resources_text, shortage
from stromboli.engine.explanation.wait_cause import Cause, Details, FirstWaiting, short_text
from stromboli.engine.explanation.ways_out import (
    LESS_OR_NODES,
    exceeds_cluster,
    larger_than_any_node,
    least_request,
    nodes_way_out,
    selects_no_node,
    way_past_filter,
)
from stromboli.engine.placement.verdict import FIT, Reason, Verdict
from stromboli.model.constraints.node_selection import selection_remedy
from stromboli.model.dimensions import PODS
from stromboli.model.remedy import Rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.engine.explanation.shortages import WayOut
    from stromboli.engine.placement.verdict import Reason, Verdict
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


MOST_REASONS, MOST_WAYS = 4, 2
"""How many reasons of nodes, and ways out of them, a sentence names."""
LARGER_THAN_ANY_NODE = "Larger than any node"
"""The reason of a pod that no end of other pods lets start."""
LARGER_THAN_CLUSTER = "Larger than the cluster"
"""The reason of a job that no end of other jobs lets start."""
_NOT_ENOUGH_NODES = "even empty nodes fit fewer of its pods than the {minimum} that must start together"
_NO_USABLE_NODE = "no usable node is large enough for its pod, even when empty"
UNKNOWN_WAY_OUT = "change the nodes, or the requirements of its pods"


def no_nodes(session: Session, job: Job) -> Cause | None:
    """There is no node at all."""
    if len(session.cluster.columns):
        return None
    text = "the cluster has no nodes"
    return Cause("nodes", text, "add nodes", lambda: Details("No nodes", text, "add nodes"))


def _too_few_nodes(job: Job) -> str:
    return _NOT_ENOUGH_NODES.format(minimum=job.minimum) if job.minimum > 1 else _NO_USABLE_NODE


def _cluster_too_small(session: Session, short: list[int]) -> str:
    resources = resources_text(session.cluster.dims, short)
    return f"all nodes together have less {resources} than its pods that must start together request"


def _exceeding_details(session: Session, text: str, asked: Amounts) -> Details:
    dims, total = session.cluster.dims, {dim: session.total.get(dim, 0) for dim in asked}
    shortages = tuple(shortage(dims, dim, asked[dim], total[dim]) for dim in asked)
    amounts = f"it requests {amounts_text(dims, asked)}, all nodes together have {amounts_text(dims, total)}"
    return Details(LARGER_THAN_CLUSTER, text, f"{amounts}: {LESS_OR_NODES}", {}, shortages)


class NodeCauses:
    """Causes by verdict; tasks of one shape that meet the same reasons share their summary and way out."""

    def __init__(self, session: Session, first_waiting: FirstWaiting):
        self._session = session
        self._first_waiting = first_waiting
        self._ranks = ReasonRanks(session)
        self._texts: dict[
            tuple[Shape, tuple[Any, ...], bool, int, tuple[str, ...], tuple[str, ...]], tuple[str, str]
        ] = {}
        self._reasoned: dict[Job, bool] = {}
        """Of jobs that verdicts explain: whether any counts reasons; one without may only refer to another."""
        self._too_large: dict[Shape, WayOut | None] = {}

    def of_job(self, job: Job) -> Cause | None:
        """By the verdict on its first task for which nodes gave reasons, else by any; none if there is no verdict."""
        verdicts = self._session.verdicts.get(job)
        if not verdicts:
            return None
        reasoned = (task for task, verdict in verdicts.items() if verdict.reasons)
        task = min(reasoned, key=lambda task: task.order, default=None)
        self._reasoned[job] = task is not None
        task = task or next(iter(verdicts))
        return self._of_verdict(job, task, verdicts[task])

    def of_task(self, job: Job, task: Task) -> Cause | None:
        """By the task's own verdict; none if it has none that says more than that of its job."""
        verdict = self._session.verdicts.get(job, {}).get(task)
        if verdict is None or job not in self._reasoned or (not verdict.reasons and self._reasoned[job]):
            return None
        return self._of_verdict(job, task, verdict)

    def by_size(self, job: Job) -> Cause | None:
        """A pod is larger than any node, or those that must start together are larger than all nodes."""
        session, task = self._session, self._first_waiting(job)
        too_large = self._larger_than_any_node(task) if task else None
        if task is not None and too_large is not None:
            lacking = " and ".join(each.resource for each in too_large.shortages)
            summary = f"no node is large enough for its {f'{lacking} request' if lacking else 'pods'}"
            hint = "request less, or add a larger node"
            return Cause("nodes", summary, hint, partial(self._too_large_details, task, hint))
        if task is not None and session.needs.is_hopeless(job) and selects_no_node(session.cluster, task):
            text, count = names.NODE_AFFINITY_MISMATCH, len(session.cluster.columns)
            hint = selection_remedy(task)
            verdict = Verdict(count, (Reason(text, count, "", curable=False),))
            summary, message = f"nodes are unavailable: {text}", f"{task.name}: {verdict.message}"
            details = partial(Details, text, message, hint, verdict.histogram())
            return Cause("nodes", summary, hint, details)
        short = exceeds_cluster(session, job)
        if not short and session.needs.is_hopeless(job):
            text = _too_few_nodes(job)
            return Cause(
                "nodes", text, LESS_OR_NODES, partial(Details, LARGER_THAN_CLUSTER, text, LESS_OR_NODES)
            )
        return self._exceeding_cause(job, short) if short else None

    def _exceeding_cause(self, job: Job, short: list[int]) -> Cause:
        text, requests = _cluster_too_small(self._session, short), least_request(job)
        asked = {dim: requests[dim] for dim in short}
        return Cause("nodes", text, LESS_OR_NODES, partial(_exceeding_details, self._session, text, asked))

    def _too_large_details(self, task: Task, hint: str) -> Details:
        """Of this very task: what is known by its shape names the first one that had it."""
        way_out = larger_than_any_node(self._session.cluster, task)
        text, shortages = (way_out.text, way_out.shortages) if way_out else ("", ())
        return Details(LARGER_THAN_ANY_NODE, text, hint, {}, shortages)

    def _larger_than_any_node(self, task: Task) -> WayOut | None:
        if task.shape not in self._too_large:
            self._too_large[task.shape] = larger_than_any_node(self._session.cluster, task)
        return self._too_large[task.shape]

    def _of_verdict(self, job: Job, task: Task, verdict: Verdict) -> Cause:
        reasons = tuple(sorted({reason.text for reason in verdict.reasons}))
        together = bool(exceeds_cluster(self._session, job))
        volumes = self._session.rules.shape_key(task) if task.volume_claims else ()
        told = self._ranks.ranked(task, verdict)
        hopeless = job.minimum if self._session.needs.is_hopeless(job) else 0
        texts = tuple(reason.text for reason in told)
        key = (task.shape, volumes, together, hopeless, reasons or (verdict.text,), texts)
        if key not in self._texts:
            listed = ", ".join(reasons[:MOST_REASONS]) + (", ..." if len(reasons) > MOST_REASONS else "")
            summary = f"nodes are unavailable: {listed}" if reasons else verdict.message
            self._texts[key] = (summary, self._way_out(job, task, told or verdict.as_reasons))
        summary, way_out = self._texts[key]
        return Cause("nodes", summary, way_out, partial(self._details, task, verdict))

    def _way_out(self, job: Job, task: Task, reasons: Sequence[Reason]) -> str:
        lacked = {reason.dim for reason in reasons}
        short = [dim for dim in task.dims if dim != PODS and dim in lacked]
        ways = (
            [self._way_to_room(job, task, short)]
            if short and not selects_no_node(self._session.cluster, task)
            else []
        )
        by_text = {reason.text: reason for reason in reasons}
        ways += filter(None, (way_past_filter(task, by_text[text]) for text in sorted(by_text)))
        return ", or ".join(list(dict.fromkeys(ways))[:MOST_WAYS]) or UNKNOWN_WAY_OUT

    def _way_to_room(self, job: Job, task: Task, short: list[int]) -> str:
        resources = resources_text(self._session.cluster.dims, short)
        if self._larger_than_any_node(task):
            return f"no node is large enough: request less {resources} per pod or add larger nodes"
        if exceeding := exceeds_cluster(self._session, job):
            return f"{_cluster_too_small(self._session, exceeding)}: {LESS_OR_NODES}"
        if self._session.needs.is_hopeless(job):
            return f"{_too_few_nodes(job)}: {LESS_OR_NODES}"
        return f"wait until enough {resources} is free, {LESS_OR_NODES}"

    def _details(self, task: Task, verdict: Verdict) -> Details:
        first = (self._ranks.ranked(task, verdict) or verdict.as_reasons)[0]
        reason = first.text if verdict.reasons else short_text(verdict.message)
        hint, shortages, holders = nodes_way_out(self._session, task, first)
        if first.dim is not None:
            if self._larger_than_any_node(task):
                reason = LARGER_THAN_ANY_NODE
            elif task.job is not None and (exceeding := self._larger_than_cluster(task.job)):
                reason, _, hint, _, shortages, holders, _ = exceeding
        return Details(
            reason, f"{task.name}: {verdict.message}", hint, verdict.histogram(), shortages, holders
        )

    def _larger_than_cluster(self, job: Job) -> Details | None:
        """Of a job that could not start on empty nodes."""
        if not self._session.needs.is_hopeless(job):
            return None
        if short := exceeds_cluster(self._session, job):
            return self._exceeding_cause(job, short).details()
        text = _too_few_nodes(job)
        return Details(LARGER_THAN_CLUSTER, text, f"{text}: {LESS_OR_NODES}")


# -- which of the reasons of nodes to tell the way out of first: mistakes before what never fits, that before absences


class ReasonRanks:
    """Ranks the reasons of verdicts of one cycle; what nodes have at most is looked up once for tasks of one shape."""

    def __init__(self, session: Session):
        self._session = session
        self._large_nodes: dict[Shape, int] = {}

    def ranked(self, task: Task, verdict: Verdict) -> list[Reason]:
        """The reasons worth telling the way out of: those that tell most, of equal ones the most frequent first."""
        if not verdict.reasons:
            return []
        by_rank: dict[Rank, list[Reason]] = {}
        for reason in verdict.reasons:
            by_rank.setdefault(self._rank(task, verdict, reason), []).append(reason)
        told = by_rank[min(by_rank)]
        return sorted(told, key=lambda reason: (reason.nodes, reason.text), reverse=True)

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
