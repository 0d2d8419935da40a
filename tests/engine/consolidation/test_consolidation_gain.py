"""The gain of consolidate: on a busy cluster that small jobs keep fragmented, gangs that need whole nodes start.

The numbers are in docs/eviction.md.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.consolidation_worlds import ACTIONS, MovingWorld, moves

NODES, SIZE, CYCLES, LOAD = 8, 8, 60, 0.85
SEEDS = (0, 1)


class Outcome(NamedTuple):
    """What became of the large jobs."""

    placed: int
    asked: int
    waited: int
    """Cycles, for all of them together; to the end for those that were not placed."""
    moved: int


def run(actions: str, seed: int) -> Outcome:
    """Small jobs come and go at a load of 85 %; every twelve cycles comes a job that needs a whole node."""
    choose = random.Random(seed)
    world = MovingWorld(
        "; ".join(f"n{number} cpu={SIZE}" for number in range(NODES)), actions=actions, moveInterval="20s"
    )
    came: dict[str, int] = {}
    waited: dict[str, int] = {}
    ends: dict[str, int] = {}
    moved = 0
    for cycle in range(CYCLES):
        for name in [name for name, end in ends.items() if end <= cycle]:
            _end(world, name)
            del ends[name]
        used = float(world.cluster.columns.used[0].sum()) / 1000 / NODES / SIZE
        while used < LOAD:
            name, cpu = f"small{len(came)}", choose.choice([1, 1, 2, 2, 3])
            world.gang(name, cpu=cpu)
            came[name] = cycle
            used += cpu / NODES / SIZE
        if cycle % 12 == 6:
            came[f"large{cycle}"] = cycle
            world.gang(f"large{cycle}", cpu=SIZE, priority=5)
        result = world.step()
        moved += len(moves(result))
        for key in result.bound_per_job:
            name = key.removeprefix("default/")
            waited.setdefault(name, cycle - came[name])
            ends.setdefault(name, cycle + (choose.randint(10, 40) if name.startswith("small") else 8))
    large = [name for name in came if name.startswith("large")]
    waits = [waited.get(name, CYCLES - came[name]) for name in large]
    return Outcome(sum(name in waited for name in large), len(large), sum(waits), moved)


def _end(world: MovingWorld, job: str) -> None:
    world.rehearsal.sync()
    for task in [task for task in world.cluster.tasks.values() if task.job and task.job.name == job]:
        world.rehearsal.vanish(task)


def test_jobs_that_need_a_whole_node_start_at_once_instead_of_waiting_for_luck() -> None:
    without = [run("enqueue, allocate, backfill", seed) for seed in SEEDS]
    with_action = [run(ACTIONS, seed) for seed in SEEDS]
    assert sum(outcome.placed for outcome in without) <= 5
    assert all(outcome.placed == outcome.asked for outcome in with_action)
    assert 10 * sum(outcome.waited for outcome in with_action) <= sum(outcome.waited for outcome in without)
    assert sum(outcome.moved for outcome in with_action) <= 20
