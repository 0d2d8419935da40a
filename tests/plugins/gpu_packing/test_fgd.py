"""`fgd` on clusters as they are: whole GPUs, shared cards, gangs, other scores beside it."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.node_columns import Node
from stromboli.model.task import Task
from stromboli.policy.policy import PolicyError, load_policy
from stromboli.testing import World
from tests.manifests import policy
from tests.plugins.deviceshare.card_worlds import card, card_pod, held, shares_of, vgpu, vgpu_node, world_of

SHARING = ("deviceshare", {"deviceshare.VGPUEnable": True})


def fgd(*tasks: dict[str, Any], plugins: str = "gang", **arguments: Any) -> str:
    """A policy with `fgd` for these typical tasks."""
    given = {f"fgd.{name}": value for name, value in arguments.items()}
    return policy("allocate", plugins, SHARING, ("fgd", {"fgd.tasks": list(tasks), **given}))


WHOLE = {"cpu": 1, "gpus": 1}
PAIR = {"cpu": 1, "gpus": 2}
HALF = {"cpu": 1, "gpus": 1, "gpuMilli": 500}


def placed(world: World) -> dict[str, str]:
    """The node of each pod after a cycle."""
    world.step()
    return {task.name: task.node.name for task in world.cluster.tasks.values() if task.node is not None}


def test_a_part_of_a_gpu_goes_where_no_whole_one_is_broken() -> None:
    world = world_of(
        fgd(WHOLE),
        vgpu_node("empty"),
        vgpu_node("used"),
        card_pod("there", vgpu(3000), on="used", annotations=held("GPU-used-1,NVIDIA,3000,0:")),
        card_pod("half", vgpu(4000)),
    )
    assert placed(world)["half"] == "used"
    (task,) = [task for task in world.cluster.tasks.values() if task.name == "half"]
    assert shares_of(task) == ["GPU-used-1"]


def test_whole_gpus_of_nodes_without_registered_cards_are_packed_as_well() -> None:
    world = World(
        "pair cpu=8,nvidia.com/gpu=2; three cpu=8,nvidia.com/gpu=3", policy=fgd(PAIR, plugins="gang")
    )
    world.job("single", cpu=1, gpu=1)
    assert placed(world) == {"single-0": "three"}


def test_nodes_without_gpus_take_pods_without_gpus_when_cpus_beside_gpus_are_scarce() -> None:
    world = World("gpus cpu=2,nvidia.com/gpu=2; plain cpu=2", policy=fgd({"cpu": 2, "gpus": 2}))
    world.job("web", cpu=1)
    assert placed(world) == {"web-0": "plain"}


def test_a_gang_is_placed_all_or_nothing_task_after_task() -> None:
    world = World("a cpu=8,nvidia.com/gpu=4; b cpu=8,nvidia.com/gpu=2", policy=fgd({"cpu": 1, "gpus": 4}))
    world.job("gang", pods=2, cpu=1, gpu=1)
    world.job("large", pods=2, cpu=1, gpu=4)
    assert placed(world) == {"gang-0": "b", "gang-1": "b"}


def test_another_score_beside_it_decides_by_its_weight() -> None:
    nodes = "a cpu=8,memory=8Gi,nvidia.com/gpu=2; b cpu=80,memory=80Gi,nvidia.com/gpu=3"
    beside = ("binpack", {"binpack.weight": 100})
    texts = [fgd(PAIR), policy("allocate", "gang", beside, ("fgd", {"fgd.tasks": [PAIR]}))]
    chosen = []
    for text in texts:
        world = World(nodes, policy=text)
        world.job("single", cpu=1, memory="1Gi", gpu=1)
        chosen.append(placed(world)["single-0"])
    assert chosen == ["b", "a"]


def test_without_a_list_what_jobs_run_and_have_pending_is_typical() -> None:
    world = World("pair cpu=16,nvidia.com/gpu=2; three cpu=16,nvidia.com/gpu=3", policy=fgd())
    world.job("pairs", pods=20, minimum=20, cpu=1, gpu=2)
    world.job("single", cpu=1, gpu=1, priority=10)
    world.step()
    typical = world.plugin("fgd")._typical
    assert [(task.cpu, task.share, task.gpus) for task, _ in typical] == [(1000, 1000, 2)]
    assert {task.name: task.node.name for task in world.cluster.tasks.values() if task.node} == {
        "single-0": "three"
    }


def test_tasks_are_counted_again_after_a_while_or_when_many_came() -> None:
    world = World("a cpu=64,nvidia.com/gpu=8", policy=fgd())
    world.job("first", pods=10, cpu=1, gpu=1)
    world.step()
    world.job("few", cpu=3, gpu=1)
    world.step()
    assert len(world.plugin("fgd")._typical) == 1
    world.job("many", pods=9, cpu=2, gpu=1)
    world.step()
    assert len(world.plugin("fgd")._typical) == 2
    world.job("one", cpu=4, gpu=1)
    world.job("two", cpu=5, gpu=1)
    world.sleep(3600).step()
    assert len(world.plugin("fgd")._typical) == 4


def test_requests_by_memory_count_as_shares_of_the_cards_that_are_there() -> None:
    world = world_of(
        fgd(HALF),
        vgpu_node("small", card("s0", 8000), card("s1", 8000)),
        vgpu_node("large", card("l0", 16000), card("l1", 16000)),
        card_pod("p", vgpu(8000)),
    )
    assert placed(world)["p"] == "small"


class LastCard(Plugin):
    """Takes the last card first, whatever else is said."""

    name = "last-card"

    def card_order(self, task: Task, node: Node, cards: NodeCards) -> list[int]:
        return [len(cards.cards) - 1, 7, -1, 0, 0]


def test_a_plugin_of_ones_own_may_choose_the_cards_and_what_is_none_is_passed_over() -> None:
    world = world_of("", vgpu_node("a", card("first"), card("second"), card("third")))
    world.add(*card_pod("p", vgpu(1000, number=2)))
    world.run(policy=policy("allocate", "gang last-card", SHARING), plugin_classes=[LastCard])
    (task,) = world.cluster.tasks.values()
    assert shares_of(task) == ["third", "first"]


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({"gpus": -1}, "gpus: -1 is not a whole number"),
        ({"gpus": 1, "gpuMilli": 1001}, "gpuMilli: 1001 is not between 1 and 1000"),
        ({"gpus": 1, "gpuMilli": 0}, "gpuMilli: 0 is not between"),
        ({"cpu": "many"}, "cpu: 'many' is not a quantity"),
        ({"models": "A10"}, "models: 'A10' is not a list"),
        ({"gpu": 1}, "unknown key 'gpu'"),
    ],
)
def test_a_typical_task_that_is_none_is_refused_by_name(task: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        load_policy(fgd(task), load_catalog())
