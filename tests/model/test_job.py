"""The arithmetic of gangs: when a job has enough, and what the minimums of its roles add to that (spec 01 3.2)."""

import pytest

from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, group, job_named, node, pod, task_named


def job_with(*pods: Manifest, minimum: int, **more: object) -> Job:
    return job_named(World().add(node("n0"), group("job", minimum, **more), *pods).cluster, "job")


def test_running_and_succeeded_tasks_are_ready_failed_ones_are_not() -> None:
    done = [
        pod(f"p-{phase}", "job", phase=phase, on="n0")
        for phase in ("Running", "Succeeded", "Failed", "Unknown")
    ]
    job = job_with(*done, pod("bound", "job", on="n0", phase="Pending"), minimum=4)
    assert (job.ready_count, job.allocated_count, job.valid_count) == (3, 2, 3)
    assert not job.enough_ready


def test_pending_tasks_that_ask_for_nothing_count_as_ready() -> None:
    job = job_with(pod("a", "job", on="n0"), pod("b", "job", cpu=0), pod("c", "job"), minimum=2)
    assert job.pending_best_effort == 1
    assert job.enough_ready
    assert job.starving


def test_pipelined_tasks_make_a_job_pipelined_and_not_starving() -> None:
    cluster = World().add(node("n0"), group("job", 2), pod("a", "job"), pod("b", "job", on="n0")).cluster
    job = job_named(cluster, "job")
    cluster.move(task_named(cluster, "a"), Status.PIPELINED, cluster.nodes["n0"])
    assert (job.waiting_count, job.enough_ready, job.enough_pipelined, job.starving) == (
        1,
        False,
        True,
        False,
    )


def test_role_minimums_hold_when_they_add_up_to_no_more_than_the_minimum() -> None:
    roles = {"ps": 1, "worker": 1}
    job = job_with(
        pod("w0", "job", on="n0", role="worker"),
        pod("w1", "job", on="n0", role="worker"),
        minimum=2,
        minTaskMember=roles,
    )
    assert job.enough_ready
    assert (job.roles_valid, job.roles_ready, job.roles_pipelined) == (False, False, False)


def test_role_minimums_are_ignored_when_they_add_up_to_more_than_the_minimum() -> None:
    """# quirk: spec 01 3.2"""
    job = job_with(pod("w0", "job", on="n0", role="worker"), minimum=1, minTaskMember={"ps": 1, "worker": 1})
    assert (job.roles_valid, job.roles_ready, job.roles_pipelined) == (True, True, True)


@pytest.mark.parametrize(("cpu", "valid", "ready"), [(1, True, False), (0, True, True)])
def test_a_role_may_wait_only_with_tasks_that_ask_for_nothing(cpu: int, valid: bool, ready: bool) -> None:
    job = job_with(
        pod("w", "job", on="n0", role="worker"),
        pod("p", "job", role="ps", cpu=cpu),
        minimum=2,
        minTaskMember={"ps": 1, "worker": 1},
    )
    assert (job.roles_valid, job.roles_ready) == (valid, ready)


def test_a_promise_counts_for_roles_pipelined_only() -> None:
    cluster = (
        World().add(node("n0"), group("job", 1, minTaskMember={"ps": 1}), pod("p", "job", role="ps")).cluster
    )
    cluster.move(task_named(cluster, "p"), Status.PIPELINED, cluster.nodes["n0"])
    job = job_named(cluster, "job")
    assert (job.roles_ready, job.roles_pipelined) == (False, True)


def test_a_role_minimum_of_zero_asks_for_nothing() -> None:
    job = job_with(pod("w", "job", on="n0"), minimum=1, minTaskMember={"ps": 0})
    assert job.role_minimums == {}
    assert job.roles_ready


def test_elastic_is_what_is_held_above_the_minimum_resources() -> None:
    job = job_with(pod("a", "job", on="n0", cpu=3), minimum=1, minResources={"cpu": "2", "memory": "5Gi"})
    cpu = 0
    assert job.elastic[cpu] == 1000
    assert set(job.elastic) == {cpu, 2}


def test_gated_tasks_are_deducted_unless_only_our_own_gate_holds_them() -> None:
    own = "own/gate"
    job = job_with(
        pod("a", "job", cpu=1, gates=[own]), pod("b", "job", cpu=2, memory="1Gi", gates=["other"]), minimum=2
    )
    assert job.gated_resources(own)[0] == 2000
    assert job.without_gated({0: 3000, 1: 1}, own) == {0: 1000, 1: 0}
    assert job_with(pod("a", "job", gates=[own]), minimum=1).without_gated({0: 5}, own) == {0: 5}


def test_held_is_allocated_and_promised_together() -> None:
    cluster = World().add(node("n0"), group("job"), pod("a", "job", on="n0"), pod("b", "job", cpu=2)).cluster
    cluster.move(task_named(cluster, "b"), Status.PIPELINED, cluster.nodes["n0"])
    assert job_named(cluster, "job").held[0] == 3000
    assert job_named(cluster, "job").allocated[0] == 1000
