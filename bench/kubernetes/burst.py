"""A burst: all pods are there, then the scheduler is started. How fast does it bind them, and what does that cost?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from bench.kubernetes import shapes
from bench.kubernetes.audit import Write
from bench.kubernetes.bench_cluster import BenchCluster
from bench.kubernetes.processes import Costs, memory
from bench.kubernetes.shapes import Shape

BIND = "create pods/binding"
TIMEOUT = 600.0


class Burst(Struct):
    """The measurements of one scheduler and one shape."""

    scheduler: str
    shape: str
    nodes: int
    pods: int
    bound: int
    binds_per_second: float
    """Between the first bind and the last."""
    first: float
    """Seconds from the start of the process to the first bind; reading all objects is part of it."""
    last: float
    """To the last bind."""
    settled: float
    """To the last write of any kind."""
    cpu: dict[str, float]
    """Seconds of each process, up to then."""
    cpu_binding: dict[str, float]
    """Seconds of each from the first bind to the last: on a busy machine, steadier than how long that took."""
    mib: float
    """The most memory that the scheduler held."""
    writes: dict[str, int]
    """How many of each kind it asked for."""
    problem: str = ""


def burst(cluster: BenchCluster, scheduler: str, shape: Shape, nodes: int) -> Burst:
    """One scheduler, one shape."""
    cluster.add_nodes(nodes)
    if shapes.grouped(scheduler):
        cluster.create(shapes.groups(shape))
    cluster.create(shapes.pods(shape, scheduler))
    for _ in cluster.log.new_writes():
        pass
    time.sleep(1.0)
    begin = time.time()
    pids = cluster.start(scheduler)
    costs = Costs(pids)
    seen = cluster.writes(lambda all: bound(all) >= shape.pods, TIMEOUT, costs.sample)
    most = memory(pids[scheduler], "VmHWM")
    result = _summary(scheduler, shape, nodes, begin, seen)
    result.cpu, result.mib = costs.until(begin + result.settled), most
    result.cpu_binding = costs.between(begin + result.first, begin + result.last)
    if result.bound != shape.pods:
        result.problem = f"bound {result.bound} of {shape.pods} pods; {cluster.log_tail(scheduler)}"
    return result


def bound(writes: Sequence[Write]) -> int:
    return sum(write.operation == BIND and write.done for write in writes)


def _summary(scheduler: str, shape: Shape, nodes: int, begin: float, seen: Sequence[Write]) -> Burst:
    ended = sorted(write.ended for write in seen if write.operation == BIND and write.done)
    first, last = (ended[0], ended[-1]) if ended else (begin, begin)
    return Burst(
        scheduler=scheduler,
        shape=shape.name,
        nodes=nodes,
        pods=shape.pods,
        bound=len(ended),
        binds_per_second=(len(ended) - 1) / (last - first) if last > first else 0.0,
        first=first - begin,
        last=last - begin,
        settled=max((write.ended for write in seen), default=begin) - begin,
        cpu={},
        cpu_binding={},
        mib=0.0,
        writes=dict(Counter(write.operation for write in seen)),
    )
