"""Promises where a policy evicts, and cycles that run because a promised moment has come."""

from __future__ import annotations

from stromboli.testing import World
from tests.manifests import policy
from tests.plugins.backfill_reservation.backfill_worlds import NOON, job, step, world


def evicting(actions: str, queues: str = "") -> World:
    text = policy(actions, "priority gang conformance | predicates capacity backfill-reservation")
    return World("n1 cpu=10,memory=100Gi,pods=100", queues, policy=text)


def test_the_first_that_waits_evicts_and_takes_the_room() -> None:
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
