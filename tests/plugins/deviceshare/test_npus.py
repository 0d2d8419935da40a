"""Ascend NPUs that HAMi shares out: templates, networks, software sharing, annotations."""

from __future__ import annotations

import json
from typing import Any

from stromboli.engine.decisions import Bind
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.testing.world import NOON
from tests.manifests import Manifest, node
from tests.plugins.deviceshare.card_worlds import card_pod, card_policy, mig_config, shares_of, world_of

NPUS = card_policy(AscendHAMiVNPUEnable=True)
CARD, MEMORY = "huawei.com/Ascend310P", "huawei.com/Ascend310P-memory"


def npu(id: str, **more: Any) -> Manifest:
    """An entry of a registration, as HAMi's device plugin writes it."""
    return {"id": id, "count": 7, "devmem": 21527, "devcore": 8, "type": "Ascend310P", "health": True, **more}


def npu_node(name: str, *cards: Manifest, word: str = "Ascend310P", **annotations: str) -> Manifest:
    known = {f"hami.io/node-register-{word}": json.dumps(cards), **annotations}
    return node(name, annotations=known, **{"cpu": 64, f"huawei.com/{word}": 7 * len(cards)})


def annotations_of(world: Any) -> dict[str, str]:
    (bind,) = [decision for decision in world.step().decisions if isinstance(decision, Bind)]
    (grant,) = bind.grants
    assert isinstance(grant, CardGrant)
    return dict(grant.annotations)


def test_memory_is_rounded_up_to_a_template_and_the_annotations_are_hamis() -> None:
    world = world_of(NPUS, npu_node("a", npu("npu-0")), card_pod("p", {CARD: 1, MEMORY: 4000}))
    seconds = str(int(NOON))
    assert annotations_of(world) == {
        "hami.io/Ascend310P-devices-to-allocate": "npu-0,Ascend310P,6144,0:;",
        "hami.io/Ascend310P-devices-allocated": "npu-0,Ascend310P,6144,0:;",
        "predicate-time": seconds,
        "huawei.com/Ascend310P": '[{"UUID":"npu-0","temp":"vir02"}]',
        "hami.io/vgpu-node": "a",
        "hami.io/vgpu-time": seconds,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": seconds,
    }


def test_a_whole_card_has_no_template() -> None:
    world = world_of(NPUS, npu_node("a", npu("npu-0")), card_pod("p", {CARD: 1}))
    annotations = annotations_of(world)
    assert annotations["huawei.com/Ascend310P"] == '[{"UUID":"npu-0"}]'
    assert annotations["hami.io/Ascend310P-devices-allocated"] == "npu-0,Ascend310P,21527,0:;"


def test_several_cards_are_given_out_whole_alone() -> None:
    cards = [npu("npu-0"), npu("npu-1")]
    world = world_of(
        NPUS, npu_node("a", *cards), card_pod("p", {CARD: 2, MEMORY: 4000}), card_pod("q", {CARD: 2})
    )
    result = world.step()
    assert result.binds == {"default/q": "a"}
    assert "only whole ones can be given out several at a time" in result.why("p")


def test_memory_of_running_pods_counts_and_unhealthy_cards_do_not() -> None:
    running = card_pod(
        "old",
        {CARD: 1, MEMORY: 12288},
        on="a",
        annotations={"hami.io/Ascend310P-devices-allocated": "npu-0,Ascend310P,12288,0:;"},
    )
    nodes = npu_node("a", npu("npu-0"), npu("npu-1", health=False))
    world = world_of(NPUS, nodes, running, card_pod("p", {CARD: 1, MEMORY: 12288}))
    result = world.step()
    assert result.binds == {}
    assert "fewer idle cards than 1 of Ascend310P with 12288 of memory" in result.why("p")


def test_software_sharing_takes_any_amount_on_nodes_that_have_it() -> None:
    mode = {"huawei.com/vnpu-mode": "hami-core"}
    nodes = [
        npu_node("plain", npu("npu-0")),
        npu_node("soft", npu("npu-1"), **{"hami-vnpu-core": "true"}),
    ]
    limits = {CARD: 1, MEMORY: 1234, f"{CARD}-core": 30}
    world = world_of(NPUS, *nodes, card_pod("p", limits, annotations=mode))
    assert annotations_of(world)["huawei.com/Ascend310P"] == '[{"UUID":"npu-1","memory":1234,"core":30}]'


def test_cards_of_one_network_are_taken_together() -> None:
    config = """
vnpus:
- commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B3
  resourceMemoryName: huawei.com/Ascend910B3-memory
  memoryAllocatable: 65536
  memoryCapacity: 65536
"""
    networks = [0, 1, 0, 1, 1]
    cards = [
        npu(f"npu-{i}", devmem=65536, custominfo={"NetworkID": network}) for i, network in enumerate(networks)
    ]
    world = world_of(
        NPUS,
        mig_config(config),
        npu_node("a", *cards, word="Ascend910B3"),
        card_pod("p", {"huawei.com/Ascend910B3": 3}),
    )
    world.step()
    assert shares_of(world.task("p")) == ["npu-1", "npu-3", "npu-4"]


def test_slices_of_mind_cluster_wait() -> None:
    world = world_of(NPUS, npu_node("a", npu("npu-0")), card_pod("p", {"huawei.com/npu-core": 4}))
    result = world.step()
    assert result.binds == {}
    assert (
        "no plugin in the policy shares out NPUs by MindCluster's templates"
        in result.pending["default/p"].message
    )
