"""A queue that starves costs what changed since the last one: not more for each job that runs elsewhere."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.executed_steps import executed_steps
from tests.manifests import policy, queue

PLUGINS = "priority gang | drf predicates proportion nodeorder"


def steps_of_reclaiming(takers: int, jobs: int, fewest_victims: bool) -> int:
    """The steps of a cycle in which so many queues reclaim a pod each from one queue with so many jobs."""
    world = World(
        "; ".join(f"n{number} cpu=10" for number in range(jobs // 10)),
        policy=policy("enqueue, allocate, reclaim", PLUGINS, reclaim={"fewestVictims": fewest_victims}),
    )
    world.add(queue("holder"))
    for number in range(jobs):
        world.job(f"runs{number}", queue="holder", cpu=1, minimum=0, running_on=f"n{number // 10}")
    for number in range(takers):
        world.add(queue(f"taker{number}")).job(f"starves{number}", queue=f"taker{number}", cpu=1)
    engine, cluster = world.engine, world.cluster
    decisions: list[object] = []
    steps = executed_steps(lambda: decisions.extend(engine.cycle(cluster, world.rehearsal.now()).decisions))
    assert sum(type(decision).__name__ == "Evict" for decision in decisions) == takers
    return steps


@pytest.mark.parametrize("fewest_victims", [False, True])
def test_a_starving_queue_costs_the_same_however_many_jobs_the_queue_has_that_it_takes_from(
    fewest_victims: bool,
) -> None:
    def of_more_takers(jobs: int) -> int:
        few, many = (steps_of_reclaiming(takers, jobs, fewest_victims) for takers in (4, 12))
        return many - few

    assert of_more_takers(200) < 1.3 * of_more_takers(50)
