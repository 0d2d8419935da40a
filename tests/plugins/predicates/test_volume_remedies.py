"""A pod that waits for its volumes hears which claim, class, zone or driver is short, where, and what helps."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.manifests import group, pod
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
        "claim data requests 5Gi of class local, of which 1 volume is free, the largest with 3Gi; "
        "0 of 2 nodes reach a suitable one: create a PersistentVolume of class local with 5Gi or "
        "more where nodes have capacity"
    )


def test_a_class_provisions_elsewhere() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    hint = hint_of(
        storage_class("made", "example.com/made", allowedTopologies=allowed), claim("data", of="made")
    )
    assert hint.endswith(
        "class made provisions volumes only within its allowedTopologies: add nodes there, widen "
        "them, or create a PersistentVolume with 5Gi or more"
    )


def test_drivers_have_too_little_storage_left() -> None:
    objects = [
        storage_class("csi", "hostpath.csi.k8s.io"),
        csi_driver("hostpath.csi.k8s.io"),
        capacity("n1", "6Gi"),
    ]
    hint = hint_of(*objects, claim("a", of="csi"), claim("b", of="csi"), claims=("a", "b"))
    assert hint == (
        "the most free storage of class csi on one node is 6Gi: it requests 10Gi of class csi on "
        "one node, more than drivers report as free: request less or add storage"
    )


def test_the_node_that_was_selected_for_a_claim_is_gone() -> None:
    hint = hint_of(storage_class("csi", "hostpath.csi.k8s.io"), claim("data", of="csi", node="old"))
    assert hint.endswith(
        "node old, selected for claim data, no longer exists: kubectl annotate pvc data "
        "volume.kubernetes.io/selected-node-"
    )


def test_no_node_has_the_driver() -> None:
    assert hint_of(*disk("data")) == (
        "0 of 2 nodes have the CSI driver disk.example.com, 0 of them are full: no node lists the CSI driver "
        "disk.example.com in its CSINode (kubectl get csinodes): install the driver, or name it in "
        "--ignored-provisioners if it attaches nothing"
    )


def test_a_driver_attaches_no_more() -> None:
    objects = [*disk("data"), *disk("more"), csi_node("n1", 1), csi_node("n2", 1)]
    assert hint_of(*objects, claims=("data", "more")) == (
        "2 of 2 nodes have the CSI driver disk.example.com, 0 of them are full: the volume limit of "
        "disk.example.com is reached on these nodes: wait until pods with such volumes end or add nodes"
    )


def test_a_bound_volume_names_the_nodes_that_reach_it() -> None:
    objects = [volume("pv", "10Gi", "n1", claimed_by="data"), claim("data", volume="pv")]
    hint = hint_of(*objects, nodes="n1 cpu=4 +down=; n2 cpu=4; n3 cpu=4")
    assert hint == "volume pv is reachable from n1: free capacity there"


def test_a_bound_volume_names_its_zone() -> None:
    objects = [volume("pv", labels={ZONE: "a__b"}, claimed_by="data"), claim("data", volume="pv")]
    hint = hint_of(*objects, nodes=f"n1 cpu=4 {ZONE}=c; n2 cpu=4 {ZONE}=c")
    assert hint == "volume pv is in a, b: add nodes there"


def test_who_has_a_claim_for_a_single_pod_is_named() -> None:
    alone = {"accessModes": ["ReadWriteOncePod"]}
    world = World(nodes="n cpu=4").add(
        volume("pv", claimed_by="data", **alone), claim("data", volume="pv", **alone)
    )
    world.job("old", cpu=1, running_on="n", spec=claiming("data")).job("j", cpu=1, spec=claiming("data"))
    hint = world.run(PLACE, PLUGINS).pending["default/j"].hint
    assert hint.startswith("pod default/old-0 uses claim data: ")


@pytest.mark.parametrize("free", [0, 3])
def test_what_a_condition_tells_stays_the_same_while_volumes_come_and_go(free: int) -> None:
    world = World(nodes="n1 cpu=4").add(storage_class(), claim("data", "5Gi"))
    world.add(*(volume(f"v{number}", "1Gi") for number in range(free)))
    sentence = world.job("j", cpu=1, spec=claiming("data")).run(PLACE, PLUGINS).pending["default/j"].sentence
    assert sentence.endswith(
        "node(s) didn't find available persistent volumes to bind; create a PersistentVolume of "
        "class local with 5Gi or more where nodes have capacity"
    )


def sentence_of(*objects: Manifest, pods: int = 1, name: str = "data") -> str:
    """What a condition tells about a gang whose pods have the same claim."""
    world = World(nodes="n1 cpu=4; n2 cpu=4").add(*objects)
    result = world.job("j", pods=pods, cpu=1, spec=claiming(name)).run(PLACE, PLUGINS)
    assert result.binds == {}
    assert result.pending["default/j"].hint
    return result.pending["default/j"].sentence


def test_nodes_without_the_driver_do_not_count_as_full() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4").add(*disk("data"), *disk("other"), csi_node("n1", 1))
    world.job("old", cpu=1, running_on="n1", spec=claiming("other")).job("j", cpu=1, spec=claiming("data"))
    assert (
        world.run(PLACE, PLUGINS)
        .pending["default/j"]
        .sentence.endswith(
            "1 of 2 nodes list the CSI driver disk.example.com in their CSINode: free capacity for the "
            "pod and its volumes there, or install the driver on other nodes"
        )
    )


@pytest.mark.parametrize("provisioner", ["kubernetes.io/no-provisioner", "example.com/made"])
def test_a_claim_for_a_single_pod_is_no_claim_for_a_gang(provisioner: str) -> None:
    alone = {"accessModes": ["ReadWriteOncePod"]}
    objects = [storage_class("c", provisioner), claim("data", of="c", **alone), volume("pv", of="c", **alone)]
    assert sentence_of(*objects, pods=2).endswith(
        "; claim data is for a single pod (ReadWriteOncePod), and 2 pods that must start together "
        "use it: give each its own claim, or choose another access mode"
    )


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        (
            [storage_class("c", "example.com/made", "Immediate"), claim("data", of="c")],
            "claim data of class c waits to be provisioned by example.com/made: check that the "
            "provisioner runs (kubectl describe pvc data)",
        ),
        (
            [claim("data", of="")],
            "claim data has no storage class and no default applies: recreate it with "
            "storageClassName, or create a PersistentVolume without a class for it",
        ),
        (
            [storage_class("c", mode="Immediate"), claim("data", of="c")],
            "claim data waits for a PersistentVolume of class c with 5Gi or more: create it",
        ),
    ],
)
def test_whom_a_claim_waits_for_that_needs_no_node(objects: list[Manifest], told: str) -> None:
    assert sentence_of(*objects).endswith(f"; {told}")


def test_a_gang_hears_how_many_volumes_it_lacks() -> None:
    world = World(nodes="n1 cpu=4").add(storage_class(), volume("v", "5Gi"), group("j", 3))
    for name in "abc":
        world.add(claim(name, "5Gi"), pod(name, "j", spec=claiming(name)))
    explained = world.run(PLACE, PLUGINS).pending["default/j"]
    assert "1 volume is free, the largest with 5Gi, 2 too few for the 3 claims of its gang" in explained.hint
    assert explained.sentence.endswith(
        "its pods request 3 volumes of class local with 5Gi or more: create the missing "
        "PersistentVolumes where nodes have capacity"
    )
