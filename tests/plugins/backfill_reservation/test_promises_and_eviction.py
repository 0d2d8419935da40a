"""Promises where a policy evicts, and cycles that run because a promised moment has come."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.manifests import policy
from tests.plugins.backfill_reservation.backfill_worlds import NOON, job, step, world


def evicting(actions: str, queues: str = "") -> World:
    text = policy(actions, "priority gang conformance | predicates capacity backfill-reservation")
    return World("n1 cpu=10,memory=100Gi,pods=100", queues, policy=text)


def test_the_first_pending_job_evicts_and_takes_the_capacity() -> None:
    here = evicting("allocate, preempt")
    job(here, "running", 6, "9h", minimum=0, priority=1)
    step(here)
    job(here, "head", 8, "1h", priority=5)
    job(here, "small", 4, "9h", priority=1)
    result = step(here)
    assert result.evicted == ["default/running-0"]
    assert result.bound_per_job == {}
    assert step(here).bound_per_job == {"default/head": 1}


def test_a_job_that_reclaims_its_share_does_not_wait_for_its_promise() -> None:
    here = evicting("allocate, reclaim", queues="a deserved=cpu:5; b deserved=cpu:5")
    job(here, "running", 4, "9h", queue="a")
    job(here, "more", 4, "5h", queue="a")
    step(here)
    job(here, "head", 5, "1h", queue="b")
    before = step(here)
    assert before.evicted
    assert step(here).bound_per_job == {"default/head": 1}


MODES = pytest.mark.parametrize("mode", ["easy", "conservative", "none"])
HELD = {"fewestVictims": True, "holdFor": "5m"}


def cleared_beside_a_promise(mode: str, urgent: int, pods: int = 1) -> World:
    """`head` waits for 4 of 8 CPUs until `running` ends; pods are evicted for `urgent`, which runs for longer."""
    backfill = ("backfill-reservation", {"mode": mode})
    gang = {"name": "gang", "enablePreemptable": False}
    text = policy("allocate, preempt", "priority", gang, "| predicates capacity", backfill, preempt=HELD)
    queues = "a deserved=cpu:8; b deserved=cpu:4; c deserved=cpu:4"
    here = World("n1 cpu=8,memory=100Gi,pods=100", queues, policy=text)
    job(here, "running", 4, "1h", queue="c")
    job(here, "low", 1, pods=2, queue="b", minimum=0)
    step(here)
    job(here, "head", 4, "1h", queue="a", priority=5, spec={"preemptionPolicy": "Never"})
    step(here)
    job(here, "urgent", urgent, pods=pods, queue="b", priority=1)
    return here


@MODES
@pytest.mark.parametrize(("cpu", "pods"), [(3, 1), (1, 3)])
def test_a_job_takes_the_capacity_that_was_cleared_for_it_beside_a_promise(
    mode: str, cpu: int, pods: int
) -> None:
    here = cleared_beside_a_promise(mode, cpu, pods)
    assert step(here).evicted
    assert step(here).bound_per_job == {"default/urgent": pods}
    promised = here.step().promised["default/head"] if mode != "none" else None
    assert promised is None or promised.start == NOON + 3600


def test_a_cycle_runs_when_a_limit_passes_though_nothing_else_happens() -> None:
    here = world()
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    step(here)
    here.step()
    assert here.step().outcome.repeated
    assert here.step(now=NOON + 3599).outcome.repeated
    result = here.step(now=NOON + 3601)
    assert not result.outcome.repeated
    assert result.promised["default/head"].overdue
