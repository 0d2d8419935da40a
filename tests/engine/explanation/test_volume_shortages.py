"""A pod that waits for its volumes hears which claim, class, zone or driver is short, where, and what helps."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.storage_manifests import (
    Manifest,
    capacity,
    claim,
    claiming,
    csi_driver,
    csi_node,
    disk,
    storage_class,
    volume,
)

PLACE = "enqueue, allocate"
PLUGINS = "gang predicates"
ZONE = "topology.kubernetes.io/zone"


def hint_of(
    *objects: Manifest, claims: tuple[str, ...] = ("data",), nodes: str = "n1 cpu=4; n2 cpu=4"
) -> str:
    """What a plan tells about a job whose pod has these claims."""
    world = World(nodes=nodes).add(*objects).job("j", cpu=1, spec=claiming(*claims))
    result = world.run(PLACE, PLUGINS)
    assert result.binds == {}
    return result.pending["default/j"].hint


def test_volumes_of_the_class_are_too_small() -> None:
    hint = hint_of(storage_class(), volume("v", "3Gi", "n1"), claim("data", "5Gi"))
    assert hint == (
        "claim data asks for 5Gi of class local, of which 1 volume is free, the largest with 3Gi; 0 of 2 nodes reach "
        "one that serves it: create a PersistentVolume of class local with 5Gi or more where there is room"
    )


def test_a_class_provisions_elsewhere() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    hint = hint_of(
        storage_class("made", "example.com/made", allowedTopologies=allowed), claim("data", of="made")
    )
    assert hint.endswith(
        "class made provisions volumes within its allowedTopologies alone: add nodes there, widen them, or create a "
        "PersistentVolume with 5Gi or more"
    )


def test_drivers_have_too_little_storage_left() -> None:
    objects = [
        storage_class("csi", "hostpath.csi.k8s.io"),
        csi_driver("hostpath.csi.k8s.io"),
        capacity("n1", "6Gi"),
    ]
    hint = hint_of(*objects, claim("a", of="csi"), claim("b", of="csi"), claims=("a", "b"))
    assert hint == (
        "the most that is left of class csi for one node is 6Gi: it asks for 10Gi of class csi on one node, more than "
        "drivers report as left: ask for less or add storage"
    )


def test_the_node_that_was_selected_for_a_claim_is_gone() -> None:
    hint = hint_of(storage_class("csi", "hostpath.csi.k8s.io"), claim("data", of="csi", node="old"))
    assert hint.endswith(
        "node old, selected for claim data, is gone: kubectl annotate pvc data volume.kubernetes.io/selected-node-"
    )


def test_no_node_has_the_driver() -> None:
    assert hint_of(*disk("data")) == (
        "0 of 2 nodes have the CSI driver disk.example.com, 0 of them are full: no node has the CSI driver "
        "disk.example.com (kubectl get csinodes): install it, or name it in --ignored-provisioners if it attaches "
        "nothing"
    )


def test_a_driver_attaches_no_more() -> None:
    hint = hint_of(*disk("data"), *disk("more"), csi_node("n1", 1), claims=("data", "more"))
    assert hint == (
        "1 of 2 nodes have the CSI driver disk.example.com, 0 of them are full: disk.example.com attaches no more "
        "volumes to these nodes: wait until pods with such volumes end, or add nodes"
    )


def test_a_bound_volume_names_the_nodes_that_reach_it() -> None:
    objects = [volume("pv", "10Gi", "n1", claimed_by="data"), claim("data", volume="pv")]
    hint = hint_of(*objects, nodes="n1 cpu=4 +down=; n2 cpu=4; n3 cpu=4")
    assert hint == "volume pv can be reached from n1: make room there"


def test_a_bound_volume_names_its_zone() -> None:
    objects = [volume("pv", labels={ZONE: "a__b"}, claimed_by="data"), claim("data", volume="pv")]
    hint = hint_of(*objects, nodes=f"n1 cpu=4 {ZONE}=c; n2 cpu=4 {ZONE}=c")
    assert hint == "volume pv lies in a, b: add nodes there"


def test_who_has_a_claim_for_a_single_pod_is_named() -> None:
    alone = {"accessModes": ["ReadWriteOncePod"]}
    world = World(nodes="n cpu=4").add(
        volume("pv", claimed_by="data", **alone), claim("data", volume="pv", **alone)
    )
    world.job("old", cpu=1, running_on="n", spec=claiming("data")).job("j", cpu=1, spec=claiming("data"))
    hint = world.run(PLACE, PLUGINS).pending["default/j"].hint
    assert hint.startswith("pod default/old-0 has claim data: ")


@pytest.mark.parametrize("free", [0, 3])
def test_what_a_condition_tells_stays_the_same_while_volumes_come_and_go(free: int) -> None:
    world = World(nodes="n1 cpu=4").add(storage_class(), claim("data", "5Gi"))
    world.add(*(volume(f"v{number}", "1Gi") for number in range(free)))
    sentence = world.job("j", cpu=1, spec=claiming("data")).run(PLACE, PLUGINS).pending["default/j"].sentence
    assert sentence.endswith(
        "node(s) didn't find available persistent volumes to bind; create a PersistentVolume of class local with "
        "5Gi or more where there is room"
    )
