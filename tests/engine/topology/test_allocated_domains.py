"""The allocated HyperNode of a gang, and when the gang may use another."""

from __future__ import annotations

from stromboli.testing import World
from tests.manifests import group, hyper_node, pod

POLICY = "gang | predicates network-topology-aware"
HARD = {"mode": "hard", "highestTierAllowed": 1}


def test_a_gang_that_lost_all_its_pods_is_free_to_choose_another_hyper_node() -> None:
    world = World(nodes="a cpu=4\nb cpu=4")
    world.add(hyper_node("left", 1, nodes=["a"]), hyper_node("right", 1, nodes=["b"]))
    world.add(group("train", 2, networkTopology=HARD))
    pods = [pod(f"train-{number}", "train", cpu=2) for number in range(2)]
    assert set(world.add(*pods).run("enqueue, allocate", POLICY).binds.values()) == {"a"}
    for lost in pods:
        world.remove(lost)
    world.step()
    world.add(pod("other", on="a", cpu=4), *pods)
    assert set(world.step().binds.values()) == {"b"}
