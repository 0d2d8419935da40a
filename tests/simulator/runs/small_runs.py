"""Small simulations for tests: jobs in a line, nodes in the short notation."""

from __future__ import annotations

from typing import Any

from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import nodes as nodes_of
from stromboli.simulator.cluster_notation import queues as queues_of
from stromboli.simulator.runs.run_record import JobRecord, RunRecord
from stromboli.simulator.runs.simulation import SimulationSettings, simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload

CATALOG = load_catalog()

BATCH = """\
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"""
PREEMPTING = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
"""


def job(name: str, at: float = 0, run: float = 10, cpu: int = 1, **more: Any) -> SubmittedJob:
    """A job of one pod, unless more is said."""
    return SubmittedJob(name, at, run, requests={"cpu": cpu}, **more)


def run(
    *jobs: SubmittedJob, nodes: str = "n1 cpu=4", policy: str = BATCH, queues: str = "", **settings: Any
) -> RunRecord:
    """Simulate jobs on nodes."""
    workload = Workload("small", jobs, tuple(nodes_of(nodes)), tuple(queues_of(queues)))
    return simulate(workload, [], load_policy(policy, CATALOG), CATALOG, SimulationSettings(**settings))


def times(record: RunRecord) -> dict[str, tuple[float | None, float | None]]:
    """When each job started and ended."""
    return {job.name: (job.started, job.ended) for job in record.jobs}


def named(record: RunRecord, name: str) -> JobRecord:
    return next(job for job in record.jobs if job.name == name)
