"""The arithmetic of gangs: when a job has enough, and what the minimums of its roles add to that (spec 01 3.2)."""

import pytest

from stromboli.api.types.meta import Object
from stromboli.model.job import Job
from stromboli.model.status import Status
from tests.building import cluster_of, group, idle_pod, job_of, node, pod, queue, running, task_of


def job_with(*pods: Object, minimum: int, **more: object) -> Job:
    return job_of(cluster_of(queue(), node("n0"), group("job", minimum, **more), *pods), "job")


def test_running_and_succeeded_tasks_are_ready_failed_ones_are_not() -> None:
    done = [
        pod(f"p-{phase}", "job", phase=phase, node="n0")
        for phase in ("Running", "Succeeded", "Failed", "Unknown")
    ]
    job = job_with(*done, pod("bound", "job", node="n0"), minimum=4)
    assert (job.ready_count, job.allocated_count, job.valid_count) == (3, 2, 3)
    assert not job.enough_ready


def test_pending_tasks_that_ask_for_nothing_count_as_ready() -> None:
    job = job_with(running("a", "n0", "job"), idle_pod("b", "job"), pod("c", "job"), minimum=2)
    assert job.pending_best_effort == 1
    assert job.enough_ready
    assert job.starving


def test_pipelined_tasks_make_a_job_pipelined_and_not_starving() -> None:
    cluster = cluster_of(queue(), node("n0"), group("job", 2), pod("a", "job"), running("b", "n0", "job"))
    job = job_of(cluster, "job")
    cluster.move(task_of(cluster, "a"), Status.PIPELINED, cluster.nodes["n0"])
    assert (job.waiting_count, job.enough_ready, job.enough_pipelined, job.starving) == (
        1,
        False,
        True,
        False,
    )


def test_role_minimums_hold_when_they_add_up_to_no_more_than_the_minimum() -> None:
    roles = {"ps": 1, "worker": 1}
    job = job_with(
        running("w0", "n0", "job", role="worker"),
        running("w1", "n0", "job", role="worker"),
        minimum=2,
        roles=roles,
    )
    assert job.enough_ready
    assert (job.roles_valid, job.roles_ready, job.roles_pipelined) == (False, False, False)


def test_role_minimums_are_ignored_when_they_add_up_to_more_than_the_minimum() -> None:
    """# quirk: spec 01 3.2"""
    job = job_with(running("w0", "n0", "job", role="worker"), minimum=1, roles={"ps": 1, "worker": 1})
    assert (job.roles_valid, job.roles_ready, job.roles_pipelined) == (True, True, True)


@pytest.mark.parametrize(("waiting", "valid", "ready"), [(pod, True, False), (idle_pod, True, True)])
def test_a_role_may_wait_only_with_tasks_that_ask_for_nothing(
    waiting: object, valid: bool, ready: bool
) -> None:
    job = job_with(
        running("w", "n0", "job", role="worker"),
        waiting("p", "job", role="ps"),
        minimum=2,
        roles={"ps": 1, "worker": 1},
    )
    assert (job.roles_valid, job.roles_ready) == (valid, ready)


def test_a_promise_counts_for_roles_pipelined_only() -> None:
    cluster = cluster_of(queue(), node("n0"), group("job", 1, roles={"ps": 1}), pod("p", "job", role="ps"))
    cluster.move(task_of(cluster, "p"), Status.PIPELINED, cluster.nodes["n0"])
    job = job_of(cluster, "job")
    assert (job.roles_ready, job.roles_pipelined) == (False, True)


def test_a_role_minimum_of_zero_asks_for_nothing() -> None:
    job = job_with(running("w", "n0", "job"), minimum=1, roles={"ps": 0})
    assert job.role_minimums == {}
    assert job.roles_ready


def test_elastic_is_what_is_held_above_the_minimum_resources() -> None:
    job = job_with(running("a", "n0", "job", cpu=3), minimum=1, resources={"cpu": "2", "memory": "5Gi"})
    cpu = 0
    assert job.elastic[cpu] == 1000
    assert set(job.elastic) == {cpu, 2}


def test_gated_tasks_are_deducted_unless_only_our_own_gate_holds_them() -> None:
    own = "own/gate"
    job = job_with(pod("a", "job", cpu=1, gates=[own]), pod("b", "job", cpu=2, gates=["other"]), minimum=2)
    assert job.gated_resources(own)[0] == 2000
    assert job.without_gated({0: 3000, 1: 1}, own) == {0: 1000, 1: 0}
    assert job_with(pod("a", "job", gates=[own]), minimum=1).without_gated({0: 5}, own) == {0: 5}


def test_held_is_allocated_and_promised_together() -> None:
    cluster = cluster_of(queue(), node("n0"), group("job"), running("a", "n0", "job"), pod("b", "job", cpu=2))
    cluster.move(task_of(cluster, "b"), Status.PIPELINED, cluster.nodes["n0"])
    assert job_of(cluster, "job").held[0] == 3000
    assert job_of(cluster, "job").allocated[0] == 1000
