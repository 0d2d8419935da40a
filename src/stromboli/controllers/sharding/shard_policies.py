"""The policies by which a scheduler gets nodes: they filter, score and select (spec 06 11.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

WARMUP_LABEL = "node.volcano.sh/warmup"


class BadPolicy(ValueError):
    """A policy that cannot be set up; the text says what to write instead."""


class NodeState(NamedTuple):
    """What policies read of a node."""

    name: str
    labels: Mapping[str, str]
    cpu_utilization: float


class ShardPolicy:
    """Accepts every node, prefers none, selects all; a policy overrides what it is about."""

    numbers: ClassVar[tuple[str, ...]] = ()
    """Arguments that are numbers."""
    texts: ClassVar[tuple[str, ...]] = ()
    """Arguments that are texts."""

    def accepts(self, node: NodeState) -> bool:
        return True

    def score(self, node: NodeState) -> float:
        """From 0 to 1."""
        return 0.0

    def select(self, nodes: Sequence[NodeState]) -> Sequence[NodeState]:
        """Of the accepted nodes, best first, those that the scheduler gets."""
        return nodes


class AllocationRate(ShardPolicy):
    """Nodes by how much of their CPU pods request: only within a range, the fullest first."""

    numbers = ("minCPUUtil", "maxCPUUtil")

    def __init__(self, given: Mapping[str, Any]) -> None:
        # quirk: spec 06 11.3, without arguments only nodes whose utilization rounds to 0 are accepted
        lowest, highest = given.get("minCPUUtil", 0), given.get("maxCPUUtil", 0)
        if not 0 <= lowest <= highest <= 1:
            raise BadPolicy(f"minCPUUtil {lowest:g} and maxCPUUtil {highest:g} are no range within 0 and 1")
        self._lowest, self._highest = _rounded(lowest), _rounded(highest)

    def accepts(self, node: NodeState) -> bool:
        return self._lowest <= _rounded(node.cpu_utilization) <= self._highest

    def score(self, node: NodeState) -> float:
        width = self._highest - self._lowest
        if width == 0:
            return 1.0
        return min(1.0, max(0.0, (_rounded(node.cpu_utilization) - self._lowest) / width))


class Warmup(ShardPolicy):
    """Nodes with a label first."""

    texts = ("warmupLabel", "warmupLabelValue")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._label = given.get("warmupLabel", WARMUP_LABEL)
        self._value = given.get("warmupLabelValue", "true")
        if not self._label:
            raise BadPolicy(f"warmupLabel is empty; leave it out for {WARMUP_LABEL}")

    def score(self, node: NodeState) -> float:
        return 1.0 if node.labels.get(self._label, "") == self._value else 0.0


class NodeLimit(ShardPolicy):
    """So many nodes at most; that there should be more is only told."""

    numbers = ("minNodes", "maxNodes")

    def __init__(self, given: Mapping[str, Any]) -> None:
        numbers = given.get("minNodes", 0), given.get("maxNodes", 0)
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            raise BadPolicy("minNodes and maxNodes must be whole numbers")
        self.min_nodes, self.max_nodes = map(int, numbers)
        if self.min_nodes < 0 or 0 < self.max_nodes < self.min_nodes:
            raise BadPolicy(
                f"minNodes {self.min_nodes} must not be below 0, nor above maxNodes {self.max_nodes}"
            )

    def select(self, nodes: Sequence[NodeState]) -> Sequence[NodeState]:
        return nodes[: self.max_nodes] if self.max_nodes > 0 else nodes


ALLOCATION_RATE, WARMUP, NODE_LIMIT = "allocation-rate", "warmup", "node-limit"
POLICIES: Mapping[str, type[AllocationRate | Warmup | NodeLimit]] = {
    ALLOCATION_RATE: AllocationRate,
    WARMUP: Warmup,
    NODE_LIMIT: NodeLimit,
}


def policy_of(name: str, given: Mapping[str, Any]) -> ShardPolicy:
    """The policy of a name, with its arguments."""
    kind = POLICIES.get(name)
    if kind is None:
        raise BadPolicy(f"there is no such policy; there are {', '.join(POLICIES)}")
    for key, value in given.items():
        if key in kind.texts and not isinstance(value, str):
            raise BadPolicy(f"{key} must be a text")
        if key in kind.numbers and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise BadPolicy(f"{key} must be a number")
    return kind(given)


def _rounded(utilization: float) -> float:
    """To two decimals, halves away from zero."""
    return math.floor(utilization * 100 + 0.5) / 100
