"""Jobs that the gate or the limits of their queue keep waiting are promised a start, and later jobs do not delay it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.testing import World
from tests.manifests import group
from tests.number_of_examples import scaled
from tests.plugins.backfill_reservation.backfill_worlds import LIMIT, NOON, job, step
from tests.simulator.runs.small_runs import CATALOG

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins:
  - name: overcommit
  - name: predicates
  - name: {share}
  - name: backfill-reservation
    arguments: {{mode: {mode}}}
"""
MODES = pytest.mark.parametrize("mode", ["easy", "conservative"])
SHARES = pytest.mark.parametrize("share", ["proportion", "capacity"])


def world(mode: str = "easy", share: str = "proportion", queues: str = "") -> World:
    policy = POLICY.format(mode=mode, share=share)
    return World(nodes="n1 cpu=10,memory=100Gi,pods=100", queues=queues, policy=policy)


def gated(
    world: World, name: str, cpu: int, limit: str | None = None, pods: int = 1, **terms: object
) -> None:
    """A job that has to pass the gate."""
    job(world, name, cpu, limit, pods, min_resources={"cpu": cpu * pods}, phase="Pending", **terms)


@MODES
@SHARES
def test_a_gang_that_the_gate_refuses_is_promised_a_start(mode: str, share: str) -> None:
    here = world(mode, share)
    gated(here, "running", 6, "1h")
    step(here)
    gated(here, "gang", 2, "1h", pods=4)
    gated(here, "long", 4, "2h")
    gated(here, "short", 4, "30m")
    result = step(here)
    assert result.promised["default/gang"].start == NOON + 3600
    assert step(here).promised["default/gang"].start == NOON + 3600


@MODES
@SHARES
def test_a_full_cluster_promises_a_start_too(mode: str, share: str) -> None:
    here = world(mode, share)
    gated(here, "running", 10, "1h")
    step(here)
    gated(here, "gang", 5, "1h", pods=2)
    assert step(here).promised["default/gang"].start == NOON + 3600


def test_jobs_that_do_not_delay_the_promise_pass_the_gate_and_start() -> None:
    here = world()
    gated(here, "running", 6, "1h")
    step(here)
    gated(here, "gang", 2, "1h", pods=5)
    step(here)
    gated(here, "long", 4, "2h")
    gated(here, "short", 4, "30m")
    bound = step(here).bound_per_job | step(here).bound_per_job
    assert bound == {"default/short": 1}


def test_jobs_that_would_delay_the_promise_wait_at_the_gate() -> None:
    here = world()
    gated(here, "running", 6, "1h")
    step(here)
    gated(here, "gang", 2, "1h", pods=5)
    step(here)
    for number in range(9):
        gated(here, f"long-{number}", 4, "2h")
    result = step(here)
    assert result.bound_per_job == {}
    assert sum(each.waits_for_queue for each in here.cluster.jobs.values()) == 9


def test_a_gang_larger_than_the_cluster_or_its_queue_is_not_admitted() -> None:
    here = world(share="capacity", queues="small capability=cpu:4")
    gated(here, "running", 6, "1h")
    step(here)
    gated(here, "larger-than-cluster", 1, "1h", pods=11)
    gated(here, "larger-than-queue", 1, "1h", pods=5, queue="small")
    gated(here, "gang", 5, "1h", pods=2)
    result = step(here)
    assert set(result.promised) == {"default/gang"}
    waiting = {each.name for each in here.cluster.jobs.values() if each.waits_for_queue}
    assert waiting == {"larger-than-cluster", "larger-than-queue"}


@SHARES
def test_a_job_whose_pods_do_not_exist_is_promised_a_start_by_its_minimum_resources(share: str) -> None:
    here = world(share=share)
    gated(here, "running", 6, "1h")
    step(here)
    here.add(group("gang", 4, phase="Pending", annotations={LIMIT: "1h"}, minResources={"cpu": "8"}))
    gated(here, "long", 4, "2h")
    result = step(here)
    assert result.promised["default/gang"].start == NOON + 3600
    assert result.bound_per_job == {}


@MODES
@SHARES
def test_the_limit_of_a_queue_is_reserved_for_its_first_job(mode: str, share: str) -> None:
    here = world(mode, share, queues="small capability=cpu:6; other")
    gated(here, "running", 3, "1h", queue="small")
    step(here)
    gated(here, "gang", 3, "1h", pods=2, queue="small")
    step(here)
    gated(here, "long", 3, "2h", queue="small")
    gated(here, "short", 1, "30m", queue="small")
    gated(here, "others", 1, "9h", queue="other")
    bound = step(here).bound_per_job | step(here).bound_per_job
    assert bound == {"default/short": 1, "default/others": 1}


def submitted(number: int, submit: int, run: int, more: int, pods: int, cpu: int) -> SubmittedJob:
    return SubmittedJob(
        f"job-{number}", submit, run, pods, requests={"cpu": cpu}, time_limit=run + more, queue="small"
    )


@pytest.mark.parametrize(("mode", "capability"), [("easy", 9), ("conservative", 10)])
@settings(max_examples=scaled(25), deadline=None)
@given(
    later=st.lists(
        st.tuples(
            st.integers(2, 40),
            st.integers(1, 15),
            st.sampled_from([0, 3, 20]),
            st.integers(1, 2),
            st.integers(1, 3),
        ),
        max_size=10,
    )
)
def test_jobs_that_come_later_do_not_delay_a_gang_at_the_gate(
    mode: str, capability: int, later: list[tuple[int, int, int, int, int]]
) -> None:
    """It starts when the jobs that ran before it are over their limits, whatever is submitted after it."""
    first = [submitted(0, 0, 20, 5, 1, 3), submitted(1, 0, 30, 0, 1, 2)]
    gang = SubmittedJob("gang", 1, 10, 4, requests={"cpu": 2}, time_limit=10, queue="small")
    jobs = [submitted(number, *terms) for number, terms in enumerate(sorted(later), 2)]
    policy = load_policy(POLICY.format(mode=mode, share="capacity"), CATALOG)
    cluster, limits = nodes("a cpu=4; b cpu=4; c cpu=2"), queues(f"small capability=cpu:{capability}")
    record = simulate(
        Workload("gate", (*first, gang, *jobs), tuple(cluster), tuple(limits)), (), policy, CATALOG
    )
    assert not record.failed, record.notes
    (started,) = [each.started for each in record.jobs if each.name == "gang"]
    assert started is not None
    assert started <= 30
