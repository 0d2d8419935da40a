"""In which order the pods of an OpenB list arrive, how many of them, and which node comes first among equals.

The list is shuffled. If it asks for less than the load, pods of it are drawn again and follow; if for more, pods leave
it until it does not. Whoever hands over the numbers decides whose experiment it is: `SeededSequence` is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Protocol

from stromboli.simulator.workloads.openb_lists import OpenbPod

MAX_ARRIVALS = 1_000_000
"""Pods that arrive in all."""


class ArrivalSequence(Protocol):
    """Random numbers in the order in which they are asked for: shuffled, below as often as needed, ranks."""

    def shuffled(self, count: int) -> list[int]:
        """The numbers below the count in random order."""

    def below(self, bound: int) -> int:
        """A number from 0 to below the bound."""

    def ranks(self, count: int) -> list[int]:
        """The rank of each node, the nodes sorted by name."""


class SeededSequence:
    """A sequence of ours: Python's Mersenne Twister, the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def shuffled(self, count: int) -> list[int]:
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def ranks(self, count: int) -> list[int]:
        return self.shuffled(count)


def arrivals(
    pods: Sequence[OpenbPod], capacity: int, load: float, sequence: ArrivalSequence
) -> list[OpenbPod]:
    """The pods of a list in the order of their arrival.

    The load is the GPU demand as a share of the capacity, which is in thousandths of a GPU; 0 leaves the list as long
    as it is.
    """
    listed = sorted(pods, key=lambda pod: pod.name)
    arriving = [listed[index] for index in sequence.shuffled(len(listed))]
    demand = sum(pod.gpu_demand for pod in listed)
    target = load * capacity
    if target > 0 and demand > target:
        _thin(arriving, demand, target, sequence)
    elif 0 < demand < target:
        _inflate(arriving, listed, demand, target, sequence)
    return arriving


def _thin(arriving: list[OpenbPod], demand: int, target: float, sequence: ArrivalSequence) -> None:
    while demand > target:
        demand -= arriving.pop(sequence.below(len(arriving))).gpu_demand


def _inflate(
    arriving: list[OpenbPod], listed: list[OpenbPod], demand: int, target: float, sequence: ArrivalSequence
) -> None:
    """Draw until a GPU of the next pod would be too much: of one of its GPUs, however many it asks for."""
    while len(arriving) < MAX_ARRIVALS:
        drawn = listed[sequence.below(len(listed))]
        if demand + drawn.gpu_milli > target:
            return
        demand += drawn.gpu_demand
        arriving.append(replace(drawn, name=f"{drawn.name}-tuned-{len(arriving) - len(listed)}"))
