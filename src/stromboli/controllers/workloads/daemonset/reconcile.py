"""What a DaemonSet does next: nodes that get a pod, pods to delete, and its status.

A pod is meant for a node by its node affinity, and the scheduler puts it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.names import NODE_NAME_FIELD
from stromboli.api.pods import is_available, is_finished, is_ready, next_available
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.user_event import UserEvent
from stromboli.controllers.workloads.daemonset.daemon_set import DaemonSet, DaemonSetStatus
from stromboli.controllers.workloads.daemonset.failed_pods import FailedPods
from stromboli.controllers.workloads.daemonset.node_eligibility import Eligibility
from stromboli.controllers.workloads.daemonset.rolling_update import rolling_update
from stromboli.controllers.workloads.workload_pods import REVISION

BURST = 250
"""Pods that a sync creates or deletes at most."""


@dataclass(slots=True)
class Outcome:
    create: list[str] = field(default_factory=list)
    """Nodes that get a pod."""
    delete: list[Pod] = field(default_factory=list)
    events: list[UserEvent] = field(default_factory=list)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)
    requeue_after: float | None = None


def reconcile(
    daemon_set: DaemonSet,
    revision: str,
    pods: Iterable[Pod],
    eligible: Mapping[str, Eligibility],
    failed: FailedPods,
    now: float,
) -> Outcome:
    """`revision` is the hash of the present template, `pods` are those of the DaemonSet, `eligible` has all nodes."""
    on_nodes = pods_by_node(pods)
    outcome = Outcome(status=_status(daemon_set, revision, on_nodes, eligible, now))
    waits = [next_available((pod for each in on_nodes.values() for pod in each), _wait(daemon_set), now)]
    for node, each in eligible.items():
        waits.append(_manage(daemon_set, revision, node, each, on_nodes.get(node, []), failed, now, outcome))
    for node, stranded in on_nodes.items():
        if node not in eligible:  # pods that have this node already are deleted with it
            outcome.delete += [pod for pod in _staying(stranded) if not pod.spec.node_name]
    if not outcome.create and not outcome.delete and daemon_set.rolling_update is not None:
        outcome.create, outcome.delete = rolling_update(daemon_set, revision, on_nodes, eligible, now)
    outcome.create, outcome.delete = outcome.create[:BURST], outcome.delete[:BURST]
    outcome.requeue_after = min((wait for wait in waits if wait), default=None)
    return outcome


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Pods by the node that they have or are meant for; those that have ended and are being deleted are left out."""
    nodes: dict[str, list[Pod]] = {}
    for pod in pods:
        node = target_node(pod)
        if node and not (is_finished(pod) and pod.metadata.deletion_timestamp is not None):
            nodes.setdefault(node, []).append(pod)
    return nodes


def target_node(pod: Pod) -> str:
    """The node of a pod, or that of its node affinity; an empty text if there is none."""
    if pod.spec.node_name or pod.spec.affinity is None:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity
    required = affinity.required if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field_ in term.match_fields:
            if field_.key == NODE_NAME_FIELD and field_.operator == "In" and len(field_.values) == 1:
                return field_.values[0]
    return ""


def _manage(
    daemon_set: DaemonSet,
    revision: str,
    node: str,
    eligible: Eligibility,
    pods: Sequence[Pod],
    failed: FailedPods,
    now: float,
    outcome: Outcome,
) -> float | None:
    """Have one pod on a node, or none; seconds until a failed one may be replaced."""
    if eligible.starts and not pods:
        outcome.create.append(node)
        return None
    if not eligible.stays:
        outcome.delete += _staying(pods)
        return None
    running, wait = [], None
    for pod in _staying(pods):
        if not is_finished(pod):
            running.append(pod)
        elif pod.status.phase == names.POD_FAILED and (wait := _failure_delay(daemon_set, node, failed, now)):
            continue
        else:
            outcome.events.append(_ended_event(pod, node))
            outcome.delete.append(pod)
    running.sort(key=_age)
    if not daemon_set.surges:
        outcome.delete += running[1:]
    elif not running and eligible.starts:
        outcome.create.append(node)
    else:
        outcome.delete += _beyond_surge(daemon_set, revision, running, now)
    return wait


def _failure_delay(daemon_set: DaemonSet, node: str, failed: FailedPods, now: float) -> float:
    return failed.delay(daemon_set.metadata.uid, daemon_set.status.observed_generation, node, now)


def _ended_event(pod: Pod, node: str) -> UserEvent:
    if pod.status.phase == names.POD_FAILED:
        text = f"Found failed daemon pod {pod.key} on node {node}, will try to kill it"
        return UserEvent(names.WARNING, "FailedDaemonPod", text)
    text = f"Found succeeded daemon pod {pod.key} on node {node}, will try to delete it"
    return UserEvent(names.NORMAL, "SucceededDaemonPod", text)


def _beyond_surge(daemon_set: DaemonSet, revision: str, running: Sequence[Pod], now: float) -> list[Pod]:
    """All but an old pod that is ready and a new one that is not available yet."""
    new = [pod for pod in running if pod.metadata.labels.get(REVISION) == revision]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION) != revision]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], _wait(daemon_set), now)):
        surplus.append(old[0])
    return surplus


def _staying(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None]


def _wait(daemon_set: DaemonSet) -> int:
    return daemon_set.spec.min_ready_seconds


def _age(pod: Pod) -> tuple[bool, float, str]:
    """Pods with a node first, then the oldest."""
    return not pod.spec.node_name, pod.metadata.created, pod.name


def _status(
    daemon_set: DaemonSet,
    revision: str,
    pods: Mapping[str, Sequence[Pod]],
    eligible: Mapping[str, Eligibility],
    now: float,
) -> DaemonSetStatus:
    """Counts of nodes, each by its first pod."""
    desired = [node for node, each in eligible.items() if each.starts]
    first = [min(pods[node], key=_age) for node in desired if node in pods]
    ready = [pod for pod in first if is_ready(pod)]
    available = sum(is_available(pod, _wait(daemon_set), now) for pod in ready)
    return DaemonSetStatus(
        desired_number_scheduled=len(desired),
        current_number_scheduled=len(first),
        number_misscheduled=sum(node in pods for node, each in eligible.items() if not each.starts),
        number_ready=len(ready),
        updated_number_scheduled=sum(pod.metadata.labels.get(REVISION) == revision for pod in first),
        number_available=available,
        number_unavailable=len(desired) - available,
        observed_generation=daemon_set.metadata.generation,
    )
