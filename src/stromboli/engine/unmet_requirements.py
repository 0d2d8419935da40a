"""Requirements that the policy or the cluster cannot meet: hard ones refuse a job or a task, soft ones are reported.

This holds for all policies. A plugin declares the requirements that it honours (`Plugin.honours`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING

from stromboli.api.types.scheduling import NetworkTopology
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.topology.left_out_hyper_nodes import correct_left_out, left_out
from stromboli.model.remedy import Remedy, Why
from stromboli.model.requirements.group_demands import network_topologies
from stromboli.model.requirements.placement_requirement import (
    HARD_NETWORK_TOPOLOGY,
    VOLUME_BINDING,
    VOLUME_TOPOLOGY,
    Demand,
)
from stromboli.model.volumes.claim_problems import CREATE_CLAIM, unbound_problem
from stromboli.model.volumes.volume_claims import bound_volumes
from stromboli.model.volumes.volume_reach import is_restricted

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNodeSpec
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

MAX_NAMES = 10


def _unmet_requirement(requirement: str, message: str, remedy: str | Remedy) -> Why:
    """Why a hard requirement cannot be met, and the remedy."""
    return Why(message, remedy, requirement, title=f"Unmet requirement: {requirement}")


class Requirements:
    """The requirements of objects, in one session."""

    def __init__(self, session: Session):
        self._session = session
        self._unmet: dict[Job, Why | None] = {}

    def unmet(self, job: Job) -> Why | None:
        """The requirement of a job's PodGroup or queue that cannot be met in this session, if any."""
        if job not in self._unmet:
            self._unmet[job] = unmet_by_job(self._session, job)
        return self._unmet[job]

    def refused(self, task: Task) -> Verdict | None:
        """Why a task must not be placed: its first requirement, or that of its job, that cannot be met."""
        unmet = self.unmet(task.job) if task.job else None
        if unmet is None and task.demands:
            unmet = unmet_by_task(self._session, task)
        if unmet is None:
            return None
        return Verdict(why=unmet, unmet=True)


def unmet_by_job(session: Session, job: Job) -> Why | None:
    """The first requirement of a job's PodGroup or queue that cannot be met."""
    queue = job.queue
    if not job.group_demands and not (queue and queue.demands):
        return None
    for topology, demand in _hard_topologies(job):
        if unmet := _unmet_topology(session, topology, demand):
            return unmet
    return next(_not_honoured(session, queue.demands, hard=True), None) if queue else None


def unmet_by_task(session: Session, task: Task) -> Why | None:
    """The first requirement of a task's pod that cannot be met."""
    for demand in task.demands:
        if demand.requirement is VOLUME_BINDING:
            if unmet := _unmet_volume(session, task, demand):
                return unmet
        elif demand.requirement.hard and demand.requirement.name not in session.rules.honoured:
            if demand.registration and not session.cluster.cards.registering:
                continue
            return _unmet(demand)
    return None


def ignored(session: Session, job: Job) -> list[str]:
    """The first requests of a job, its tasks and its queue that have no effect, each in a sentence."""
    queue_demands = job.queue.demands if job.queue else ()
    if not job.group_demands and not job.task_demands and not queue_demands:
        return []
    demands = (*job.group_demands, *job.task_demands, *queue_demands)
    soft = _not_honoured(session, demands, hard=False)
    unmet = nsmallest(MAX_NAMES, soft, key=lambda each: (each.code, each.message))
    return [f"{each.message}: {each.remedy.steady_text()}" for each in unmet]


def _not_honoured(session: Session, demands: tuple[Demand, ...], hard: bool) -> Iterator[Why]:
    for demand in demands:
        if demand.requirement.hard is hard and demand.requirement.name not in session.rules.honoured:
            yield _unmet(demand)


def _unmet(demand: Demand) -> Why:
    return _unmet_requirement(demand.requirement.name, demand.text, demand.requirement.remedy)


def _unmet_topology(session: Session, topology: NetworkTopology, demand: Demand) -> Why | None:
    """A hard topology needs HyperNodes, a tier that they have and a plugin (spec 01 7.3)."""
    requirement, tree = demand.requirement, session.cluster.hyper_nodes
    problems, remedies = [], []
    tier, name = topology.highest_tier_allowed, topology.highest_tier_name
    if not tree:
        problems.append("the cluster has no HyperNodes")
        problems.append(left_out(tree, lambda _: True))
        remedies.append(correct_left_out(tree, lambda _: True) or "create HyperNodes")
    elif tier is None and name not in tree.tier_of_name:
        known = sorted(tree.tier_of_name)
        problems.append("no HyperNode has a tier with that name")
        problems.append(left_out(tree, lambda spec: spec.tier_name == name))
        remedies.append(f"use one of: {', '.join(known[:MAX_NAMES])}" if known else "name the tiers")
    remedies.append("set mode: soft to allow any placement")
    if requirement.name not in session.rules.honoured:
        problems.append(requirement.unmet)
        remedies = [requirement.remedy]  # other remedies are not enough without it
    if not problems:
        return None
    message = f"{demand.asks}: {' and '.join(filter(None, problems))}"
    return _unmet_requirement(requirement.name, message, ", or ".join(remedies))


def unreachable_tier(session: Session, job: Job) -> Why | None:
    """A hard topology below the tiers of all HyperNodes, which is only reported: no action finds a domain for it."""
    tree = session.cluster.hyper_nodes
    if HARD_NETWORK_TOPOLOGY.name not in session.rules.honoured or not tree:
        return None
    for topology, demand in _hard_topologies(job):
        tier = topology.highest_tier_allowed
        if tier is not None and tier < tree.tiers[0]:
            problem = f"the lowest tier of a HyperNode is {tree.tiers[0]}"
            within = partial(_within, tier)
            bad, correct = left_out(tree, within), correct_left_out(tree, within)
            message = f"{demand.asks}: {problem}" + (f", and {bad}" if bad else "")
            remedy = f"{correct}, or allow a higher tier" if correct else "allow a higher tier"
            return _unmet_requirement(demand.requirement.name, message, remedy)
    return None


def _within(tier: int, spec: HyperNodeSpec) -> bool:
    return spec.tier <= tier


def _hard_topologies(job: Job) -> Iterator[tuple[NetworkTopology, Demand]]:
    """The hard topologies that a job or its sub-groups request."""
    topologies = network_topologies(job.group) if job.group_demands and job.group else {}
    for topology, demand in zip(topologies, job.group_demands, strict=False):
        if demand.requirement is HARD_NETWORK_TOPOLOGY:
            yield topology, demand


def _unmet_volume(session: Session, task: Task, demand: Demand) -> Why | None:
    """All claims must be bound, and a plugin must check which nodes can reach their volumes."""
    objects, honoured = session.cluster.objects, session.rules.honoured
    if VOLUME_BINDING.name not in honoured and (problem := unbound_problem(objects, task)):
        remedy = CREATE_CLAIM if problem.remedy is CREATE_CLAIM else Remedy(VOLUME_BINDING.remedy)
        return _unmet_requirement(VOLUME_BINDING.name, problem.message, remedy)
    if VOLUME_TOPOLOGY.name not in honoured and any(map(is_restricted, bound_volumes(objects, task))):
        return _unmet(demand._replace(requirement=VOLUME_TOPOLOGY))
    return None
