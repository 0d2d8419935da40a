"""Which scheduler gets which nodes: a function of the configuration and of the nodes (spec 06 11.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from stromboli.controllers.sharding.shard_policies import NodeState
from stromboli.controllers.sharding.sharding_config import SchedulerShare

Assignment = Mapping[str, Sequence[str]]
"""The nodes of each scheduler by its name, best first."""


def assign(shares: Iterable[SchedulerShare], nodes: Iterable[NodeState]) -> Assignment:
    """Schedulers choose in turn, each among the nodes that those before it left."""
    left = list(nodes)
    assignment = {}
    for share in shares:
        chosen = [node.name for node in _chosen(share, left)]
        assignment[share.name] = chosen
        taken = set(chosen)
        left = [node for node in left if node.name not in taken]
    return assignment


def _chosen(share: SchedulerShare, nodes: Iterable[NodeState]) -> Sequence[NodeState]:
    accepted = [node for node in nodes if all(policy.accepts(node) for policy, _ in share.policies)]
    accepted.sort(key=lambda node: -sum(weight * policy.score(node) for policy, weight in share.policies))
    selected: Sequence[NodeState] = accepted
    for policy, _ in share.policies:
        selected = policy.select(selected)
    return selected


def is_worth_writing(current: Assignment, desired: Assignment) -> bool:
    """Whether shards differ enough to be written: one of them does, or a node is in two after an interrupted write."""
    if any(_differs(current.get(name), nodes) for name, nodes in desired.items()):
        return True
    return len({node for nodes in current.values() for node in nodes}) < sum(map(len, current.values()))


def _differs(current: Collection[str] | None, desired: Collection[str]) -> bool:
    """In size, or by a tenth of its nodes."""
    if current is None or len(current) != len(desired):
        return True
    return len(set(desired).difference(current)) >= max(1, len(desired) // 10)
