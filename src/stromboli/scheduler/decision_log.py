"""What is said about decisions and objects: a line in the log for each that matters, or an event."""

from __future__ import annotations

import logging
from collections import Counter

from stromboli.daemon.log_format import about
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Event, Evict, GateRemoval, NativeGroupCondition, PodGroupStatus
from stromboli.kube.election import Election
from stromboli.kube.reflector import UnusableObject
from stromboli.scheduler.mirror.kubernetes_world import is_noise
from stromboli.scheduler.writes.write_orders import Order

log = logging.getLogger(__name__)


def tell(outcome: Outcome) -> None:
    """A line for each decision that matters."""
    bound: Counter[str] = Counter()
    nodes: dict[str, set[str]] = {}
    for one in outcome.decisions:
        match one:
            case Bind():
                bound[one.job] += 1
                nodes.setdefault(one.job, set()).add(one.node)
            case Evict():
                log.info(
                    "evict",
                    extra=about(pod=one.key, node=one.node, action=one.action, beneficiary=one.beneficiary),
                )
            case GateRemoval():
                log.info("let out of the gate", extra=about(pod=f"{one.namespace}/{one.name}"))
            case PodGroupStatus():
                log.info("phase", extra=about(job=f"{one.namespace}/{one.name}", phase=one.phase))
            case NativeGroupCondition():
                log.info("scheduled", extra=about(job=f"{one.namespace}/{one.name}", scheduled=one.status))
            case Event(kind="PodGroup" | "NativePodGroup", type="Warning") if not is_noise(
                outcome.session.cluster, one
            ):
                log.info("waiting", extra=about(job=f"{one.namespace}/{one.name}", why=one.message))
    for job, pods in bound.items():
        log.info("bind", extra=about(job=job, pods=pods, nodes=len(nodes[job])))
    spent = sum(outcome.seconds.values())
    if outcome.decisions:
        log.debug("cycle", extra=about(seconds=round(spent, 4), decisions=len(outcome.decisions)))


def unusable(trouble: UnusableObject) -> Order:
    """An event about an object that cannot be used."""
    log.warning("%s %s/%s cannot be used: %s", trouble.kind, trouble.namespace, trouble.name, trouble.text)
    event = Event(trouble.kind, trouble.namespace, trouble.name, "Warning", "Invalid", trouble.text)  # type: ignore[arg-type]
    return Order(event, trouble.uid)


def became_leader(election: Election) -> Order:
    terms, text = election.settings, f"{election.settings.identity} became leader"
    event = Event("Lease", terms.namespace, terms.name, "Normal", "LeaderElection", text)  # type: ignore[arg-type]
    return Order(event, election.uid)
