"""The scores over columns equal the rule of the specification, spelt out node by node and HyperNode by HyperNode."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Node
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.testing import World
from tests.manifests import hyper_node
from tests.number_of_examples import scaled
from tests.plugins.network_topology_aware.topology_worlds import (
    hyper_node_scores,
    job_of,
    node_scores,
    topology,
    tree_world,
)

NAMES = [f"n{number}" for number in range(6)]
FADING = 0.6


@dataclass
class Case:
    """Which leaf each node is in, which spine each leaf (-1: none), tiers of both, cpus in use, pods of the gang."""

    leaf_of: list[int]
    spine_of: list[int]
    tiers: tuple[int, int]
    used: list[int]
    gang: list[int]
    candidates: list[int]
    allocated: int

    def world(self) -> World:
        tree = []
        for leaf, spine in enumerate(self.spine_of):
            members = [name for name, number in zip(NAMES, self.leaf_of, strict=True) if number == leaf]
            tree.append(hyper_node(f"s{leaf}", self.tiers[0], nodes=members))
            if spine >= 0 and not any(f"x{spine}" == made["metadata"]["name"] for made in tree):
                children = [f"s{each}" for each, other in enumerate(self.spine_of) if other == spine]
                tree.append(hyper_node(f"x{spine}", self.tiers[1], children=children))
        text = "; ".join(f"{name} cpu=8,memory=16Gi" for name in NAMES)
        world = tree_world(text, tree, **{"hypernode.binpack.normal-pod.fading": FADING, "weight": 3})
        for name, cpus in zip(NAMES, self.used, strict=True):
            if cpus:
                world.job(f"on-{name}", running_on=name, cpu=cpus, memory="1Gi")
        running = [NAMES[number] for number in self.gang]
        world.job("j", pods=len(running) + 2, running_on=running, cpu=1, group=topology(mode="soft"))
        world.job("p", pods=1, cpu=2, memory="2Gi").step()
        return world


numbers = st.integers
CASES = st.builds(
    Case,
    leaf_of=st.lists(numbers(-1, 2), min_size=6, max_size=6),
    spine_of=st.lists(numbers(-1, 1), min_size=3, max_size=3),
    tiers=st.sampled_from([(1, 2), (1, 4), (0, 1), (3, 5)]),
    used=st.lists(numbers(0, 5), min_size=6, max_size=6),
    gang=st.lists(numbers(0, 5), max_size=2),
    candidates=st.lists(numbers(0, 5), min_size=1, max_size=6, unique=True),
    allocated=numbers(0, 5),
)


def fullness(world: World, domain: Domain, request: dict[int, float]) -> float:
    columns, parts = world.cluster.columns, []
    for dim in (CPU, MEMORY):
        if request.get(dim, 0) > 0:
            used = int(columns.used[dim, domain.rows].sum()) + request[dim]
            size = int(columns.allocatable[dim, domain.rows].sum())
            if used > size:
                return 0.0
            parts.append(used / size)
    return sum(parts) / len(parts)


def packing(world: World, task: Task, node: Node) -> float:
    tree = world.cluster.hyper_nodes
    total = weights = 0.0
    for tier in range(tree.tiers[0], tree.tiers[-1] + 1):
        there = [each for each in (*tree.domains.values(), tree.top) if each.tier == tier]
        inside = [each for each in there if node.row in each.rows]
        weight = FADING ** (tier - 1)
        total += weight * (fullness(world, inside[0], task.request) if inside else 1.0)
        weights += weight
    return 300 * total / weights


def closeness(world: World, task: Task, nodes: list[Node]) -> dict[str, float]:
    tree, sub_job = world.cluster.hyper_nodes, task.sub_job
    assert sub_job is not None
    allocated = tree.domain(sub_job.allocated_hyper_node)
    assert allocated is not None
    scores, leaves = {}, {node.name: tree.leaf_of(node.row) for node in nodes}
    for name, leaf in leaves.items():
        common = None if leaf is None else tree.lowest_common(leaf, allocated)
        lowest, highest = tree.tiers[0], tree.tiers[-1]
        far = 0.0 if common is None else (highest - common.tier) / (highest - lowest)
        scores[name] = 1.0 if leaf is allocated else far
    best = [name for name, score in scores.items() if score == max(scores.values())]
    for name in best if len(best) > 1 else ():
        leaf = leaves[name]
        rows = [] if leaf is None else leaf.rows.tolist()
        own = sum(other.node is not None and other.node.row in rows for other in sub_job.tasks)
        scores[name] += own / len(sub_job.tasks)
    return {name: 300 * score for name, score in scores.items()}


@settings(max_examples=scaled(20))
@given(case=CASES)
def test_scores_are_those_of_the_rule(case: Case) -> None:
    world = case.world()
    tree, columns = world.cluster.hyper_nodes, world.cluster.columns
    alone = world.task("p-0")
    packed = {node.name: packing(world, alone, node) for node in columns.nodes}
    assert node_scores(world, "p-0") == pytest.approx(packed)

    job = job_of(world, "j")
    (sub_job,) = job.sub_jobs.values()
    task = next(task for task in sub_job.tasks if task.node is None)
    domains = [*tree.domains.values(), tree.top]
    sub_job.allocated_hyper_node = domains[case.allocated % len(domains)].name
    nodes = [columns.nodes[number] for number in sorted(case.candidates)]
    expected = closeness(world, task, nodes)
    assert node_scores(world, task.name, *expected) == pytest.approx(expected)

    for domain in tree.domains.values():
        score = 300 * fullness(world, domain, job.total) if len(domain.rows) else 0.0
        assert hyper_node_scores(world, "j", domain.name) == {domain.name: pytest.approx(score)}
