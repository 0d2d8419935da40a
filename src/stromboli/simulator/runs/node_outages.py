"""Nodes that fail and are repaired, each by itself and by the seed alone."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeFailures:
    """How often a node fails and how long it is away, both exponentially distributed, in seconds."""

    mean_time_between_failures: float
    mean_time_to_repair: float


class NodeOutages:
    """Draws the times of each node; what happens to one does not change those of others."""

    def __init__(self, failures: NodeFailures, seed: int) -> None:
        self._failures = failures
        self._seed = seed
        self._random: dict[str, random.Random] = {}

    def time_to_failure(self, node: str) -> float:
        """How long a node works from now on."""
        return self._draw(node, self._failures.mean_time_between_failures)

    def time_to_repair(self, node: str) -> float:
        """How long a node that fails now is away."""
        return self._draw(node, self._failures.mean_time_to_repair)

    def _draw(self, node: str, mean: float) -> float:
        if node not in self._random:
            self._random[node] = random.Random(f"{self._seed}/{node}")
        return self._random[node].expovariate(1 / mean)
