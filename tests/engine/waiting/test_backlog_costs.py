"""A cycle costs what changed: however many jobs wait for room, one new pod costs the same."""

from __future__ import annotations

import pytest

from stromboli.model.dimensions import CPU
from stromboli.testing import World
from tests.executed_steps import executed_steps
from tests.manifests import group, pod, policy, queue
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology

PLUGINS = "priority gang | predicates nodeorder"


def steps_of_an_arrival(jobs: int, actions: str) -> int:
    """The steps of a cycle in which a pod comes that fits, while so many jobs wait for room."""
    world = World("n1 cpu=1", policy=policy(actions, PLUGINS))
    for number in range(jobs):
        world.job(f"waits{number}", pods=2, cpu=4)
    for number in range(3):
        world.step()
        world.add(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    engine, cluster = world.engine, world.cluster
    steps = executed_steps(lambda: engine.cycle(cluster, world.rehearsal.now()))
    assert cluster.tasks["Pod/default/new2-0"].node is not None
    return steps


MORE_JOBS = 100
STEPS_OF_A_QUEUE = 200
"""Whether its jobs are still within the limits of their queue, and whether there is capacity for them."""


@pytest.mark.parametrize(
    ("actions", "steps_of_a_job"),
    [
        ("enqueue, allocate, backfill", 0),
        ("allocate, preempt, backfill", 9),  # the search for victims asks each job whether it runs
    ],
)
def test_a_pod_that_comes_costs_the_same_whoever_waits(actions: str, steps_of_a_job: int) -> None:
    few, many = (steps_of_an_arrival(jobs, actions) for jobs in (20, 20 + MORE_JOBS))
    assert many < few + (steps_of_a_job + 1) * MORE_JOBS


def steps_beside_queues(queues: int, has_corrections: bool) -> int:
    """The steps of a cycle in which a pod comes that fits, while a job waits in each queue."""
    world = World("n1 cpu=1", policy=policy("enqueue, allocate", PLUGINS))
    for number in range(queues):
        world.add(queue(f"q{number}")).job(f"waits{number}", cpu=4, queue=f"q{number}")
    for number in range(3):
        world.step()
        world.add(group(f"new{number}", 1, phase="Inqueue", queue="q0"))
        world.add(pod(f"new{number}-0", f"new{number}", cpu="10m"))
        if has_corrections:
            world.cluster.cards.queue_corrections[world.cluster.queues["q1"]] = {CPU: 1}
    engine, cluster = world.engine, world.cluster
    steps = executed_steps(lambda: engine.cycle(cluster, world.rehearsal.now()))
    assert cluster.tasks["Pod/default/new2-0"].node is not None
    return steps


@pytest.mark.parametrize("has_corrections", [False, True])
def test_a_pod_that_comes_costs_little_for_each_queue_in_which_a_job_waits(has_corrections: bool) -> None:
    few, many = (steps_beside_queues(queues, has_corrections) for queues in (20, 20 + MORE_JOBS))
    assert many < few + STEPS_OF_A_QUEUE * MORE_JOBS


def steps_beside_one_numa_node(jobs: int) -> int:
    """The steps of a cycle in which a pod comes that fits, while gangs with whole CPUs wait, and n1 has NUMA nodes."""
    world = World("n1 cpu=16; n2 cpu=16", policy=policy("allocate", "gang | predicates", "numa-aware"))
    world.add(numa_topology("n1"))
    for number in range(jobs):
        world.add(group(f"waits{number}", 3, phase="Inqueue"))
        world.add(*(numa_pod(f"waits{number}-{pod}", 14, group=f"waits{number}") for pod in range(3)))
    for number in range(3):
        world.step()
        world.add(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    engine, cluster = world.engine, world.cluster
    return executed_steps(lambda: engine.cycle(cluster, world.rehearsal.now()))


def test_a_pod_that_comes_costs_the_same_whoever_waits_beside_a_node_with_numa_nodes() -> None:
    few, many = (steps_beside_one_numa_node(jobs) for jobs in (20, 20 + MORE_JOBS))
    assert many < few + 2 * MORE_JOBS


def steps_beside_running_pods(pods: int) -> int:
    """The steps of a cycle in which a pod comes that fits, while a job waits and may evict none of the running pods."""
    world = World(f"n1 cpu={10 * pods + 1}", policy=policy("allocate, preempt, backfill", PLUGINS))
    for number in range(10):
        world.job(f"runs{number}", pods=pods, cpu=1, running_on="n1")
    world.job("waits", pods=2, cpu=4)
    for number in range(3):
        world.step()
        world.add(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    engine, cluster = world.engine, world.cluster
    return executed_steps(lambda: engine.cycle(cluster, world.rehearsal.now()))


def test_a_pod_that_comes_lists_no_running_pods_if_none_may_be_evicted() -> None:
    few, many = (steps_beside_running_pods(pods) for pods in (2, 10))
    assert many < few + 40


def steps_beside_jobs_of_the_same_queue(jobs: int) -> int:
    """The steps of a cycle in which a pod comes that fits, while a job waits whose queue has all running jobs."""
    plugins = "priority gang conformance | drf predicates proportion nodeorder"
    world = World(f"n1 cpu={jobs + 1}", policy=policy("allocate, reclaim, backfill", plugins))
    for number in range(jobs):
        world.job(f"runs{number}", cpu=1, running_on="n1")
    world.job("waits", pods=2, cpu=4)
    for number in range(3):
        world.step()
        world.add(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    engine, cluster = world.engine, world.cluster
    return executed_steps(lambda: engine.cycle(cluster, world.rehearsal.now()))


def test_a_pod_that_comes_lists_no_running_jobs_if_no_queue_but_its_own_has_any() -> None:
    assert steps_beside_jobs_of_the_same_queue(60) == steps_beside_jobs_of_the_same_queue(10)
