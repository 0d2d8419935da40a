"""The policies of the paper on fragmentation gradient descent, through the scheduler, against its letter."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.simulator.runs.gpu_policies import fragmentation_gauge, score_policy, typical_task
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.runs.virtual_world import VirtualWorld
from stromboli.simulator.workloads.openb_arrivals import SeededSequence, arrivals
from stromboli.simulator.workloads.openb_lists import OpenbNode, OpenbPod
from stromboli.simulator.workloads.openb_workload import OpenbLists, arriving_workload, read_openb
from tests.docs.pages import ROOT
from tests.plugins.deviceshare.card_worlds import shares_of
from tests.plugins.gpu_packing.textbook_packing import Packing, Placed

LISTS = ROOT / "examples" / "simulator" / "openb"
SCORES = ("fgd", "bestfit", "dotprod", "packing", "clustering")


@cache
def catalog() -> Catalog:
    return load_catalog()


def excerpt() -> OpenbLists:
    """Nodes and pods of the published lists."""
    return read_openb(str(LISTS / "nodes.csv"), str(LISTS / "pods.csv"))


def lists_with_models(nodes: int = 24, pods: int = 160) -> OpenbLists:
    """Nodes of three models and without GPUs, and pods of which half ask for models: for theirs, or for no GPU."""
    random = Random(5)
    sizes = {"A10": (32_000, 1), "A100": (150_000, 8), "T4": (64_001, 3), "": (40_000, 0)}
    models = [random.choice(list(sizes)) for _ in range(nodes)]
    return OpenbLists(
        "models",
        tuple(
            OpenbNode(f"node-{i:03}", sizes[model][0], 262_144, sizes[model][1], model)
            for i, model in enumerate(models)
        ),
        tuple(_pod(random, f"pod-{i:03}") for i in range(pods)),
    )


def _pod(random: Random, name: str) -> OpenbPod:
    gpus, milli = random.choice(
        [(0, 0), (1, 1000), (1, 1000), (2, 1000), (3, 1000), (1, 455), (1, 545), (1, 1)]
    )
    listed = [(), (), ("A10",), ("T4", "A100"), ("A100", "T4"), ("T4", "A100", "A100"), ("H100",)]
    models = random.choice(listed)
    return OpenbPod(name, random.choice([1, 4000, 7777, 12_000]), 4096, gpus, milli, models)


def placements(
    lists: OpenbLists, score: str, load: float, seed: int, published: bool = True
) -> tuple[list[Placed], float]:
    """Where the scheduler puts the pods of a workload, in the order of their arrival; and the fragmentation."""
    tasks = Counter(typical_task(pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models) for pod in lists.pods)
    workload = arriving_workload(lists, load, SeededSequence(seed))
    gauge = fragmentation_gauge(tasks)
    settings = SimulationSettings(drop_misfits=True, fragmentation=gauge)
    world = VirtualWorld(workload, workload.nodes, settings)
    loop = SimulationLoop(world, score_policy(score, tasks, catalog(), seed, published), catalog(), settings)
    while loop.step():
        pass
    assert not world.record.failed
    by_job = {task.job.name: task for task in world.cluster.tasks.values() if task.job is not None}
    placed = []
    for job in workload.jobs:
        task = by_job.get(job.name)
        if task is None or task.node is None:
            placed.append(Placed())
            continue
        cards = shares_of(task)
        shared = len(cards) == 1 and int(job.requests["volcano.sh/vgpu-memory"]) < 1000
        placed.append(Placed(task.node.name, int(cards[0].removeprefix("gpu-")) if shared else -1))
    return placed, gauge(world.cluster)


def textbook(lists: OpenbLists, score: str, load: float, seed: int) -> tuple[list[Placed], float]:
    """Where they go by the letter of the paper."""
    sequence = SeededSequence(seed)
    pods = arrivals(lists.pods, lists.gpu_capacity, load, sequence)
    nodes = sorted(lists.nodes, key=lambda node: node.name)
    ranked = dict(zip(sequence.ranks(len(nodes)), nodes, strict=True))
    packing = Packing([ranked[rank] for rank in range(len(nodes))], lists.pods, score)
    return [packing.place(pod) for pod in pods], packing.fragmented()


@pytest.mark.parametrize("score", SCORES)
def test_pods_of_the_published_lists_go_where_the_paper_puts_them(score: str) -> None:
    placed, fragmented = placements(excerpt(), score, 1.3, 42)
    expected, lost = textbook(excerpt(), score, 1.3, 42)
    assert placed == expected
    assert fragmented == pytest.approx(lost, abs=1e-12)
    assert len({place.node for place in placed}) > 10


@pytest.mark.parametrize("score", SCORES)
def test_pods_that_ask_for_models_go_where_the_paper_puts_them(score: str) -> None:
    lists = lists_with_models()
    placed, fragmented = placements(lists, score, 1.2, 7)
    expected, lost = textbook(lists, score, 1.2, 7)
    assert placed == expected
    assert fragmented == pytest.approx(lost, abs=1e-12)
    assert Placed() in placed


def test_a_list_without_models_is_one_that_allows_all() -> None:
    lists = lists_with_models(12, 60)
    anywhere = replace(lists, pods=tuple(replace(pod, models=()) for pod in lists.pods))
    assert placements(anywhere, "fgd", 1.0, 3) == textbook(anywhere, "fgd", 1.0, 3)


def test_chance_takes_other_nodes_with_another_seed_and_the_same_with_the_same() -> None:
    lists = replace(lists_with_models(12, 60))
    first, again, other = (placements(lists, "random", 0.5, seed)[0] for seed in (1, 1, 2))
    assert first == again != other


def test_the_score_for_production_keeps_no_fewer_pods_than_the_published_one() -> None:
    asked = [
        pod.gpu_demand for pod in arrivals(excerpt().pods, excerpt().gpu_capacity, 1.3, SeededSequence(42))
    ]

    def allocated(published: bool) -> int:
        placed, _ = placements(excerpt(), "fgd", 1.3, 42, published)
        return sum(demand for demand, place in zip(asked, placed, strict=True) if place.node)

    assert allocated(False) >= 0.98 * allocated(True)


def test_a_list_of_more_kinds_of_pods_than_a_policy_can_hold_is_scored_by_the_most_frequent() -> None:
    usual, rare = typical_task(4000, 1000, 1), {typical_task(cpu, 1000, 1): 1 for cpu in range(3000)}
    arguments = score_policy("fgd", Counter({usual: 1500} | rare), catalog()).tiers[0][-1].arguments
    assert arguments.tasks[0] == {"cpu": "4000m", "count": 1500, "gpus": 1, "gpuMilli": 1000}
    assert 1 < len(arguments.tasks) < 3000
    assert arguments.covered == 1, "all that are listed"
