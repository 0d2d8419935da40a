"""GPU packing by the letter of the paper on fragmentation gradient descent, pod by pod and node by node.

It shares nothing with the plugins but the lists. Amounts are thousandths; ties go to the first node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, floor
from typing import NamedTuple

from stromboli.simulator.workloads.openb_lists import OpenbNode, OpenbPod


class Shape(NamedTuple):
    """What makes tasks alike."""

    cpu: int
    milli: int
    gpus: int
    spec: str


@dataclass
class State:
    """What is free on a node."""

    name: str
    cpu: int
    memory: int
    model: str
    free: list[int]
    classes: set[int] = field(default_factory=set)


class Placed(NamedTuple):
    """A node by name and, for a part of a GPU, which one; no node: it fits nowhere."""

    node: str = ""
    gpu: int = -1


def shape_of(pod: OpenbPod) -> Shape:
    return Shape(pod.cpu_milli, pod.gpu_milli, pod.gpus, "|".join(pod.models))


def typical_shapes(pods: Sequence[OpenbPod]) -> list[tuple[Shape, float]]:
    """The most frequent shapes that cover 95 % of the pods, with their weights."""
    counts = Counter(map(shape_of, pods))
    chosen: list[Shape] = []
    covered = 0
    for shape in sorted(counts, key=lambda shape: (counts[shape], shape), reverse=True):
        if covered >= 0.95 * len(pods):
            break
        chosen.append(shape)
        covered += counts[shape]
    return [(shape, (counts[shape] / len(pods)) / (covered / len(pods))) for shape in chosen]


def fragmentation(cpu: int, free: Sequence[int], model: str, typical: Sequence[tuple[Shape, float]]) -> float:
    """What typical tasks could not use of a node, added cause by cause."""
    causes = [0.0] * 6
    total = sum(free)
    for shape, weight in typical:
        fitting = [part for part in free if part >= shape.milli]
        lacks_cpu, lacks_gpu = shape.cpu > cpu, len(fitting) < shape.gpus
        if not shape.gpus:
            cause, lost = (4 if lacks_cpu else 3), total
        elif shape.spec and model not in shape.spec.split("|"):
            cause, lost = 5, total
        elif lacks_cpu:
            cause, lost = (0 if lacks_gpu else 2), total
        else:
            cause, lost = 1, total if lacks_gpu else total - sum(fitting)
        causes[cause] += weight * lost
    return causes[0] + causes[1] + causes[2] + causes[3] + causes[4] + causes[5]


class Packing:
    """Pods are placed one after the other by one score, and never leave."""

    def __init__(self, nodes: Sequence[OpenbNode], listed: Sequence[OpenbPod], score: str):
        self.nodes = [
            State(node.name, node.cpu_milli, node.memory_mib, node.model, [1000] * node.gpus)
            for node in nodes
        ]
        self.typical = typical_shapes(listed)
        self._score = score

    def place(self, pod: OpenbPod) -> Placed:
        """The place of the next pod, which it takes."""
        best: tuple[float, State, int] | None = None
        for node in self.nodes:
            if self._fits(pod, node):
                score, gpu = self._scored(pod, node)
                if best is None or score > best[0]:
                    best = (score, node, gpu)
        if best is None:
            return Placed()
        _, node, gpu = best
        self._take(pod, node, gpu)
        return Placed(node.name, gpu if 0 < pod.gpu_milli < 1000 else -1)

    def fragmented(self) -> float:
        """The part of all GPUs that is free and lost."""
        lost = sum(fragmentation(node.cpu, node.free, node.model, self.typical) for node in self.nodes)
        return lost / sum(1000 * len(node.free) for node in self.nodes)

    def _fits(self, pod: OpenbPod, node: State) -> bool:
        if pod.cpu_milli > node.cpu or pod.memory_mib > node.memory:
            return False
        if pod.gpus and pod.models and node.model not in pod.models:
            return False
        return sum(part >= pod.gpu_milli for part in node.free) >= pod.gpus

    def _take(self, pod: OpenbPod, node: State, gpu: int) -> None:
        node.cpu -= pod.cpu_milli
        node.memory -= pod.memory_mib
        if not pod.gpus:
            return
        node.classes.add(0 if pod.gpu_milli < 1000 else pod.gpus)
        if pod.gpu_milli < 1000:
            node.free[gpu] -= pod.gpu_milli
        else:
            node.free = _without_whole(node.free, pod.gpus)

    def _scored(self, pod: OpenbPod, node: State) -> tuple[float, int]:
        if self._score == "fgd":
            return self._by_fragmentation(pod, node)
        fitting = [gpu for gpu, part in enumerate(node.free) if part >= pod.gpu_milli]
        gpu = min(fitting, key=lambda gpu: node.free[gpu], default=-1)
        return getattr(self, f"_{self._score}")(pod, node, gpu), gpu

    def _by_fragmentation(self, pod: OpenbPod, node: State) -> tuple[float, int]:
        before = fragmentation(node.cpu, node.free, node.model, self.typical)

        def score(free: Sequence[int]) -> int:
            after = fragmentation(node.cpu - pod.cpu_milli, free, node.model, self.typical)
            return floor(100 * (1 / (1 + exp(-(before - after) / 1000))))

        if not 0 < pod.gpu_milli < 1000:
            return score(_without_whole(node.free, pod.gpus)), -1
        trials = []
        for gpu, part in enumerate(node.free):
            if part >= pod.gpu_milli:
                free = [*node.free]
                free[gpu] -= pod.gpu_milli
                trials.append((score(free), -gpu))
        best, gpu = max(trials)
        return best, -gpu

    def _dotprod(self, pod: OpenbPod, node: State, gpu: int) -> float:
        cpu = node.cpu / 128000 * (pod.cpu_milli / 128000)
        return floor(100 * (1 - (cpu + sum(node.free) / 8000 * (pod.gpu_demand / 8000)) / 2))

    def _bestfit(self, pod: OpenbPod, node: State, gpu: int) -> float:
        cpu, gpus = (node.cpu - pod.cpu_milli) / 128000, (sum(node.free) - pod.gpu_demand) / 8000
        return floor(100 * (1 - cpu / 2 - gpus / 2))

    def _clustering(self, pod: OpenbPod, node: State, gpu: int) -> float:
        if not pod.gpus:
            return 0
        kind = 0 if pod.gpu_milli < 1000 else pod.gpus
        if kind in node.classes:
            base = 75 if len(node.classes) == 1 else 50
        else:
            base = 0 if node.classes else 25
        return floor(25 * (8000 - sum(node.free)) / 8000) + base

    def _packing(self, pod: OpenbPod, node: State, gpu: int) -> float:
        if not pod.gpus:
            return 0
        if all(part == 1000 for part in node.free):
            return 33 - len(node.free)
        taken = sorted(part for part in node.free if part >= pod.gpu_milli)[: pod.gpus]
        idle = taken.count(1000)
        return 50 - idle if idle else 100 - taken[0] // 100


def _without_whole(free: Sequence[int], count: int) -> list[int]:
    left = []
    for part in free:
        taken = part == 1000 and count > 0
        count -= taken
        left.append(0 if taken else part)
    return left
