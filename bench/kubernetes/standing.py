"""A standing cluster: many nodes and pods, and nothing to decide. What does the scheduler cost meanwhile?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from bench.kubernetes import shapes
from bench.kubernetes.bench_cluster import BenchCluster
from bench.kubernetes.burst import bound
from bench.kubernetes.processes import Costs, memory
from bench.kubernetes.shapes import OURS

GANG = 20
HEARTBEAT = 300.0
"""Seconds between two reports of a node whose status does not change, as kubelets have it."""
MAX_MIB = 800.0
MAX_CORES = 0.02
TIMEOUT = 300.0


class Standing(Struct):
    """The measurements."""

    nodes: int
    pods: int
    seconds: float
    """How long it was watched."""
    ready: float
    """Seconds from the start of the process until it schedules."""
    mib: float
    """Memory at the end."""
    peak_mib: float
    cores: float
    """Of one processor core, while nodes reported now and then and nothing else happened."""
    api_server_cores: float
    problem: str = ""


def standing(cluster: BenchCluster, nodes: int, pods: int, seconds: float) -> Standing:
    """Pods that sit on their nodes, in gangs of twenty; nodes that report as real ones do."""
    cluster.add_nodes(nodes)
    cluster.create(_settled(nodes, pods))
    begin = time.monotonic()
    pids = cluster.start(OURS)
    ready = _wait_until_scheduling(cluster)
    took = time.monotonic() - begin
    over = threading.Event()
    heartbeats = threading.Thread(target=cluster.send_heartbeats, args=(nodes, HEARTBEAT, over))
    heartbeats.start()
    time.sleep(min(10.0, seconds))
    costs, since = Costs(pids), time.monotonic()
    time.sleep(seconds)
    spent, watched = costs.spent(), time.monotonic() - since
    over.set()
    heartbeats.join()
    result = Standing(
        nodes=nodes,
        pods=pods,
        seconds=watched,
        ready=took,
        mib=memory(pids[OURS]),
        peak_mib=memory(pids[OURS], "VmHWM"),
        cores=spent[OURS] / watched,
        api_server_cores=spent["kube-apiserver"] / watched,
    )
    result.problem = "" if ready else f"not ready within {TIMEOUT:g} s; {cluster.log_tail(OURS)}"
    return result


def _settled(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    for gang in range(pods // GANG):
        yield shapes.group(gang, GANG, "standing")
        for member in range(GANG):
            node = f"node-{(gang * GANG + member) % nodes}"
            yield shapes.pod(gang, member, OURS, node, "standing")


def _wait_until_scheduling(cluster: BenchCluster) -> bool:
    """Create a pod and wait until it is bound."""
    cluster.create([shapes.group(10**9, 1), shapes.pod(10**9, 0, OURS)])
    return bound(cluster.writes(lambda all: bound(all) > 0, TIMEOUT)) > 0
