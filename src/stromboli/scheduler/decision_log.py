"""Logs the decisions of a cycle, and makes events about unusable objects and a new leader."""

from __future__ import annotations

import logging
from collections import Counter

from stromboli.daemon.log_format import about
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Event, Evict, GateRemoval, NativeGroupCondition, PodGroupStatus
from stromboli.kube.election import Election
from stromboli.kube.reflector import UnusableObject
from stromboli.scheduler.writes.write_orders import WriteOrder

log = logging.getLogger(__name__)


def log_decisions(outcome: Outcome) -> None:
    """One line for each decision that matters."""
    bound: Counter[str] = Counter()
    nodes: dict[str, set[str]] = {}
    for decision in outcome.decisions:
        match decision:
            case Bind():
                bound[decision.job] += 1
                nodes.setdefault(decision.job, set()).add(decision.node)
            case Evict():
                action, beneficiary = decision.action, decision.beneficiary
                fields = about(pod=decision.key, node=decision.node, action=action, beneficiary=beneficiary)
                log.info("evict", extra=fields)
            case GateRemoval():
                log.info("let out of the gate", extra=about(pod=_key(decision)))
            case PodGroupStatus():
                log.info("phase", extra=about(job=_key(decision), phase=decision.phase))
            case NativeGroupCondition():
                log.info("scheduled", extra=about(job=_key(decision), scheduled=decision.status))
            case Event(kind="PodGroup" | "NativePodGroup", type="Warning"):
                log.info("waiting", extra=about(job=_key(decision), why=decision.message))
    for job, pods in bound.items():
        log.info("bind", extra=about(job=job, pods=pods, nodes=len(nodes[job])))
    if outcome.decisions:
        seconds = round(sum(outcome.seconds.values()), 4)
        log.debug("cycle", extra=about(seconds=seconds, decisions=len(outcome.decisions)))


def _key(decision: GateRemoval | PodGroupStatus | NativeGroupCondition | Event) -> str:
    return f"{decision.namespace}/{decision.name}"


def unusable_event(problem: UnusableObject) -> WriteOrder:
    """An event about an object that cannot be used."""
    key = f"{problem.namespace}/{problem.name}".removeprefix("/")
    log.warning("%s %s cannot be used: %s", problem.kind, key, problem.text)
    event = Event(problem.kind, problem.namespace, problem.name, "Warning", "Invalid", problem.text)
    return WriteOrder(event, problem.uid)


def leader_event(election: Election) -> WriteOrder:
    settings, text = election.settings, f"{election.settings.identity} became leader"
    event = Event("Lease", settings.namespace, settings.name, "Normal", "LeaderElection", text)
    return WriteOrder(event, election.uid)
