"""Small clusters with HyperNodes, and the results of the plugin for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.engine.placement.node_functions import Nodes, finished
from stromboli.model.job import Job
from stromboli.testing import World
from tests.manifests import hyper_node, policy

PLUGIN = "network-topology-aware"
TREE = (
    hyper_node("s0", nodes=["n0", "n1"]),
    hyper_node("s1", nodes=["n2", "n3"]),
    hyper_node("s2", nodes=["n4", "n5"]),
    hyper_node("s3", nodes=["n6", "n7"]),
    hyper_node("x0", 2, children=["s0", "s1"]),
    hyper_node("x1", 2, children=["s2", "s3"]),
)
"""Four switches of two nodes, below two spines."""
NAMES = [*(f"n{number}" for number in range(8)), "outside"]


def node_text(size: str = "cpu=4,memory=8Gi") -> str:
    """The nodes of the tree, and a node outside of it."""
    return "; ".join(f"{name} {size}" for name in NAMES)


def topology(tier: int | None = None, mode: str = "hard") -> dict[str, Any]:
    """The spec of a PodGroup that may span so many tiers."""
    asked = {"mode": mode} if tier is None else {"mode": mode, "highestTierAllowed": tier}
    return {"networkTopology": asked}


def tree_world(nodes: str = node_text(), tree: Iterable[dict[str, Any]] = TREE, **arguments: Any) -> World:
    """The tree with nothing in it; a cycle of it places nothing."""
    return World(nodes, policy=policy("enqueue", "gang", (PLUGIN, arguments))).add(*tree)


def job_of(world: World, name: str) -> Job:
    return next(job for job in world.cluster.jobs.values() if job.name == name)


def gradients(world: World, job: str, root: str = "", purpose: str = "allocate") -> list[list[str]]:
    """The names of the HyperNodes to try for a job."""
    tree = world.cluster.hyper_nodes
    domain = tree.domains[root] if root else tree.top
    groups = world.plugin(PLUGIN).hyper_node_gradients(job_of(world, job), domain, purpose)
    return [[domain.name for domain in group] for group in groups]


def hyper_node_scores(world: World, job: str, *domains: str) -> dict[str, float]:
    """The scores of HyperNodes for the one sub-group of a job."""
    (sub_job,) = job_of(world, job).sub_jobs.values()
    tree = world.cluster.hyper_nodes
    scores: dict[str, float] = world.plugin(PLUGIN).hyper_node_scores(
        sub_job, [tree.domains[name] for name in domains]
    )
    return scores


def node_scores(world: World, pod: str, *candidates: str) -> dict[str, float]:
    """The scores of nodes for a pod, normalised over these candidates (all unless given); empty if it has none."""
    task, nodes = world.task(pod), Nodes(world.cluster.columns)
    names = [node.name for node in world.cluster.columns.nodes]
    chosen = nodes.each(lambda node: not candidates or node.name in candidates, bool)
    total: dict[str, float] = {}
    for score in world.plugin(PLUGIN).node_scores(task):
        column = finished(score, task, nodes, score.score(task, nodes), chosen)
        total = dict(zip(names, column.tolist(), strict=True))
    return {name: total[name] for name in total if not candidates or name in candidates}
