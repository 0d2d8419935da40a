"""After a cycle with one change, metrics cost the same however many jobs and queues there are."""

from __future__ import annotations

import pytest

from stromboli.engine.cycle import Outcome
from stromboli.scheduler.queue_metrics import Backlog, PendingJob
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.testing import World
from tests.executed_steps import executed_steps
from tests.manifests import group, pod, policy, queue

POLICY = policy("allocate, backfill", "priority gang | predicates")


def steps_of_an_arrival(jobs: int, queues: int) -> tuple[int, int]:
    """The steps of a cycle in which a pod comes that fits, and of its metrics."""
    world, metrics = World("n1 cpu=1", policy=POLICY), SchedulerMetrics(lambda: 0.0)
    world.add(*(queue(f"q{number}") for number in range(queues)))
    for number in range(jobs):
        world.job(f"waits{number}", pods=2, cpu=4)
    for number in range(3):
        metrics.cycle(world.step().outcome)
        world.add(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    outcomes: list[Outcome] = []
    engine, cluster = world.engine, world.cluster
    of_cycle = executed_steps(lambda: outcomes.append(engine.cycle(cluster, world.rehearsal.now())))
    (outcome,) = outcomes
    # how long anything took would decide how many buckets of a histogram are compared
    outcome.seconds = dict.fromkeys(outcome.seconds, 0.0)
    outcome.plugins = dict.fromkeys(outcome.plugins, 0.0)
    outcome.filtering = [0.0] * len(outcome.filtering)
    outcome.scoring = [0.0] * len(outcome.scoring)
    of_metrics = executed_steps(lambda: metrics.cycle(outcome))
    assert cluster.tasks["Pod/default/new2-0"].node is not None
    return of_cycle, of_metrics


@pytest.mark.parametrize(("jobs", "queues"), [(120, 5), (20, 105)])
def test_a_pod_that_comes_costs_the_same(jobs: int, queues: int) -> None:
    few, many = steps_of_an_arrival(20, 5), steps_of_an_arrival(jobs, queues)
    assert many[0] < few[0] + 100
    assert many[1] < few[1] + 100


def test_what_is_remembered_of_a_backlog_is_in_proportion_to_it() -> None:
    backlog = Backlog()
    oldest = PendingJob("q", 1, 0.0, {0: 1000})
    backlog.count(oldest, 1)
    for created in range(1, 1000):
        job = PendingJob("q", 2, float(created), {0: 500})
        backlog.count(job, 1)
        backlog.count(job, -1)
    assert (backlog.jobs, backlog.tasks, backlog.inqueue, backlog.oldest()) == (1, 1, {0: 1000}, 0.0)
    assert len(backlog._moments) < 100
    backlog.count(oldest, -1)
    assert backlog.oldest() is None
