"""The world `19-ageing`: a gang of the whole cluster behind a stream of small jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stromboli.policy.policy import Policy, load_policy
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.gang_shapes import NodeRoom
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob
from stromboli.simulator.workloads.swf_reader import SwfOptions, read_swf
from tests.worlds.planning import CATALOG, WORLDS, policy_named

HOUR = 3600
GANG = "job-11"
FIRST_JOBS = 100
"""Some 8,000 s of the stream: without a reservation the gang waits until it ends."""


def gang_wait(policy: Policy, **changes: object) -> float:
    """Simulate the stream on four nodes of 16 CPUs; how long the gang waits."""
    options = SwfOptions(nodes=(NodeRoom(16, 16),) * 4)
    workload = read_swf(str(WORLDS / "19-ageing" / "stream.swf"), options)
    jobs: list[SubmittedJob] = [replace(job, **changes) for job in workload.jobs[:FIRST_JOBS]]  # type: ignore[arg-type]
    cluster = nodes("; ".join(f"n{number} cpu=16,memory=1Ti,pods=100" for number in range(4)))
    record = simulate(replace(workload, jobs=tuple(jobs), nodes=tuple(cluster)), (), policy, CATALOG)
    assert not record.failed, record.notes
    (gang,) = [job for job in record.jobs if job.name == GANG]
    assert gang.started is not None
    return gang.started - gang.submitted


@pytest.mark.parametrize(
    "policy", ["stock-plus-easy", "backfill-res", "backfill-noenq", "preset:full", "preset:fair-share"]
)
def test_the_gang_starts_within_an_hour(policy: str) -> None:
    assert gang_wait(policy_named(policy)) < HOUR


@pytest.mark.parametrize("mode", ["conservative", "none"])
def test_the_gang_starts_within_an_hour_in_other_modes(mode: str) -> None:
    text = (WORLDS / "policies" / "stock-plus-easy.yaml").read_text().replace("easy", mode)
    assert gang_wait(load_policy(text, CATALOG)) < HOUR


def test_without_time_limits_nodes_are_reserved_for_a_gang_that_waits_long() -> None:
    text = (WORLDS / "policies" / "stock-plus-easy.yaml").read_text()
    patient = load_policy(text, CATALOG)
    reserving = load_policy(text.replace("mode: easy", "mode: easy, reserveAfter: 10m"), CATALOG)
    assert gang_wait(patient, time_limit=None) > HOUR
    assert gang_wait(reserving, time_limit=None) < HOUR
