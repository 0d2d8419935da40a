"""How many neighbours in the ring of a gang do not share a switch, with `ranksSideBySide` and without.

    python -m bench.ring_crossings [seeds]

A cluster in three tiers is filled at random to some part by pods of one node or less; then gangs come. Pods of a
gang are neighbours if their indices follow each other, the last and the first too. What it costs is counted as well:
the whole nodes that are free afterwards.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator

from bench.network_tree import WIDTHS, hyper_nodes, node_names, node_text, policy
from stromboli.model.job import Job
from stromboli.model.topology.tier_occupancy import TierOccupancies
from stromboli.testing import World

NODES, GANGS, USED = 512, (128, 64, 64, 32, 32, 16, 16), 0.25
GPUS = 4


def world_of(seed: int, gangs: tuple[int, ...] = GANGS, nodes: int = NODES) -> World:
    """The cluster of a seed, with its gangs pending."""
    chance = random.Random(seed)
    world = World(node_text(nodes)).add(*hyper_nodes(nodes))
    for name in node_names(nodes):
        gpus = chance.choice((2, 4, 6, 8)) if chance.random() < 2 * USED else 0
        if gpus:
            world.job(f"busy-{name}", running_on=name, cpu=4 * gpus, gpu=gpus)
    for number, size in enumerate(gangs):
        group = {"networkTopology": {"mode": "soft"}, "minResources": {"nvidia.com/gpu": str(GPUS * size)}}
        world.job(f"gang-{number}-w", pods=size, cpu=16, gpu=GPUS, group=group)
    return world


def crossings(world: World) -> Counter[int]:
    """The pairs of neighbours by the tier of the lowest HyperNode that both are in; 0: all pairs."""
    tiers: Counter[int] = Counter()
    tree = world.cluster.hyper_nodes
    for job in gangs_of(world):
        tasks = sorted(job.tasks.values(), key=lambda task: task.order)
        leaves = [tree.leaf_of(task.node.row) for task in tasks if task.node is not None]
        for left, right in zip(leaves, [*leaves[1:], leaves[0]], strict=True):
            common = tree.lowest_common(left, right)
            tiers[0] += 1
            tiers[common.tier if common is not None else tree.top.tier] += 1
    return tiers


def gangs_of(world: World) -> Iterator[Job]:
    """The gangs that are placed as a whole."""
    for job in world.cluster.jobs.values():
        if job.name.startswith("gang") and all(task.node for task in job.tasks.values()):
            yield job


def free_nodes(world: World) -> int:
    """The nodes without a pod of the scheduler."""
    return int(TierOccupancies(world.cluster).current()[0].resources["nodes"].free)


def main(seeds: int = 5) -> None:
    print("| Seed | ranksSideBySide | Gangs | Pairs | " + " | ".join(_tiers()) + " | free nodes |")
    print("|---" * (len(_tiers()) + 5) + "|")
    for seed in range(seeds):
        for on in (False, True):
            world = world_of(seed)
            world.run(policy=policy(ranksSideBySide=on))
            world.rehearsal.sync()
            tiers = crossings(world)
            beyond = [sum(tiers[tier] for tier in tiers if tier > top) for top in range(1, len(WIDTHS) + 1)]
            placed = sum(1 for _ in gangs_of(world))
            counts = [placed, tiers[0], *beyond, free_nodes(world)]
            print(f"| {seed} | {on} | " + " | ".join(map(str, counts)) + " |")


def _tiers() -> list[str]:
    return [f"cross tier {tier}" for tier in range(1, len(WIDTHS) + 1)]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
