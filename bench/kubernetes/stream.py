"""A stream: the scheduler runs, pods arrive evenly. How long is each on its way from created to bound?"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from statistics import quantiles
from typing import Any

from msgspec import Struct

from bench.kubernetes import shapes
from bench.kubernetes.audit import Write
from bench.kubernetes.bench_cluster import BenchCluster
from bench.kubernetes.burst import BIND, bound
from bench.kubernetes.processes import Costs
from bench.kubernetes.shapes import Shape

CREATE = "create pods"
TIMEOUT = 300.0
WARM = 1
"""Gangs that come first and do not count: they show that the scheduler is ready."""


class Stream(Struct):
    """The measurements of one scheduler."""

    scheduler: str
    shape: str
    nodes: int
    pods: int
    rate: float
    """Pods a second."""
    bound: int
    p50: float
    """Seconds from the create request to the answer of the bind, for half of the pods."""
    p99: float
    gang_p50: float
    """Seconds from the create request of a gang's last pod until all of its pods are bound, for half of the gangs."""
    gang_p99: float
    cpu: dict[str, float]
    seconds: float
    """From the first create to the last write; what `cpu` was spent in."""
    problem: str = ""


def stream(cluster: BenchCluster, scheduler: str, shape: Shape, nodes: int, rate: float) -> Stream:
    """One scheduler, `rate` pods a second in gangs."""
    cluster.add_nodes(nodes)
    arrivals = list(_arrivals(scheduler, Shape(shape.gangs + WARM, shape.size, shape.prefix)))
    first = (len(arrivals) // (shape.gangs + WARM)) * WARM
    pids = cluster.start(scheduler)
    cluster.create(arrivals[:first])
    early = cluster.writes(lambda all: bound(all) >= WARM * shape.size, TIMEOUT)
    warm = {write.object_ref.name for write in early}
    costs = Costs(pids)
    evenly = rate * (len(arrivals) - first) / shape.pods
    creating = threading.Thread(target=cluster.create_evenly, args=(arrivals[first:], evenly))
    creating.start()
    seen = cluster.writes(lambda all: bound(all) >= shape.pods, TIMEOUT, costs.sample)
    creating.join()
    counted = [write for write in seen if write.object_ref.name not in warm]
    times = latencies(counted)
    last = max(write.ended for write in seen)
    result = _summary(scheduler, shape, nodes, rate, times, gang_latencies(counted))
    result.cpu, result.seconds = costs.until(last), last - min(write.begun for write in seen)
    if len(times) != shape.pods:
        result.problem = f"bound {len(times)} of {shape.pods} pods; {cluster.log_tail(scheduler)}"
    return result


def _arrivals(scheduler: str, shape: Shape) -> Iterator[dict[str, Any]]:
    """Gang by gang, each with its PodGroup first."""
    for gang in range(shape.gangs):
        if shapes.grouped(scheduler):
            yield shapes.group(gang, shape.size, shape.prefix)
        yield from shapes.gang_pods(shape, gang, scheduler)


def latencies(writes: Iterable[Write]) -> list[float]:
    """Seconds of each pod that was created and bound."""
    return [bound - created for created, bound in _lives(writes).values()]


def gang_latencies(writes: Iterable[Write]) -> list[float]:
    """Seconds of each gang, from the create request of its last pod to the answer of its last bind."""
    gangs: dict[str, list[tuple[float, float]]] = {}
    for name, life in _lives(writes).items():
        gangs.setdefault(name.rpartition("-")[0], []).append(life)
    return [
        max(bound for _, bound in lives) - max(created for created, _ in lives) for lives in gangs.values()
    ]


def _lives(writes: Iterable[Write]) -> dict[str, tuple[float, float]]:
    """When each pod was created, and when it was bound."""
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    for write in writes:
        if write.done and write.operation == CREATE:
            created[write.object_ref.name] = write.begun
        elif write.done and write.operation == BIND:
            bound[write.object_ref.name] = write.ended
    return {name: (since, bound[name]) for name, since in created.items() if name in bound}


def _summary(
    scheduler: str, shape: Shape, nodes: int, rate: float, times: list[float], gangs: list[float]
) -> Stream:
    cuts, gang_cuts = _percentiles(times), _percentiles(gangs)
    return Stream(
        scheduler=scheduler,
        shape=shape.name,
        nodes=nodes,
        pods=shape.pods,
        rate=rate,
        bound=len(times),
        p50=cuts[49],
        p99=cuts[98],
        gang_p50=gang_cuts[49],
        gang_p99=gang_cuts[98],
        cpu={},
        seconds=0.0,
    )


def _percentiles(times: list[float]) -> list[float]:
    return quantiles(times, n=100, method="inclusive") if len(times) > 1 else [sum(times)] * 99
