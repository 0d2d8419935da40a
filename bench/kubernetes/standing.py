"""A standing cluster: many nodes and pods, and nothing to decide. What does it cost to have Stromboli there?"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.kubernetes import shapes
from bench.kubernetes.burst import bound
from bench.kubernetes.grounds import Grounds
from bench.kubernetes.processes import Costs, memory
from bench.kubernetes.shapes import OURS

GANG = 20
HEARTBEAT = 300.0
"""Seconds between two reports of a node whose status does not change, as kubelets have it."""
MOST_MIB = 800.0
MOST_CORES = 0.02
PATIENCE = 300.0


class Standing(Struct):
    """What was seen."""

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


def standing(nodes: int, pods: int, seconds: float) -> Standing:
    """Pods that sit on their nodes, in gangs of twenty; nodes that report as real ones do."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as folder, Grounds(Path(folder)) as grounds:
        grounds.create(shapes.node(number) for number in range(nodes))
        grounds.create(_settled(nodes, pods))
        begin = time.monotonic()
        pids = grounds.start(OURS)
        ready = _wait_until_scheduling(grounds)
        took = time.monotonic() - begin
        over = threading.Event()
        beating = threading.Thread(target=grounds.report, args=(nodes, HEARTBEAT, over))
        beating.start()
        time.sleep(min(10.0, seconds))
        costs, since = Costs(pids), time.monotonic()
        time.sleep(seconds)
        spent, watched = costs.spent(), time.monotonic() - since
        over.set()
        beating.join()
        found = Standing(
            nodes=nodes,
            pods=pods,
            seconds=watched,
            ready=took,
            mib=memory(pids[OURS]),
            peak_mib=memory(pids[OURS], "VmHWM"),
            cores=spent[OURS] / watched,
            api_server_cores=spent["kube-apiserver"] / watched,
        )
        found.problem = "" if ready else f"not ready within {PATIENCE:g} s; {grounds.last_words(OURS)}"
        return found


def _settled(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    for gang in range(pods // GANG):
        yield shapes.group(gang, GANG)
        for member in range(GANG):
            yield shapes.pod(gang, member, OURS, on=f"node-{(gang * GANG + member) % nodes}")


def _wait_until_scheduling(grounds: Grounds) -> bool:
    """A pod that is still to be bound shows it."""
    grounds.create([shapes.group(10**9, 1), shapes.pod(10**9, 0, OURS)])
    return bound(grounds.writes(lambda all: bound(all) > 0, PATIENCE)) > 0
