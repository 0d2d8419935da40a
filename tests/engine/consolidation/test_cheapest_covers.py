"""Sets of units by cost: the first is the cheapest of all, and none has a superfluous unit."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.consolidation.consolidation_search import MAX_SETS, covers
from stromboli.engine.consolidation.movable_tasks import Cost, MoveUnit
from stromboli.model.node_columns import Node
from stromboli.testing import World
from tests.properties.strategies import examples

CPU, MEMORY = 0, 1


def units_of(seed: int, count: int) -> tuple[Node, list[MoveUnit]]:
    """Units of one pod or two on a node, of random sizes and ages."""
    choose = random.Random(seed)
    world = World(nodes="n1 cpu=99; n2 cpu=99")
    for number in range(count):
        whole = choose.random() < 0.3
        nodes = "n1 n2" if whole else "n1"
        cpu, memory = choose.randint(1, 3), choose.choice(["1Gi", "2Gi"])
        world.job(f"j{number}", pods=1 + whole, cpu=cpu, memory=memory, running_on=nodes)
    units = []
    for job in world.cluster.jobs.values():
        tasks = tuple(job.tasks.values())
        cost = Cost(len(tasks), choose.choice([0.0, 1.0, 2.5]))
        units.append(MoveUnit(job, tasks, len(tasks) > 1, cost))
    return world.cluster.nodes["n1"], units


def freed(units: tuple[MoveUnit, ...], node: Node, dim: int) -> float:
    return sum(task.request.get(dim, 0) for unit in units for task in unit.tasks if task.node is node)


def cheapest(lack: dict[int, float], units: list[MoveUnit], node: Node) -> Cost | None:
    """By trying every set."""
    best: Cost | None = None
    for size in range(1, len(units) + 1):
        for chosen in combinations(units, size):
            if all(freed(chosen, node, dim) >= amount for dim, amount in lack.items()):
                cost = Cost(
                    sum(unit.cost.pods for unit in chosen), sum(unit.cost.lost_work for unit in chosen)
                )
                best = cost if best is None else min(best, cost)
    return best


@examples(25)
@given(st.integers(0, 2**32), st.integers(0, 7), st.integers(1, 9), st.integers(0, 5))
def test_the_first_set_is_the_cheapest_and_costs_never_fall(
    seed: int, count: int, cpu: int, memory: int
) -> None:
    node, units = units_of(seed, count)
    lack = {CPU: cpu * 1000.0} | ({MEMORY: memory * 2.0**30 * 1000} if memory else {})
    sets = list(covers(lack, units, node))
    assert (sets[0][0] if sets else None) == cheapest(lack, units, node)
    assert [cost for cost, _ in sets] == sorted(cost for cost, _ in sets)
    for _, cover in sets:
        assert all(freed(cover, node, dim) >= amount for dim, amount in lack.items())


def test_of_units_that_free_the_same_the_cheapest_are_taken_and_equal_sets_are_not_tried_again() -> None:
    world = World(nodes="n1 cpu=99")
    for name in ("a", "b", "c", "d"):
        world.job(name, cpu=1, running_on="n1")
    jobs = list(world.cluster.jobs.values())
    units = [
        MoveUnit(job, tuple(job.tasks.values()), False, Cost(1, 9.0 - place))
        for place, job in enumerate(jobs)
    ]
    ((cost, cover),) = covers({CPU: 2000.0}, units, world.cluster.nodes["n1"])
    assert [unit.job.name for unit in cover] == ["d", "c"]
    assert cost == Cost(2, 13.0)


def test_where_nothing_is_lacking_each_kind_of_unit_is_tried_by_itself() -> None:
    node, units = units_of(1, 3)
    assert {len(cover) for _, cover in covers({}, units, node)} == {1}


def test_the_number_of_sets_is_bounded() -> None:
    world = World(nodes="n1 cpu=999")
    for number in range(40):
        world.job(f"j{number}", cpu=1 + number / 1000, running_on="n1")
    jobs = list(world.cluster.jobs.values())
    units = [MoveUnit(job, tuple(job.tasks.values()), False, Cost(1, 0.0)) for job in jobs]
    assert len(list(covers({CPU: 30_000.0}, units, world.cluster.nodes["n1"]))) <= MAX_SETS
