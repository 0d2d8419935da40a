"""How a DaemonSet replaces pods of another revision: as many at a time as may be missing, or as may come on top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stromboli.api.pods import is_available
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.daemonset.daemon_set import DaemonSet
from stromboli.controllers.workloads.daemonset.node_eligibility import Eligibility
from stromboli.controllers.workloads.workload_pods import REVISION


class Changes(NamedTuple):
    """Nodes that get a pod, and pods to delete."""

    create: list[str]
    delete: list[Pod]


class _OnNode(NamedTuple):
    """The pods of a node that are not being deleted; the node is in excess if it has two of a sort."""

    new: Pod | None
    old: Pod | None
    excess: bool


def rolling_update(
    daemon_set: DaemonSet,
    revision: str,
    pods: Mapping[str, Sequence[Pod]],
    eligible: Mapping[str, Eligibility],
    now: float,
) -> Changes:
    """The next step of an update; `pods` are by node, `eligible` has all nodes."""
    desired = [node for node, each in eligible.items() if each.starts]
    max_unavailable, max_surge = daemon_set.limits(len(desired))
    nodes = {node: _on_node(pods.get(node, ()), revision) for node in dict.fromkeys([*pods, *desired])}
    wait = daemon_set.spec.min_ready_seconds
    up = {pod.name for each in nodes.values() for pod in each[:2] if pod and is_available(pod, wait, now)}
    if not max_surge:
        return Changes([], _replace(nodes.values(), up, max_unavailable))
    return _surge(nodes, up, eligible, max_surge, len(desired))


def _on_node(pods: Iterable[Pod], revision: str) -> _OnNode:
    staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    new = [pod for pod in staying if pod.metadata.labels.get(REVISION) == revision]
    old = [pod for pod in staying if pod.metadata.labels.get(REVISION) != revision]
    if len(new) > 1 or len(old) > 1:
        return _OnNode(None, None, excess=True)
    return _OnNode(new[0] if new else None, old[0] if old else None, excess=False)


def _replace(nodes: Iterable[_OnNode], up: set[str], max_unavailable: int) -> list[Pod]:
    """Old pods that are unavailable anyway, and as many others as keep the limit."""
    unavailable, down, candidates = 0, [], []
    for new, old, _ in nodes:
        if old is not None and new is None:
            if old.name in up:
                candidates.append(old)
            else:
                down.append(old)
                unavailable += 1
        elif new is None or old is not None or new.name not in up:
            unavailable += 1
    return [*down, *candidates[: max(0, max_unavailable - unavailable)]]


def _surge(
    nodes: Mapping[str, _OnNode],
    up: set[str],
    eligible: Mapping[str, Eligibility],
    max_surge: int,
    desired: int,
) -> Changes:
    """New pods beside old ones; an old pod goes when the new one is available.

    Pods of nodes that are eligible no more go only when enough others are available.
    """
    surging = available = 0
    delete: list[Pod] = []
    misplaced: list[Pod] = []
    urgent: list[str] = []
    candidates: list[str] = []
    for node, (new, old, excess) in nodes.items():
        first = old or new
        available += first is not None and first.name in up
        if excess:
            surging += 1
        elif old is None:
            continue
        elif new is not None:
            if new.name in up:
                delete.append(old)
            else:
                surging += 1
        elif node not in eligible or not eligible[node].starts:
            (misplaced if old.name in up else delete).append(old)
        else:
            (candidates if old.name in up else urgent).append(node)
    delete += misplaced[: max(0, available - desired)]
    return Changes([*urgent, *candidates[: max(0, max_surge - surging)]], delete)
