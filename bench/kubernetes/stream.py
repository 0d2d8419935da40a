"""A stream: the scheduler runs, pods arrive evenly. How long is each on its way from created to bound?"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from msgspec import Struct

from bench.kubernetes import shapes
from bench.kubernetes.audit import Write
from bench.kubernetes.bench_cluster import BenchCluster
from bench.kubernetes.burst import BIND, bound
from bench.kubernetes.processes import Costs
from bench.kubernetes.shapes import OURS, Shape

CREATE = "create pods"
TIMEOUT = 300.0
WARM = 1
"""Gangs that come first and do not count: they show that the scheduler is ready."""


class Stream(Struct):
    """The measurements of one scheduler."""

    scheduler: str
    shape: str
    flags: list[str]
    nodes: int
    pods: int
    rate: float
    """Pods a second."""
    bound: int
    p50: float
    """Seconds from the create request to the answer of the bind, for half of the pods."""
    p99: float
    cpu: dict[str, float]
    seconds: float
    """From the first create to the last write; what `cpu` was spent in."""
    problem: str = ""


def stream(scheduler: str, shape: Shape, nodes: int, rate: float, flags: Sequence[str] = ()) -> Stream:
    """One scheduler on a control plane of its own, `rate` pods a second in gangs."""
    with (
        tempfile.TemporaryDirectory(prefix="stromboli-bench-") as folder,
        BenchCluster(Path(folder)) as cluster,
    ):
        cluster.create(shapes.node(number) for number in range(nodes))
        arrivals = list(_arrivals(scheduler, Shape(shape.gangs + WARM, shape.size)))
        first = (len(arrivals) // (shape.gangs + WARM)) * WARM
        pids = cluster.start(scheduler, *flags)
        cluster.create(arrivals[:first])
        early = cluster.writes(lambda all: bound(all) >= WARM * shape.size, TIMEOUT)
        warm = {write.object_ref.name for write in early}
        costs = Costs(pids)
        evenly = rate * (len(arrivals) - first) / shape.pods
        creating = threading.Thread(target=cluster.create_evenly, args=(arrivals[first:], evenly))
        creating.start()
        seen = cluster.writes(lambda all: bound(all) >= shape.pods, TIMEOUT)
        spent = costs.spent()
        creating.join()
        times = latencies(write for write in seen if write.object_ref.name not in warm)
        result = _summary(scheduler, shape, nodes, rate, times)
        result.cpu, result.flags = spent, list(flags)
        result.seconds = max(write.ended for write in seen) - min(write.begun for write in seen)
        if len(times) != shape.pods:
            result.problem = f"bound {len(times)} of {shape.pods} pods; {cluster.log_tail(scheduler)}"
        return result


def _arrivals(scheduler: str, shape: Shape) -> Iterator[dict[str, Any]]:
    """Gang by gang, each with its PodGroup first."""
    for gang in range(shape.gangs):
        if scheduler == OURS:
            yield shapes.group(gang, shape.size)
        yield from (shapes.pod(gang, member, scheduler) for member in range(shape.size))


def latencies(writes: Iterator[Write]) -> list[float]:
    """Seconds of each pod that was created and bound."""
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    for write in writes:
        if write.done and write.operation == CREATE:
            created[write.object_ref.name] = write.begun
        elif write.done and write.operation == BIND:
            bound[write.object_ref.name] = write.ended
    return [bound[name] - since for name, since in created.items() if name in bound]


def _summary(scheduler: str, shape: Shape, nodes: int, rate: float, times: list[float]) -> Stream:
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else [0.0] * 99
    return Stream(
        scheduler=scheduler,
        shape=shape.name,
        flags=[],
        nodes=nodes,
        pods=shape.pods,
        rate=rate,
        bound=len(times),
        p50=cuts[49],
        p99=cuts[98],
        cpu={},
        seconds=0.0,
    )
