"""The cost of a cycle follows the jobs that changed, and not the number of their pods."""

from __future__ import annotations

from stromboli.testing import World
from tests.executed_steps import executed_steps
from tests.manifests import policy

STOCK = "priority gang conformance | overcommit drf predicates proportion nodeorder binpack"


def steps_after_a_gang_was_bound(pods: int) -> int:
    """The steps of the cycle after the one that bound a gang."""
    world = World(f"n1 cpu={pods}", policy=policy("enqueue, allocate, backfill", STOCK))
    world.job("train", pods=pods, cpu=1, min_resources={"cpu": f"{pods}"})
    engine, cluster = world.engine, world.cluster
    assert engine.cycle(cluster, 1.0).decisions
    return executed_steps(lambda: engine.cycle(cluster, 2.0))


def test_the_cycle_after_a_gang_was_bound_reads_none_of_its_pods() -> None:
    assert steps_after_a_gang_was_bound(pods=50) == steps_after_a_gang_was_bound(pods=5)
