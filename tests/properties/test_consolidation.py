"""What holds of every consolidation: whoever is moved has a place and comes to it, whole gangs and tiers stay whole,
the gang for whose sake it happened starts, and no number is lost on the way.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.engine.decisions import Evict
from stromboli.model.status import ALLOCATED_CLASS, Status
from tests.consolidation_worlds import MovingWorld, moves
from tests.manifests import hyper_node
from tests.properties.rebuild import kept_sums, rebuilt_sums
from tests.properties.strategies import examples

MAX_MOVES = 6
LEAF = 2
"""Nodes per leaf."""


class Fragmented:
    """A random small cluster with running jobs on it, and gangs that wait."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        leaves, self.size = self.random.randint(1, 3), self.random.choice([4, 8])
        self.free = {f"n{number}": self.size for number in range(leaves * LEAF)}
        text = "; ".join(f"{name} cpu={self.size}" for name in self.free)
        tree = [hyper_node(f"s{leaf}", nodes=self.leaf(leaf)) for leaf in range(leaves)]
        self.world = MovingWorld(text, tree=tree, maxMoves=MAX_MOVES)
        self.hard: set[str] = set()
        for number in range(self.random.randint(3, 3 * leaves * LEAF)):
            self._running(f"run{number}", leaves)
        for number in range(self.random.randint(1, 2)):
            self._waiting(f"new{number}")

    def leaf(self, number: int) -> list[str]:
        return [f"n{number * LEAF + place}" for place in range(LEAF)]

    def _running(self, name: str, leaves: int) -> None:
        choose = self.random
        cpu, pods, topology = choose.randint(1, 3), choose.randint(1, 3), choose.choice([None, None, 1])
        inside = self.leaf(choose.randrange(leaves)) if topology else list(self.free)
        nodes: list[str] = []
        for _ in range(pods):
            roomy = [node for node in inside if self.free[node] >= cpu]
            if roomy:
                nodes.append(choose.choice(roomy))
                self.free[nodes[-1]] -= cpu
        if nodes:
            if topology:
                self.hard.add(name)
            said = choose.choice([{}, {}, {}, {names.MOVABLE: "true"}, {names.MOVABLE: "false"}])
            minimum, priority = choose.randint(0, len(nodes)), choose.choice([0, 0, 0, 9])
            self.world.gang(
                name,
                " ".join(nodes),
                minimum=minimum,
                topology=topology,
                annotations=said,
                priority=priority,
                owned=choose.random() < 0.9,
                cpu=cpu,
            )

    def _waiting(self, name: str) -> None:
        """A gang that the nodes have room for in sum, but more likely than not on no node."""
        topology, largest = self.random.choice([None, 1]), max(self.free.values())
        cpu = self.random.randint(min(largest + 1, self.size), self.size)
        pods = self.random.randint(1, max(1, min(3, sum(self.free.values()) // cpu)))
        if topology:
            self.hard.add(name)
        self.world.gang(name, pods=pods, topology=topology, cpu=cpu, priority=5)


def check_moves(fragmented: Fragmented, before: dict[str, int], evictions: list[Evict]) -> None:
    cluster = fragmented.world.cluster
    for eviction in evictions:
        assert eviction.destination in fragmented.free
        job = next(job for job in cluster.jobs.values() if job.key == eviction.job)
        assert job.priority <= 5
        assert job.annotations.get(names.MOVABLE) != "false"
    counts = Counter(eviction.job for eviction in evictions)
    for job in cluster.jobs.values():
        lost, had = counts[job.key], before.get(job.key, 0)
        assert lost in (0, had) or had - lost >= job.minimum, "a gang stays whole or moves whole"
    for count in Counter(eviction.beneficiary for eviction in evictions).values():
        assert count <= MAX_MOVES


def running(fragmented: Fragmented) -> dict[str, int]:
    jobs = fragmented.world.cluster.jobs.values()
    return {
        job.key: sum(count for status, count in enumerate(job.counts) if ALLOCATED_CLASS[status])
        for job in jobs
    }


def check_tiers(fragmented: Fragmented) -> None:
    for name in fragmented.hard:
        nodes = {node for node in fragmented.world.where(name).values() if node}
        assert len({int(node[1:]) // LEAF for node in nodes}) <= 1, "a hard gang is in one HyperNode"


def check_numbers(fragmented: Fragmented) -> None:
    cluster = fragmented.world.cluster
    assert kept_sums(cluster) == rebuilt_sums(cluster)
    assert (cluster.columns.idle >= 0).all()
    assert (cluster.columns.future_idle >= 0).all()


@examples(15)
@given(st.integers(0, 2**32))
def test_every_moved_pod_gets_its_place_and_the_gang_starts(seed: int) -> None:
    fragmented = Fragmented(seed)
    world = fragmented.world
    awaited: set[str] = set()
    for _ in range(3):
        before = running(fragmented)
        result = world.step()
        assert not result.lost
        assert not result.failures
        evictions = moves(result)
        check_moves(fragmented, before, evictions)
        check_numbers(fragmented)
        check_tiers(fragmented)
        awaited |= {eviction.beneficiary for eviction in evictions}
        awaited |= {eviction.key for eviction in evictions}
    for _ in range(3):
        world.step()
        check_numbers(fragmented)
    check_tiers(fragmented)
    bound = {task.key for task in world.cluster.tasks.values() if task.status is Status.RUNNING}
    started = {job.key for job in world.cluster.jobs.values() if job.ready_count >= job.minimum}
    assert awaited <= bound | started
    assert not world.cluster.reservations


# -- the cheapest


def packs(sizes: list[int], free: dict[str, int]) -> bool:
    """Whether things of these sizes fit, by trying every way."""
    if not sizes:
        return True
    return any(
        packs(sizes[1:], {**free, node: room - sizes[0]}) for node, room in free.items() if room >= sizes[0]
    )


def fewest_moves(pods: dict[str, list[int]], free: dict[str, int], need: int) -> int | None:
    """The fewest pods whose moves make room for one that needs so much on one node, by trying every set."""
    counts = []
    for node, sizes in pods.items():
        elsewhere = {other: room for other, room in free.items() if other != node}
        for count in range(len(sizes) + 1):
            for chosen in combinations(sizes, count):
                if free[node] + sum(chosen) >= need and packs(list(chosen), elsewhere):
                    counts.append(count)
    return min(counts, default=None)


@examples(12)
@given(st.integers(0, 2**32))
def test_no_fewer_moves_would_do(seed: int) -> None:
    choose = random.Random(seed)
    size, names_of_nodes = 6, [f"n{number}" for number in range(choose.randint(2, 4))]
    free, pods = dict.fromkeys(names_of_nodes, size), {node: [] for node in names_of_nodes}
    world = MovingWorld("; ".join(f"{node} cpu={size}" for node in free), maxMoves=20)
    for number in range(choose.randint(2, 10)):
        cpu, node = choose.choice([1, 1, 2, 3]), choose.choice(names_of_nodes)
        if free[node] >= cpu:
            free[node] -= cpu
            pods[node].append(cpu)
            world.gang(f"run{number}", node, cpu=cpu)
    need = choose.randint(2, size)
    fewest = fewest_moves(pods, free, need)
    result = world.gang("big", cpu=need).step()
    count = len(moves(result))
    if fewest is None:
        assert (count, result.binds) == (0, {})
    elif count:
        assert count == fewest
    else:  # room is sought for one pod after the other, so a tight puzzle may be missed; nobody is hurt by it
        assert (fewest == 0) is bool(result.binds)
