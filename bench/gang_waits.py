"""How long gangs of half the cluster wait under a preset, with and without promised starts.

Run it with `python -m bench.gang_waits`.
The traces come from `$STROMBOLI_DATA/swf`, `../shared/data` unless it is set, and from `tests/worlds/19-ageing`.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.gang_shapes import NodeRoom
from stromboli.simulator.workloads.swf_reader import SwfOptions, read_swf

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("STROMBOLI_DATA", ROOT / ".." / "shared" / "data"))
ENTRY = "  - name: backfill-reservation\n"
ARGUMENTS = "    arguments:\n      reserveAfter: {after}\n"


class Trace(NamedTuple):
    """A trace, the nodes that it runs on, and how many of its jobs."""

    path: Path
    nodes: int
    cpus: int
    jobs: int | None = None


TRACES = {
    "19-ageing": Trace(ROOT / "tests" / "worlds" / "19-ageing" / "stream.swf", 4, 16),
    "hpc2n": Trace(DATA / "swf" / "hpc2n-excerpt.swf", 30, 8),
    "lublin, first 1,500 jobs": Trace(DATA / "swf" / "lublin_256.swf", 32, 8, 1500),
}


def policies(preset: str) -> dict[str, str]:
    """The preset without the plugin, with EASY alone, and with nodes reserved after some time."""
    text = PRESETS[preset]
    reserving = {
        f"easy, {after}": text.replace(ENTRY, ENTRY + ARGUMENTS.format(after=after))
        for after in ("24h", "72h")
    }
    return {"none": text.replace(ENTRY, ""), "easy": text, **reserving}


def row(trace: Trace, policy: str, has_limits: bool) -> str:
    """The measures of one simulation, as cells of a table."""
    catalog = load_catalog()
    options = SwfOptions(nodes=(NodeRoom(trace.cpus, trace.cpus),) * trace.nodes)
    workload = read_swf(str(trace.path), options)
    jobs = workload.jobs[: trace.jobs]
    if not has_limits:
        jobs = tuple(replace(job, time_limit=None) for job in jobs)
    cluster = "; ".join(f"n{number} cpu={trace.cpus},memory=1Ti,pods=100" for number in range(trace.nodes))
    begin = time.process_time()
    workload = replace(workload, jobs=jobs, nodes=tuple(nodes(cluster)))
    record = simulate(workload, (), load_policy(policy, catalog), catalog)
    seconds = time.process_time() - begin
    if record.failed or any(job.started is None for job in record.jobs):
        return f"failed: {record.notes}"
    cpus = {job.name: job.pods * float(job.requests["cpu"]) for job in jobs}
    held = np.array([cpus[job.name] for job in record.jobs])
    waits = np.array([(job.started or 0.0) - job.submitted for job in record.jobs])
    runs = np.array([(job.ended or 0.0) - (job.started or 0.0) for job in record.jobs])
    makespan = max(job.ended or 0.0 for job in record.jobs) - min(job.submitted for job in record.jobs)
    total = trace.nodes * trace.cpus
    big = waits[held >= total / 2]
    utilisation = float((held * runs).sum()) / (total * makespan)
    return (
        f"{big.max():,.0f} | {np.percentile(big, 99):,.0f} | {waits.mean():,.0f} "
        f"| {100 * utilisation:.1f} % | {seconds:.0f}"
    )


def main() -> None:
    """Print the table of docs/backfill.md; names of traces as arguments choose some of them."""
    print(
        "| Trace | Time limits | Backfill | Longest wait of a big gang s | 99 % s | Mean wait s | Utilisation | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, trace in TRACES.items():
        if sys.argv[1:] and not name.startswith(tuple(sys.argv[1:])):
            continue
        for has_limits in (True, False):
            for kind, policy in policies("full").items():
                if not (has_limits and "," in kind):
                    cells = row(trace, policy, has_limits)
                    print(f"| {name} | {'yes' if has_limits else 'no'} | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
